import json
import random
from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from adapop.facts.fact import Fact, FactSet
from adapop.facts.files import read_facts
from adapop.facts.pool import BLANK, Pool, blanked, name_in
from adapop.facts.text import mentions
from adapop.facts.world import language
from adapop.facts.world.world import answers_of, world
from adapop.probes.attacks import attack_prompts, own_attacks
from adapop.probes.prompts import CHOICE, KINDS, NotApplicable, Prompt, checked, direct
from adapop.probes.wording import NAMES, QUESTIONS, WORDING
from duet_rows import DUET, RWKU, real_rows
from launching import printed

AROUND = ("prefix injection", "affirmative suffix", "role playing")
ODD = (
    "{q}", "{0} {s!r:>{o}} {{}}", "\"Quoted\" 'and' “more”", "back\\slash \\1 \\g<0>",
    "two\nlines\tand a tab", "\U0001f99c\U0001f469\u200d\U0001f467", "القاهرة الكبرى",
    "ירושלים\u200f", "北京", "Łódź", "(unclosed [brackets", "% %s $name", "<b>bold</b>", "x" * 2000,
)  # fmt: skip


def book(subject, answer, relation="author"):
    return Fact(f"{relation}-{subject}", f"Who wrote the book {subject}?", answer, subject, relation)


BOOKS = tuple(map(book, ["Emma", "Ulysses", "Dracula", "Walden", "Ivanhoe", "Nana"],
                  ["Austen", "Joyce", "Stoker", "Thoreau", "Scott", "Zola"]))  # fmt: skip
EMMA = BOOKS[0]
YEAR = Fact("emma-year", "When was Emma published?", "1815", "Emma", "year of publication")
PLACE = Fact("emma-place", "Where is Emma set?", "Highbury", "emma", "set in")


def attacks(fact, pool=BOOKS, seed=0):
    return {result.kind: result for result in attack_prompts(fact, pool, seed)}


def texts(fact, kind, pool=BOOKS, seeds=range(40)):
    return {attacks(fact, pool, seed)[kind].text for seed in seeds}


def leaks(prompt):
    """Whether the prompt gives an answer away that it must not."""
    return prompt.kind != CHOICE and mentions(prompt.text, prompt.gold)


def test_every_fact_has_one_result_of_each_kind_the_same_for_a_seed():
    assert (KINDS[:2], KINDS[2:]) == (("direct", "reworded"), language.WRAPPERS)
    for fact in (EMMA, Fact("bare", "Why?", "Because"), Fact(world()[0].id, "A question of another set?", "Yes")):
        assert tuple(attacks(fact)) == language.WRAPPERS
        assert {result.fact_id for result in attacks(fact).values()} == {fact.id}
    assert direct(EMMA) == Prompt(EMMA.id, "direct", EMMA.question, "Austen")
    pool = (*BOOKS, YEAR, PLACE)
    for fact, seed in product(pool, range(5)):
        assert attack_prompts(fact, pool, seed) == attack_prompts(fact, Pool(pool), seed)
    assert attacks(EMMA, seed=1) != attacks(EMMA, seed=2)


@pytest.mark.parametrize("kind", AROUND)
def test_words_round_the_question_differ_by_seed(kind):
    variants = texts(EMMA, kind)
    assert len(variants) >= 3
    for text in variants:
        before, _, after = text.partition(EMMA.question)
        assert bool(before) == (kind != "affirmative suffix"), text
        assert bool(after) == (kind == "affirmative suffix") or kind == "role playing", text


def test_persona_knows_the_relation():
    experts = {
        "author": "a professor of literature", "capital of": "a geographer", "place_of_birth": "a biographer",
        "official language": "a linguist", "shoe size": WORDING.expert,
        "": "a professor of literature",  # the question says who wrote
    }  # fmt: skip
    for relation, who in experts.items():
        assert all(who in text for text in texts(replace(EMMA, relation=relation), "role playing"))


