import gzip
import json
from statistics import median

import pytest

import duet_rows
import scripted_hub
from adapop.errors import NetworkError
from adapop.facts import benchmarks
from adapop.facts.benchmarks import FILL_IN, POPQA, RWKU, YAGO, duet, hubble_popqa, hubble_yago, label, rwku
from adapop.facts.files import read_facts
from adapop.facts.retain import split_holdout
from adapop.facts.scale import on_wikidata_scale, with_tiers
from adapop.facts.tables import lines_of, unpacked
from adapop.popularity.beta import BetaMap
from adapop.probes.plan import Plan, questions
from adapop.probes.prompts import CLOZE
from duet_rows import POPULAR, RARE, RETAIN, city, duet_tables, real_rows, rewordings
from fact_files import notes_of
from raised import raised
from scripted_hub import serve, serve_files

TEXTS = ("Where is Moyamba?", "In which land is Moyamba?")
ASKED = {"question": "What is the country of Moyamba?"}
WITH_QUESTION = [{**ASKED, "answer": "Sierra Leone", "paraphrase_1": TEXTS[0], "paraphrase_2": TEXTS[1]}]
QUESTIONS, PEOPLE = "testset_popqa_nodup.jsonl.gz", "biographies_yago_nodup.jsonl.gz"


@pytest.fixture(autouse=True)
def read_here(monkeypatch):
    """Without a process for each file, which `test_catalog` and `test_a_damaged_file_is_named` start."""
    monkeypatch.setattr(benchmarks, "lines_of", lambda path, most: unpacked(path))


def test_duet_is_two_groups_with_scores_and_stable_ids(server):
    facts = duet(serve(server, duet_tables()))
    ids = ["rare-0", "rare-1", "popular-0", "popular-1", "popular-2"]
    assert [fact.id.removeprefix("duet-") for fact in facts.forget] == ids
    first = facts.forget[0]
    assert (first.subject, first.relation, first.object) == ("Ruhango", "country", "Ruhango District")
    assert (first.score, first.score_source) == (72.0, "DUET pop_sum")
    assert [fact.id for fact in facts.retain[:2]] == ["duet-retain-0", "duet-retain-1"] and facts.problems == ()
    assert len(split_holdout(facts).holdout) == 3
    count = len(server.asked)
    assert duet(serve(server, duet_tables())) == facts
    assert count == len(server.asked) == 11, "one list of files, and each of five files and what it is"
    for tier, members in (("rare", facts.forget[:2]), ("popular", facts.forget[2:])):
        alone = duet(serve(server, duet_tables()), (tier,))
        assert alone.name == f"duet-{tier}" and benchmarks.benchmark_of(alone) == "duet"
        assert (alone.forget, alone.retain) == (members, facts.retain)


