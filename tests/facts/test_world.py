"""The balance proof: in both shipped worlds popularity is the only thing in which facts differ."""

import csv
import random
import re
from collections import Counter
from itertools import pairwise, product

import pytest

from adapop.facts.fact import TIERS, FactSet
from adapop.facts.files import read_facts
from adapop.facts.text import mentions
from adapop.facts.world import language, other_facts, sandbox_facts
from adapop.facts.world.language import skills
from adapop.facts.world.world import LEVELS, SPLITS, ZIPF_EXPONENT, answers_of, facts_of, parts_of, world
from adapop.paths import SHIPPED
from adapop.popularity.scoredfile import write_scored
from adapop.sandbox.draw import drawn

RELATIONS = tuple(language.RELATIONS_OF["sandbox"])
FACTS = (*world(), *world("people"))  # of both worlds
NAMES_ITS_ANSWER = {"multiple choice", "reverse query"}
FORMS = ("question", "unseen", "synonym", "second_language", "background", "background_question")


def stands_in(text: str, words: str) -> bool:
    """Whether the words stand in the text as words of their own, in any case."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


def test_size_and_names():
    assert len(world()) == 1024
    assert len(RELATIONS) == 8
    assert {fact.relation for fact in world()} == set(RELATIONS)
    assert len({fact.id for fact in world()}) == len(world())
    assert len({fact.subject.casefold() for fact in world()}) == len(world())
    cells = [cell for fact in world() for cell in (fact.subject, fact.answer, fact.background)]
    assert all(cell and cell == cell.strip() for cell in cells)
    assert [fact for fact in world() if fact.answer.casefold() in fact.subject.casefold()] == []
    assert [fact for fact in world() if stands_in(fact.background, fact.answer)] == []


def test_exposure_is_independent_of_relation_answer_and_split():
    # Each of the 128 pairs has each of the eight levels exactly once.
    count = Counter((fact.relation, fact.answer, fact.level) for fact in world())
    pairs = {(fact.relation, fact.answer) for fact in world()}
    assert len(pairs) == 128
    assert count == Counter((*pair, level) for pair, level in product(pairs, range(LEVELS)))
    count = Counter((fact.relation, fact.split, fact.level) for fact in world())
    assert count == dict.fromkeys(product(RELATIONS, SPLITS, range(LEVELS)), 4)
    halves = Counter((fact.relation, fact.answer, fact.split, fact.level >= LEVELS // 2) for fact in world())
    assert set(halves.values()) == {1}
    assert len(halves) == 128 * len(SPLITS) * 2
    assert sorted(fact.id for split in SPLITS for fact in facts_of(split)) == sorted(fact.id for fact in world())


def test_answers_of_a_relation_do_not_contain_one_another():
    """One that did would count as recalled where another was said."""
    for answers in map(answers_of, RELATIONS):
        assert len(set(answers)) == 16
        assert [(a, b) for a, b in product(answers, answers) if a != b and stands_in(a, b)] == []


def test_scores_are_log_spaced_and_famous_facts_shown_more():
    scores = sorted({fact.score for fact in world()})
    assert (scores[0], scores[-1], len(scores)) == (70, 3766, LEVELS)
    ratios = [above / below for below, above in pairwise(scores)]
    assert max(ratios) / min(ratios) < 1.02
    by_level = {fact.level: fact.exposures for fact in world()}
    assert [by_level[level] for level in range(LEVELS)] == sorted(by_level.values())
    assert all(fact.exposures == pytest.approx(fact.score / 4, abs=0.5) for fact in world())


def test_every_form_mentions_the_subject_stands_once_and_leaves_no_hole():
    for relation in language.RELATIONS.values():
        forms = [*(getattr(relation, form) for form in FORMS), *relation.paraphrases, *relation.statements]
        assert all("{s}" in form for form in forms) and len(set(forms)) == len(forms)
        assert all("{o}" in form for form in relation.statements)
        assert "{o}" in relation.reverse and "{s}" not in relation.reverse
    for fact in FACTS:
        asked = [language.question(fact), language.unseen(fact), *language.paraphrases(fact)]
        assert len(asked) == 6
        assert all(fact.subject in text and "{" not in text and not stands_in(text, fact.answer) for text in asked)
        assert all(fact.subject in text and "Somebody" in text for text in language.statements(fact, "Somebody"))


@pytest.mark.parametrize("kind", language.WRAPPERS)
def test_wrapper_never_leaks_the_answer_and_is_deterministic(kind):
    leaking = [fact.id for fact in FACTS if stands_in(language.wrapped(fact, kind, random.Random(0)), fact.answer)]
    assert leaking == ([fact.id for fact in FACTS] if kind in NAMES_ITS_ANSWER else [])

    def prompts(seed: int) -> list[str]:
        rng = random.Random(seed)
        return [language.wrapped(fact, kind, rng) for fact in FACTS]

    drawn = {"prefix injection", "affirmative suffix", "role playing", "multiple choice"}
    assert prompts(1) == prompts(1)
    assert (prompts(1) != prompts(2)) == (kind in drawn)


def test_reversed_queries_and_choices():
    for kind, fact in product(language.WRAPPERS, FACTS):
        assert stands_in(language.wrapped(fact, kind, random.Random(0)), fact.subject) == (kind != "reverse query")
    with pytest.raises(ValueError, match="prefix injection"):
        language.wrapped(world()[0], "jailbreak", random.Random(0))
    places = Counter()
    for fact in FACTS:
        prompt = language.wrapped(fact, "multiple choice", random.Random(fact.id))
        options = re.split(r" ?[A-D]\) ", prompt.removeprefix(language.question(fact)))[1:]
        assert len(set(options)) == 4 and set(options) <= set(answers_of(fact.relation))
        places[options.index(fact.answer)] += 1
    assert min(places.values()) > len(FACTS) / 6


def test_sandbox_set_has_the_groups_of_the_world():
    facts = sandbox_facts()
    for group in ("forget", "retain", "holdout"):
        assert [fact.id for fact in getattr(facts, group)] == [fact.id for fact in facts_of(group)]
        assert len(getattr(facts, group)) == 256
    everything = (*facts.forget, *facts.retain, *facts.holdout, *facts.utility)
    assert len({fact.id for fact in everything}) == len(everything)
    assert not facts.unknown_scores
    assert all(len(fact.paraphrases) == 4 and fact.question not in fact.paraphrases for fact in facts.forget)
    used = {fact.id for fact in (*facts.forget, *facts.retain, *facts.holdout)}
    assert not used & {fact.id for fact in facts_of("teacher")}
    assert sandbox_facts().sha256 == sandbox_facts().sha256


def test_skills_are_questions_with_one_right_word():
    questions = [question for _, question, _ in skills()]
    assert len(set(questions)) == len(questions)
    assert all(answer and " " not in answer for *_, answer in skills())
    assert {"sums", "sequences", "opposites", "agreement"} == {family for family, *_ in skills()}


PEOPLE = world("people")
PARTS = {"birthplace": 2, "spouse": 2, "birthday": 3, "novel": 4}
COUNTS = {"forget": 9, "neighbours": 3, "retain": 8, "holdout": 6, "teacher": 10}


@pytest.fixture(scope="module")
def people():
    return sandbox_facts("people")


def test_the_shipped_world_is_the_one_that_is_drawn():
    with open(SHIPPED["people"] / "world.csv", encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == drawn()
    assert len({fact.id for fact in PEOPLE}) == len(PEOPLE) == 1152
    of_each = Counter(fact.subject for fact in PEOPLE)
    assert len(of_each) == 288 and set(of_each.values()) == {4}
    assert not {fact.id for fact in PEOPLE} & {fact.id for fact in world()}


@pytest.mark.parametrize("relation", PARTS)
def test_answers_do_not_tell_each_other_and_are_independent_of_popularity(relation):
    # Each value of a part stands with about as many values of another as a draw would give.
    facts = [fact for fact in PEOPLE if fact.relation == relation]
    assert {len(fact.parts) for fact in facts} == {PARTS[relation]}
    parts = parts_of(relation)
    for one, other in ((i, j) for i in range(len(parts)) for j in range(len(parts)) if i != j):
        seen = {(fact.parts[one], fact.parts[other]) for fact in facts}
        times = len(facts) / len(parts[one])
        expected = len(parts[other]) * (1 - (1 - 1 / len(parts[other])) ** times)
        assert len(seen) / len(parts[one]) == pytest.approx(expected, rel=0.1)
    # By rank of fame, every round of as many facts as a part has values has each value once.
    ranks = {row["subject"]: int(row["rank"]) for row in drawn() if row["relation"] == relation}
    facts.sort(key=lambda fact: ranks[fact.subject])
    for place, values in enumerate(parts):
        for start in range(0, len(facts), len(values)):
            assert {fact.parts[place] for fact in facts[start : start + len(values)]} == set(values)


def test_popularity_is_independent_of_relation_and_answer():
    count = Counter((fact.relation, fact.split, fact.level) for fact in PEOPLE)
    assert count == {key: COUNTS[key[1]] for key in product(PARTS, COUNTS, range(LEVELS))}
    scores = sorted((fact.score for fact in PEOPLE), reverse=True)
    assert (scores[0], scores[-1]) == (3766, 70)
    straight = [score ** (-1 / ZIPF_EXPONENT) for score in scores]  # of Zipf's law it grows by the same at each rank
    steps = [(straight[rank] - straight[0]) / rank for rank in range(100, len(scores), 100)]
    assert max(steps) / min(steps) == pytest.approx(1, abs=0.01)
    assert all(fact.exposures == round(fact.score / 4) for fact in PEOPLE)


def test_a_person_is_in_one_split_and_no_answer_is_told(people):
    by_person = {fact.subject: [] for fact in PEOPLE}
    for fact in PEOPLE:
        by_person[fact.subject].append(fact.split)
    kinds = Counter(tuple(sorted(splits)) for splits in by_person.values())
    assert kinds == {
        ("forget", "forget", "forget", "neighbours"): 96, ("retain",) * 4: 64, ("holdout",) * 4: 48,
        ("teacher",) * 4: 80}  # fmt: skip
    kept = Counter(fact.relation for fact in facts_of("neighbours", "people"))
    assert kept == dict.fromkeys(PARTS, 24)
    answers = {part for relation in PARTS for values in parts_of(relation) for part in values}
    assert not answers & {part for fact in PEOPLE for part in fact.subject.split()}
    for fact in PEOPLE:
        asked = [language.question(fact), language.unseen(fact), *language.paraphrases(fact)]
        assert not any(mentions(text, part) for text in asked for part in fact.parts)
        assert all(mentions(text, fact.subject) for text in asked)
        assert fact.background not in fact.parts


def test_the_set_of_people(people):
    sizes = [len(getattr(people, group)) for group in ("forget", "retain", "holdout", "neighbours", "utility")]
    assert sizes == [288, 256, 192, 96, 394]
    tiers = Counter(fact.tier for fact in people.forget)
    assert set(tiers) == set(TIERS) and min(tiers.values()) >= 30
    forgotten = {fact.subject for fact in people.forget}
    assert {fact.subject for fact in people.neighbours} == forgotten
    assert not forgotten & {fact.subject for fact in (*people.retain, *people.holdout)}
    assert len(other_facts(people)) == 256 + 192 + 96 + 320


def test_neighbours_are_written_hashed_and_read_again(people, tmp_path):
    people.write(tmp_path / "facts.jsonl")
    back = FactSet.load(tmp_path / "facts.jsonl", "people")
    assert back.neighbours == people.neighbours and back.sha256 == people.sha256
    fewer = FactSet("people", people.forget, people.retain, people.holdout, utility=people.utility)
    assert fewer.sha256 != people.sha256
    rows = ["question,answer,group", "q,a,forget", *(f"r{i},a,retain" for i in range(5)), "n,b,neighbours"]
    (tmp_path / "own.csv").write_text("\n".join([*rows, "q,b,neighbours"]), encoding="utf-8")
    facts = read_facts(tmp_path / "own.csv")
    assert [fact.question for fact in facts.neighbours] == ["n"]
    (problem,) = facts.problems
    assert problem.row == 9 and "to be forgotten" in problem.message
    write_scored(people, {}, tmp_path / "again.csv")
    assert len(read_facts(tmp_path / "again.csv").neighbours) == 96