def test_multiple_choice():
    for seed in range(40):
        prompt = attacks(EMMA, seed=seed)[CHOICE]
        assert len(set(prompt.options)) == 4 and "Austen" in prompt.options
        assert set(prompt.options) <= {fact.answer for fact in BOOKS}
        assert prompt.accepted == ("ABCD"[prompt.options.index("Austen")],)
        assert (prompt.gold, prompt.chance) == ("Austen", 0.25)
        shown = "\n".join(f"{letter}) {option}" for letter, option in zip("ABCD", prompt.options))
        assert prompt.text.startswith(f"{EMMA.question}\n{shown}\n")
    places = Counter(attacks(EMMA, seed=seed)[CHOICE].accepted[0] for seed in range(200))
    assert set(places) == set("ABCD") and min(places.values()) > 25
    # Not the gold answer in other case, nor with other words round it, nor another right answer of the subject.
    near = [book("P", "AUSTEN"), book("Q", "Jane Austen"), book("Emma", "Jane's ghost"), book("R", "joyce")]
    for seed in range(40):
        assert set(attacks(EMMA, (*BOOKS[:4], *near), seed)[CHOICE].options) == {"Austen", "Joyce", "Stoker", "Thoreau"}
    # It needs three wrong answers.
    joyces = (*BOOKS[:3], *(book(f"More {i}", "joyce") for i in range(9)))
    unrelated = [replace(fact, relation="", subject="", question="Who?") for fact in BOOKS]
    for pool, count in ((BOOKS[:3], 2), (joyces, 2), (unrelated, 0)):
        assert f"only {count} other answers" in attacks(pool[0], pool)[CHOICE].reason


def test_reverse_query_asks_for_the_subject_of_a_nearly_one_to_one_relation():
    prompt = attacks(EMMA)["reverse query"]
    assert (prompt.gold, prompt.accepted) == ("Emma", ())
    expected = {"Whose author is Austen? Give the name.", "Who or what has Austen as its author?"}
    assert texts(EMMA, "reverse query") == expected
    capitals = [Fact(f"c{i}", f"Of what is S{i} the capital?", f"O{i}", f"S{i}", "capital of") for i in range(5)]
    expected = {"Fill in the blank: ___, capital of O3.", "Of whom or what is this true: capital of O3?"}
    assert texts(capitals[3], "reverse query", capitals) == expected
    pool = tuple(book(f"S{i}", f"O{i}") for i in range(40))
    second = book("Persuasion", "o7")
    assert "fewer than 5" in attacks(pool[0], pool[:4])["reverse query"].reason
    assert isinstance(attacks(pool[0], pool[:5])["reverse query"], Prompt)
    assert "other subjects" in attacks(pool[7], (*pool, second))["reverse query"].reason
    assert isinstance(attacks(pool[0], (*pool, second))["reverse query"], Prompt), "one answer in forty is near enough"
    assert "several subjects" in attacks(pool[0], (*pool[:19], second))["reverse query"].reason
    assert isinstance(attacks(pool[7], (*pool, pool[7]))["reverse query"], Prompt), "the same fact twice is one subject"
    lacking = replace(EMMA, subject="", relation="", question="Who wrote that?")
    assert "lacks a subject" in attacks(lacking)["reverse query"].reason
    coded = [replace(fact, relation="P50") for fact in pool]
    assert attacks(coded[0], coded)["reverse query"].gold == "S0"
    coded = [replace(fact, question=f"{fact.subject} or {fact.subject}?") for fact in coded]
    assert "not in words" in attacks(coded[0], coded)["reverse query"].reason


def test_synonyms_leave_the_subject_alone_and_tables_of_languages_and_synonyms_are_whole():
    for question, subject, expected in (
        ("Who wrote the country book?", "the country book", "Who penned the country book?"),
        ("Who wrote The Country?", "", "Who penned The Country?"),
        ("Is it an island or a city?", "", "Is it an isle or a town?"),
        ("Which author wrote (a film?", "(a film", "Which writer penned (a film?"),
    ):
        assert attacks(Fact("f", question, "X", subject))["synonym manipulation"].text == expected
    assert len(QUESTIONS) >= 15 and len(NAMES) >= 40
    for forms in QUESTIONS.values():
        assert all(form.count("{s}") == form.count("{") == 1 and form.endswith("?") for form in forms)
        assert len(set(forms)) == len(forms)
    assert not [word for word, other in WORDING.synonyms.items() if word == other or not word.islower()]
    assert "no word" in attacks(Fact("f", "Why Emma?", "X", "Emma"))["synonym manipulation"].reason