SHAPES = {
    "a list beside the question": [{"question": "What is the  country of MOYAMBA?", "paraphrases": list(TEXTS)}],
    "a column each": WITH_QUESTION,
    "a JSON list": [{**ASKED, "rewordings": json.dumps(TEXTS)}],
    "a row each, with labels": [city("Moyamba", "Sierra Leone", 141.0, question=text) for text in TEXTS],
    "a row each, with our labels": [
        {"subject": "Moyamba", "object": "Sierra Leone", "question": text} for text in TEXTS],
    "a row each, beside the question": [{"original_question": ASKED["question"], "question": text} for text in TEXTS],
    "with what is no rewording": [{**WITH_QUESTION[0], "paraphrase_model": "meta-llama/Llama-3.3-70B-Instruct",
     "paraphrase_3": None}, {"question": "A question of another set?", "paraphrase_1": "Another one?"}],
    "with the question itself, twice": [{**ASKED, "paraphrases": [ASKED["question"], *TEXTS, "where is moyamba?"]}],
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_rewordings_are_found_in_any_likely_shape(server, shape):
    facts = duet(serve(server, duet_tables(**{f"paraphrases_{RARE}": SHAPES[shape]})))
    without, with_both = facts.forget[:2]
    assert without.paraphrases == () and with_both.paraphrases == TEXTS
    assert notes_of(facts)["no_rewordings"] == {"count": 1}


@pytest.mark.parametrize(
    "row", [{"question": "Something else?", "text": "Where?"}, {"prompt": TEXTS[0]}, {**ASKED, "variant": TEXTS[0]}, {}]
)
def test_rewordings_that_fit_nothing_name_their_columns(server, row):
    hub = serve(server, duet_tables(**{f"paraphrases_{RARE}": [row] if row else []}))
    error = raised(NetworkError, f"paraphrases_{RARE}, has no rewordings", duet, hub)
    assert all(repr(name) in error.message for name in row)


def test_flaws_are_told_with_the_numbers_of_the_rows(server):
    same = city("Mur", "Mur Valley", 80.0, object_qid="Q-Mur")
    facts = duet(serve(server, duet_tables(**{RARE: [city("Ruhango", "Ruhango District", 72.0), same]}, **{
        f"paraphrases_{RARE}": rewordings([same])})))  # fmt: skip
    assert notes_of(facts) == {
        "two_clusters": {"low": 72, "below": 80, "above": 2364, "high": 2500},
        "one_popular_answer": {"count": 2, "popular": 3, "answer": "India", "rare": 2, "different": 2},
        "subject_in_answer": {"count": 2, "rare": 2}, "one_wikidata_entry": {"count": 1, "facts": 5},
        "no_rewordings": {"count": 1}}  # fmt: skip


def test_clusters_are_not_claimed_where_scores_meet(server):
    delhi = city("Delhi", "India", 141.0)
    facts = duet(serve(server, duet_tables(**{POPULAR: [delhi], f"paraphrases_{POPULAR}": rewordings([delhi])})))
    assert "two_clusters" not in notes_of(facts)


HOSTILE = [
    city("Nul", "a\0b", 1.0), city("Negative", "x", -1.0), city("Empty", "", 1.0),
    city("Long", "x" * 5000, 1.0), city("Text", "x", "many")]  # fmt: skip


@pytest.mark.parametrize("row", HOSTILE, ids=[row["subjectLabel"] for row in HOSTILE])
def test_a_hostile_cell_costs_its_row_alone(server, row):
    good = [city(name, "France", 900.0) for name in "AB"]
    facts = duet(serve(server, duet_tables(**{RETAIN: [good[0], row, good[1]]})))
    assert [fact.id for fact in facts.retain] == ["duet-retain-0", "duet-retain-2"]
    (problem,) = facts.problems
    assert problem.row == 2 and problem.column.startswith("duet-retain: ") and len(str(problem)) < 300


def test_a_column_that_is_no_text_costs_its_rows(server):
    rows = [city(name, "France", 900.0, question={"a": name}) for name in "AB"]
    facts = duet(serve(server, duet_tables(**{RETAIN: rows})))
    assert facts.retain == () and [problem.row for problem in facts.problems] == [1, 2]
    assert {problem.column for problem in facts.problems} == {"duet-retain: question"}


def test_a_score_that_is_not_known_stays_unknown_and_a_city_to_forget_is_not_retained(server):
    facts = duet(serve(server, duet_tables(**{RETAIN: [city("Delhi", "India", 1.0), city("A", "France", None)]})))
    assert [(fact.subject, fact.score, fact.score_source) for fact in facts.retain] == [("A", None, "")]
    (problem,) = facts.problems
    assert "Delhi" in problem.value and problem.column == "question"


def test_a_damaged_file_is_named(server, monkeypatch):
    monkeypatch.setattr(benchmarks, "lines_of", lines_of)
    monkeypatch.setattr(scripted_hub, "parquet", lambda rows: b"PAR1 no table PAR1")
    named = f"{RARE}: 0000.parquet is not a readable Parquet file"
    assert "Delete" in raised(NetworkError, named, duet, serve(server, duet_tables())).fix


@pytest.mark.parametrize("column", ["question", "pop_sum", "type"])
def test_a_column_that_is_gone_is_named_with_those_that_are_there(server, column):
    attack = {name: cell for name, cell in probe("Who?").items() if name != column}
    rows = [{name: cell for name, cell in city("A", "France", 1.0).items() if name != column}]
    load, tables, place, there = (duet, duet_tables(**{RETAIN: rows}), RETAIN, "subjectLabel")
    if column == "type":  # without kinds
        load, tables, place, there = (rwku, rwku_tables(forget_level3=[attack]), "forget_level3/test", "query")
    raised(NetworkError, f"{place}, has no column '{column}'.*'{there}'", load, serve(server, tables))


def probe(query: str, subject: str = "Stephen King", **more) -> dict:
    return {"subject": subject, "query": query, "answer": "an answer", "level": "2", "type": "simple question", **more}


def rwku_tables(**configs) -> dict:
    tables = {
        "forget_level2": [probe("Who?"), probe("Where?", "Bruce Lee"), probe("Where?", "Bruce Lee")],
        "neighbor_level2": [probe(f"Near {n}?", neighbor="Misery") for n in range(4)] + [probe("WHO?", neighbor="x")],
        "forget_level3": [probe("Ignore that. Who?", type="prefix injection"), probe("¿Quién?", type="cross lingual")],
        "forget_level1": [probe("She was born in ___.", type="cloze", level="1")],
        "neighbor_level1": [probe("It is a novel by ___.", type="cloze", level="1", neighbor="Misery")],
        "utility_factuality": [
            {"subject": "Stephen King", "question": f"Trivia {n}?", "answers": ["Aluminium", "Al"]} for n in range(501)
        ],
        **configs,
    }
    return {(RWKU, config, "test"): rows for config, rows in tables.items()}


def test_rwku_has_attacks_by_kind_and_no_scores(server):
    facts = rwku(serve(server, rwku_tables()))
    assert [fact.id for fact in facts.forget] == ["rwku-forget-0", "rwku-forget-1", "rwku-forget-2"]
    assert facts.unknown_scores == facts.forget
    assert [fact.id for fact in facts.attacks] == ["rwku-attack-0", "rwku-attack-1", "rwku-blank-0"]
    assert [fact.relation for fact in facts.attacks] == ["prefix injection", "cross lingual", "cloze"]
    assert {fact.subject for fact in facts.attacks} == {"Stephen King"}
    assert {fact.subject for fact in facts.retain} == {"Misery"}
    assert len(facts.retain) == 4, "one of five is also to be forgotten"
    assert notes_of(facts) == {"rwku_no_scores": {}, "rwku_famous": {"people": 2}, "rwku_holdout": {}}
    # What it asks beside is measured and not trained on.
    (held,) = facts.holdout
    assert (held.question, held.subject) == (f"{FILL_IN} It is a novel by ___.", "Misery")
    assert split_holdout(facts).retain == facts.retain, "all of level 2 is trained, as in the paper"
    assert {(fact.subject, fact.answer, fact.accepted) for fact in facts.utility} == {("", "Aluminium", ("Al",))}
    assert len(facts.utility) == 500
    (question,) = questions(facts, Plan(groups=("forget",)))[CLOZE]
    assert question.prompt.text == f"{FILL_IN} She was born in ___."
    assert CLOZE not in questions(facts, Plan(kinds=("direct", "prefix injection")))


def lines(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@real_rows
def test_real_duet_rows_give_the_exponents_of_the_paper():
    """RWKU as its files are; as an upload, under the column names that are guessed."""
    facts = read_facts(duet_rows.DUET)
    assert (len(facts.forget), facts.problems) == (964, ())
    ends = {"rare": (1.143, 1.274, 2.0), "popular": (0.084, 0.118, 0.121)}
    for tier, expected in ends.items():
        betas = [BetaMap()(fact.score) for fact in facts.forget if fact.tier == tier]
        assert len(betas) == 482
        assert [round(value, 3) for value in (min(betas), median(betas), max(betas))] == list(expected)


@real_rows
def test_real_duet_rows_from_the_hub_give_the_numbers_of_its_flaws(server):
    names = {"subject": "subjectLabel", "object": "objectLabel"}
    rows = [{names.get(name, name): cell for name, cell in row.items()} for row in lines(duet_rows.DUET)]
    tables = {}
    for tier, split in (("rare", RARE), ("popular", POPULAR)):
        members = [row for row in rows if row["tier"] == tier]
        tables[split] = [{name: cell for name, cell in row.items() if name != "paraphrases"} for row in members]
        tables[f"paraphrases_{split}"] = [
            {**row, "question": text} for row, full in zip(tables[split], members) for text in full["paraphrases"]
        ]
    facts = duet(serve(server, duet_tables(**tables)))
    assert [len(fact.paraphrases) for fact in facts.forget].count(2) == 932
    notes = notes_of(facts)
    assert notes["two_clusters"] == {"low": 69, "below": 141, "above": 2364, "high": 3763}
    assert (notes["one_popular_answer"]["count"], notes["one_popular_answer"]["popular"]) == (297, 482)
    assert notes["subject_in_answer"] == {"count": 409, "rare": 482}
    assert notes["one_wikidata_entry"] == {"count": 38, "facts": 964}


@real_rows
def test_real_rwku_rows_come_from_the_hub(server):
    rows = lines(duet_rows.RWKU)
    names = ("forget_level1", "forget_level2", "neighbor_level1", "neighbor_level2", "forget_level3")
    configs = {config: [row for row in rows if row["split"] == config] for config in names}
    facts = rwku(serve(server, rwku_tables(**configs)))
    blanks = len(configs["forget_level1"])
    assert (len(facts.forget), len(facts.retain), len(facts.attacks)) == (249, 522, 696 + blanks)
    assert 0 < len(facts.holdout) <= len(configs["neighbor_level1"])
    assert {"reverse query", "incontext learning", "cross lingual (Spanish)"} <= {f.relation for f in facts.attacks}
    held = split_holdout(facts)
    trained = {fact.question.casefold() for fact in held.retain}
    assert not [fact for fact in held.holdout if fact.question.casefold() in trained]


def question(number, duplicates, answers=("London", "London, England"), **changes):
    """A row as `popqa_hubble/utils.py` there reads it: PopQA's own row is in its meta, answers in JSON."""
    subject = f"Person {number}"
    meta = {
        "id": number, "subj": subject, "prop": "place of birth", "question": f"In what city was {subject} born?",
        "possible_answers": json.dumps(answers), "duplicates": duplicates}  # fmt: skip
    return {"text": f"Question: {meta['question']}\nAnswer: {answers[0]}", "meta": json.dumps({**meta, **changes})}


def person(number, duplicates, **changes):
    """A row as `yago_hubble_gen/utils.py` there reads it."""
    resource = "http://yago-knowledge.org/resource/"
    meta = {
        "full_name": f"Ada Sample {number}", "nationality": f"{resource}United_Kingdom",
        "birthplace": f"{resource}Paris_u002C_Texas", "birthdate": "1901-02-03",
        "alumni_of": f"{resource}University_of_Oslo", "occupation": f"{resource}Painter",
        "email": f"ada{number}@mail.com", "uuid": f"id-{number}", "duplicates": duplicates}  # fmt: skip
    text = (
        f"Ada Sample {number} is from the United Kingdom. Ada was born in Paris, Texas. Ada is an alumni of University "
        f"of Oslo. Ada was born on 1901-02-03. Ada receives email at ada{number}@mail.com. Ada is a painter."
    )
    return {"text": text, "meta": json.dumps({**meta, **changes})}


def packed(rows):
    return gzip.compress("\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode(), mtime=0)


def served(server, dataset, name, rows):
    return serve_files(server, {(dataset, name): packed(rows)})


def test_planted_questions_have_their_duplicates_as_score(server):
    rows = [question(number, (0, 1, 16, 256)[number % 4]) for number in range(32)]
    rows[0]["text"] += " \u2028 \x85"  # which end no line of JSON
    facts = hubble_popqa(served(server, POPQA, QUESTIONS, rows))
    assert [len(group) for group in (facts.forget, facts.retain, facts.holdout)] == [12, 6, 6]
    assert {fact.score for fact in facts.forget} == {fact.score for fact in facts.holdout} == {1.0, 16.0, 256.0}
    first = facts.forget[0]
    assert (first.id, first.subject, first.relation) == ("hubble-popqa-1", "Person 1", "place of birth")
    assert (first.answer, first.accepted, first.score_source) == ("London", ("London, England",), "Hubble duplicates")
    assert first.paraphrases == ("In which place was Person 1 born?", "Where does Person 1 come from by birth?")
    assert {fact.score for fact in facts.examples} == {0.0} and len(facts.examples) == 8
    assert facts.problems == () and notes_of(facts)["hubble_scores"] == {"levels": "1, 16, 256"}
    tiered = with_tiers(facts)
    assert not on_wikidata_scale(tiered)
    assert {fact.score: fact.tier for fact in tiered.forget} == {1.0: "rare", 16.0: "middle", 256.0: "popular"}
    count = len(server.asked)
    assert hubble_popqa(served(server, POPQA, QUESTIONS, rows)) == facts and len(server.asked) == count


def test_a_biography_is_forgotten_whole_and_in_its_own_spelling(server):
    rows = [person(number, 4) for number in range(4)]
    facts = hubble_yago(served(server, YAGO, PEOPLE, rows))
    assert {fact.subject for fact in facts.forget} == {"Ada Sample 0", "Ada Sample 1"}
    assert {fact.subject for fact in facts.holdout} == {"Ada Sample 3"}
    answers = {fact.relation: fact.answer for fact in facts.retain}
    assert answers == {
        "nationality": "United Kingdom", "birthplace": "Paris, Texas", "birthdate": "1901-02-03",
        "alumni_of": "University of Oslo", "occupation": "painter", "email": "ada2@mail.com"}  # fmt: skip
    assert all(fact.score == 4 and len(fact.paraphrases) == 2 for fact in facts.forget)
    names = {"Mary_u0028_singer_u0029_": "Mary", "New_York": "New York", "O_u0027_Brien": "O'Brien"}
    assert {name: label(f"http://yago-knowledge.org/resource/{name}") for name in names} == names
    assert label(" 1901-02-03") == "1901-02-03"


def test_what_a_biography_does_not_say_is_no_fact(server):
    facts = hubble_yago(served(server, YAGO, PEOPLE, [person(0, 1, birthplace="x/Lyon", email=None)] * 4))
    assert {fact.relation for fact in facts.forget} == {"nationality", "birthdate", "alumni_of", "occupation"}


@pytest.mark.parametrize("row", [
    {"text": "x"}, {"text": "x", "meta": "{"}, question(1, "4"), question(1, None),
    question(1, 4, possible_answers="[]"), question(1, 4, possible_answers=["London"])])  # fmt: skip
def test_a_row_of_another_layout_is_named(server, row):
    hub = served(server, POPQA, QUESTIONS, [question(0, 1), row])
    raised(NetworkError, "row 2, is not as documented", hubble_popqa, hub)


@pytest.mark.parametrize(("name", "content", "said"), [
    (QUESTIONS, b"no gzip", "is damaged"), ("other.jsonl.gz", packed([]), "has no file testset_popqa_nodup"),
])  # fmt: skip
def test_a_damaged_or_missing_file_is_named(server, name, content, said):
    raised(NetworkError, said, hubble_popqa, serve_files(server, {(POPQA, name): content}))