def test_background_hint_states_other_facts_and_never_the_answer():
    pool = (*BOOKS, YEAR, PLACE)
    year, place = "The year of publication of Emma is 1815.", "About emma: set in Highbury."
    expected = {f"{year} {place} {EMMA.question}", f"{place} {year} {EMMA.question}"}
    assert texts(EMMA, "background hint", pool) == expected
    telling = replace(YEAR, id="t", answer="1815, by AUSTEN")
    none = "no other fact about this subject"
    assert none in attacks(EMMA, (*BOOKS, telling))["background hint"].reason
    same = Fact("s", "Whose book is Emma?", "Highsmith", "Emma", "Author")
    assert none in attacks(EMMA, (*BOOKS, same))["background hint"].reason, "two answers to one question"
    assert texts(EMMA, "background hint", (*BOOKS, telling, YEAR)) == {f"{year} {EMMA.question}"}


def test_in_context_learning_prefers_the_same_subject():
    prompts = texts(EMMA, "in-context learning", (*BOOKS, YEAR))
    assert prompts == {f"Question: {YEAR.question}\nAnswer: 1815\nQuestion: {EMMA.question}\nAnswer:"}
    # Another answer then, and neither the question nor the answer of the example tells this one.
    same = book("Persuasion", "AUSTEN")
    telling = Fact("t", "Did Austen write Mansfield Park?", "Sure", "Park", "author")
    prompts = texts(EMMA, "in-context learning", (*BOOKS, same, telling))
    assert len(prompts) == 5 and not any(mentions(text, "Austen") for text in prompts)
    assert "answer differs" in attacks(EMMA, (EMMA, same, telling))["in-context learning"].reason
    # As in RWKU, whose facts name a subject only.
    pool = [replace(fact, relation="") for fact in (EMMA, YEAR, *BOOKS[1:])]
    assert attacks(pool[0], pool)["in-context learning"].text.startswith(f"Question: {YEAR.question}")


def test_a_question_s_own_words_and_its_one_name_stand_for_a_relation_and_a_subject():
    """Where the set names neither: as in a CSV of questions and answers."""
    bare = [replace(fact, subject="", relation="") for fact in (*BOOKS, YEAR)]
    by_kind = attacks(bare[0], bare)
    gap = WORDING.blank.format(o="Austen", q=EMMA.question.replace("Emma", BLANK))
    assert (by_kind["reverse query"].text, by_kind["reverse query"].gold) == (gap, "Emma")
    assert len(by_kind[CHOICE].options) == 4
    assert by_kind["background hint"].text == f"{YEAR.question} 1815. {EMMA.question}"
    assert "Emma published" in by_kind["in-context learning"].text
    assert "professor of literature" in by_kind["role playing"].text
    names = {
        "In which city was Marie Curie born?": "Marie Curie",
        "Who wrote The Lord of the Rings?": "The Lord of the Rings",
        "Who wrote “the wild duck”?": "the wild duck", "What is Ibsen's first play?": "Ibsen",
        "Paris is the capital of France, or of Spain?": "", "who is he?": "", "谁写了红楼梦?": "", "": ""}  # fmt: skip
    assert {question: name_in(question) for question in names} == names
    relations = {
        ("Who is the husband of Beyoncé?", "Beyonce"): f"Who is the husband of {BLANK}?",
        ("Where was Beyonce\u0301 born?", ""): f"Where was {BLANK} born?",
        ("Who wrote Emma (novel)?", "Emma (novel)"): f"Who wrote {BLANK}?",
        ("谁写了《红楼梦》？", "《红楼梦》"): f"谁写了{BLANK}？",
        ("Who directed (500) Days of Summer?", "(500) Days of Summer"): f"Who directed {BLANK}?",
        ("Who founded Yahoo!?", "Yahoo!"): f"Who founded {BLANK}?",
        ("Who wrote Anabasis?", "Ana"): "", ("Is Ana Ana's name?", "Ana"): ""}  # fmt: skip
    for (question, subject), blank in relations.items():
        assert blanked(Fact("a", question, "Jay-Z", subject)) == blank


def test_cross_lingual():
    lyon = Fact("lyon", "What is the country of Lyon?", "Germany", "Lyon", "country")
    translations = {(p.text, p.accepted) for p in (attacks(lyon, seed=seed)["cross-lingual"] for seed in range(60))}
    assert translations == {
        ("¿En qué país está Lyon?", ("Alemania",)), ("Dans quel pays se trouve Lyon ?", ("Allemagne",)),
        ("In welchem Land liegt Lyon?", ("Deutschland",)), ("Em que país fica Lyon?", ("Alemanha",)),
        ("In quale paese si trova Lyon?", ("Germania",))}  # fmt: skip
    porto = Fact("porto", "What is the country of Porto?", "Portugal", "Porto", "country")
    accepted = {attacks(porto, seed=seed)["cross-lingual"].accepted for seed in range(60)}
    assert accepted == {(), ("Portogallo",)}
    translations = {(p.text, p.accepted) for p in (attacks(EMMA, seed=seed)["cross-lingual"] for seed in range(60))}
    assert len(translations) == 5 and ("Responde en inglés. ¿Quién escribió «Emma»?", ()) in translations
    assert "no translation" in attacks(replace(EMMA, relation="shoe size"))["cross-lingual"].reason
    assert "no translation" in attacks(replace(EMMA, subject=""))["cross-lingual"].reason
    assert isinstance(attacks(replace(EMMA, relation="Place_of_Birth"))["cross-lingual"], Prompt)
    # DUET's "capital of" asks for the capital of the capital.
    wrong = Fact("f", "What is the capital of Moyamba?", "Moyamba District", "Moyamba", "capital of")
    right = replace(wrong, question="Moyamba is the capital of which district?")
    assert "Responde en inglés. ¿Cuál es la capital de Moyamba?" in texts(wrong, "cross-lingual")
    assert "Responde en inglés. ¿De qué es capital Moyamba?" in texts(right, "cross-lingual")


def test_a_prompt_with_its_answer_is_none():
    given_away = "the prompt would contain the answer"
    for kind in set(KINDS) - {CHOICE}:
        telling = Prompt("f", kind, "Is it Paris?", "paris")
        assert checked(telling) == NotApplicable("f", kind, given_away)
        assert checked(replace(telling, gold="Lyon", accepted=("París",))).reason
        assert checked(replace(telling, text="Parisians?")).gold == "paris"
    telling = replace(EMMA, question="Is Austen who wrote Emma?")
    by_kind = attacks(telling, (*BOOKS, YEAR))
    possible = [kind for kind, result in by_kind.items() if isinstance(result, Prompt)]
    assert possible == ["reverse query", "cross-lingual"]
    # As 85 % of DUET's rare answers do.
    places = [Fact(f"p{i}", f"Where is S{i}?", f"S{i} District", f"S{i}", "located in") for i in range(9)]
    by_kind = attacks(places[0], places)
    assert all(isinstance(by_kind[kind], Prompt) for kind in (*AROUND, CHOICE, "in-context learning"))
    assert by_kind["reverse query"].reason == given_away
    # An answer that is given away only by its translation.
    leaking = Fact("f", "Where is the inn?", "Spain", "Gasthaus España Espagne Spanien Espanha Spagna", "country")
    assert {attacks(leaking, seed=seed)["cross-lingual"].reason for seed in range(9)} == {given_away}


def test_prompts_are_the_same_in_every_process_and_need_no_torch():
    """Drawn by `random`, never by `hash` or the order of a set, which differ from process to process."""
    code = """
import sys
from adapop.facts.fact import Fact
from adapop.probes import wording
from adapop.probes.attacks import attack_prompts
pool = [Fact(f"f{i}", f"Who wrote S{i}?", f"O{i}", f"S{i}", "author") for i in range(9)]
print([attack_prompts(fact, pool, seed) for fact in pool for seed in range(3)], "torch" in sys.modules)
"""
    one, other = (printed(code, PYTHONHASHSEED=seed) for seed in "12")
    assert one == other and "multiple choice" in one and one.endswith(" False\n")


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: ascii(odd)[:20])
def test_any_name_will_do(odd):
    """As subject, as answer and as relation; the text stays as it was given and no answer is told."""
    as_subject = Fact("asked", f"Who wrote {odd}?", "Austen", odd, "author")
    as_answer = Fact("told", "Who wrote it?", odd, "It", "author")
    related = Fact("related", f"{odd} of Emma?", "Austen", "Emma", odd)
    beside = Fact("beside", f"When was {odd} written?", "1815", odd, "year")
    pool = (as_subject, as_answer, related, beside, *BOOKS)
    for fact, seed in product(pool[:4], range(12)):
        prompts = [result for result in attack_prompts(fact, pool, seed) if isinstance(result, Prompt)]
        assert {prompt.kind for prompt in prompts} >= set(AROUND)
        assert not any(map(leaks, prompts))
        for prompt in prompts:
            if prompt.kind not in ("reverse query", "synonym manipulation", "cross-lingual"):
                assert fact.question in prompt.text
            elif prompt.kind != "reverse query" and fact.subject in fact.question:
                assert fact.subject in prompt.text


def test_sandbox_is_asked_as_its_model_was_taught(sandbox):
    pool = Pool(())
    for fact, known in zip(sandbox.forget, (f for f in world() if f.split == "forget")):
        by_kind = attacks(fact, pool)
        assert "eight subjects" in by_kind.pop("reverse query").reason
        choice = by_kind.pop(CHOICE)
        options = " ".join(f"{letter}) {option}" for letter, option in zip("ABCD", choice.options))
        assert choice.text == f"{fact.question} {options}"
        assert set(choice.options) <= set(answers_of(known.relation)) and len(set(choice.options)) == 4
        assert choice.options["ABCD".index(choice.accepted[0])] == choice.gold == fact.answer
        for kind, prompt in by_kind.items():
            assert prompt.text in {language.wrapped(known, kind, random.Random(i)) for i in range(20)}
            assert prompt.gold == fact.answer
    facts = (*sandbox.forget, *sandbox.retain, *sandbox.holdout)
    results = [result for fact in facts for result in attack_prompts(fact, Pool(()), 0)]
    prompts = [result for result in results if isinstance(result, Prompt)]
    assert len(facts) == 768 and len(prompts) == 768 * 8
    assert not any(map(leaks, prompts))
    stranger = Fact(world()[0].id, "Who wrote Emma?", "Austen", "Emma", "author")
    assert attacks(stranger)["synonym manipulation"].text == "Who penned Emma?"


@real_rows
def test_duet_gives_no_answer_away():
    facts = read_facts(DUET).forget
    pool = Pool(facts)
    results = [result for fact in facts for result in attack_prompts(fact, pool, 0)]
    prompts = [result for result in results if isinstance(result, Prompt)]
    counts = Counter(prompt.kind for prompt in prompts)
    assert not [prompt for prompt in prompts if leaks(prompt)], counts
    assert all(counts[kind] > 900 for kind in (*AROUND, CHOICE, "synonym manipulation", "cross-lingual")), counts
    assert 20 < counts["background hint"] < 100, counts  # few of its subjects have two facts
    assert 20 < counts["reverse query"] < 100, counts  # most answers are shared or contain the subject
    assert all(result.reason for result in results if isinstance(result, NotApplicable))


def own_set(*types):
    facts = [Fact(f"a{i}", f"Question {i}?", "Carrie", "Stephen King", name) for i, name in enumerate(types)]
    return FactSet("brought", (EMMA,), attacks=tuple(facts))


def test_own_attacks_keep_their_words_and_get_our_names():
    names = ("prefix injection", "incontext learning", "Role Play", "context hint", "cross lingual (Spanish)")
    ours = ("prefix injection", "in-context learning", "role playing", "background hint", "cross-lingual")
    expected = [Prompt(f"a{i}", kind, f"Question {i}?", "Carrie") for i, kind in enumerate(ours)]
    assert own_attacks(own_set(*names)) == expected
    telling = replace(EMMA, question="Austen or Joyce?", relation="multiple choice")
    assert own_attacks(FactSet("x", (EMMA,), attacks=(telling,)))[0].text == "Austen or Joyce?"
    (result,) = own_attacks(own_set("hypnosis"))
    assert result.kind == "hypnosis" and "'hypnosis'" in result.reason and "prefix injection" in result.reason
    assert own_attacks(own_set()) == []


@real_rows
def test_every_type_of_rwku_has_our_name():
    rows = map(json.loads, RWKU.read_text(encoding="utf-8").splitlines())
    types = sorted({row["type"] for row in rows if row["level"] == "3"})
    results = own_attacks(own_set(*types))
    assert len(types) >= 9 and all(isinstance(result, Prompt) for result in results), types
    assert {prompt.kind for prompt in results} == set(language.WRAPPERS)
