"""DUET and RWKU from a server that answers as the real one does: rows made up here, and real ones if at hand."""

import json
from statistics import median

import pytest

import scripted_hub
from adapop.errors import NetworkError
from adapop.facts import benchmarks
from adapop.facts.benchmarks import RWKU, duet, rwku
from adapop.facts.files import read_facts
from adapop.facts.holdout import split_holdout
from adapop.facts.parquet import lines_of, unpacked
from adapop.paths import ROOT
from adapop.popularity.beta import BetaMap
from adapop.probes.plan import Plan, questions
from duet_rows import POPULAR, RARE, RETAIN, city, duet_tables, rewordings
from scripted_hub import serve

REAL = ROOT.parent / "shared" / "data"
real_rows = pytest.mark.skipif(not REAL.is_dir(), reason="the benchmarks' own rows are not at hand")


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
    assert [fact.id for fact in facts.retain[:2]] == ["duet-retain-0", "duet-retain-1"]
    assert facts.problems == ()
    assert len(split_holdout(facts).holdout) == 3

    asked = len(server.asked)
    assert duet(serve(server, duet_tables())) == facts
    assert asked == len(server.asked) == 11, "one list of files, and each of five files and what it is"
    for tier, members in (("rare", facts.forget[:2]), ("popular", facts.forget[2:])):
        alone = duet(serve(server, duet_tables()), (tier,))
        assert alone.name == f"duet-{tier}" and benchmarks.benchmark_of(alone) == "duet"
        assert (alone.forget, alone.retain) == (members, facts.retain)


TEXTS = ("Where is Moyamba?", "In which land is Moyamba?")
ASKED = {"question": "What is the country of Moyamba?"}
WITH_QUESTION = [{**ASKED, "answer": "Sierra Leone", "paraphrase_1": TEXTS[0], "paraphrase_2": TEXTS[1]}]
SHAPES = {
    "a list beside the question": [{"question": "What is the  country of MOYAMBA?", "paraphrases": list(TEXTS)}],
    "a column each": WITH_QUESTION,
    "a JSON list": [{**ASKED, "rewordings": json.dumps(TEXTS)}],
    "a row each, with labels": [city("Moyamba", "Sierra Leone", 141.0, question=text) for text in TEXTS],
    "a row each, with our labels": [
        {"subject": "Moyamba", "object": "Sierra Leone", "question": text} for text in TEXTS],
    "a row each, beside the question": [{"original_question": ASKED["question"], "question": text} for text in TEXTS],
    "with what is no rewording": [
        {**WITH_QUESTION[0], "paraphrase_model": "meta-llama/Llama-3.3-70B-Instruct", "paraphrase_3": None},
        {"question": "A question of another set?", "paraphrase_1": "Another one?"},
    ],
    "with the question itself, twice": [
        {**ASKED, "paraphrases": [ASKED["question"], *TEXTS, "where is moyamba?"]}],
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_rewordings_are_found_in_any_likely_shape(server, shape):
    facts = duet(serve(server, duet_tables(**{f"paraphrases_{RARE}": SHAPES[shape]})))
    without, with_both = facts.forget[:2]
    assert without.paraphrases == ()
    assert with_both.paraphrases == TEXTS
    assert facts.notes[-1] == "Facts to forget without rewordings: 1."


@pytest.mark.parametrize(
    "row", [{"question": "Something else?", "text": "Where?"}, {"prompt": TEXTS[0]}, {**ASKED, "variant": TEXTS[0]}, {}]
)
def test_rewordings_that_fit_nothing_name_their_columns(server, row):
    with pytest.raises(NetworkError, match=f"paraphrases_{RARE}, has no rewordings") as caught:
        duet(serve(server, duet_tables(**{f"paraphrases_{RARE}": [row] if row else []})))
    assert all(repr(name) in caught.value.message for name in row)


def test_flaws_are_told_with_the_numbers_of_the_rows(server):
    same = city("Mur", "Mur Valley", 80.0, object_qid="Q-Mur")
    facts = duet(serve(server, duet_tables(**{RARE: [city("Ruhango", "Ruhango District", 72.0), same]}, **{
        f"paraphrases_{RARE}": rewordings([same])})))  # fmt: skip
    clusters, answers, named, twice, bare = facts.notes
    assert "72 to 80 and 2,364 to 2,500, with nothing between" in clusters
    assert "2 of the 3 popular facts have the same answer, India" in answers
    assert "2 of the 2 rare facts" in named
    assert "In 1 of the 5 facts subject and answer are linked to the same Wikidata entry" in twice
    assert bare == "Facts to forget without rewordings: 1."


def test_clusters_are_not_claimed_where_scores_meet(server):
    delhi = city("Delhi", "India", 141.0)
    facts = duet(serve(server, duet_tables(**{POPULAR: [delhi], f"paraphrases_{POPULAR}": rewordings([delhi])})))
    assert not any("clusters" in note for note in facts.notes)


HOSTILE = [
    city("Nul", "a\0b", 1.0), city("Negative", "x", -1.0), city("Empty", "", 1.0),
    city("Long", "x" * 5000, 1.0), city("Text", "x", "many"),
]  # fmt: skip


@pytest.mark.parametrize("row", HOSTILE, ids=[row["subjectLabel"] for row in HOSTILE])
def test_a_hostile_cell_costs_its_row_alone(server, row):
    good = [city(name, "France", 900.0) for name in "AB"]
    facts = duet(serve(server, duet_tables(**{RETAIN: [good[0], row, good[1]]})))
    assert [fact.id for fact in facts.retain] == ["duet-retain-0", "duet-retain-2"]
    (problem,) = facts.problems
    assert problem.row == 2
    assert problem.column.startswith("duet-retain: ")
    assert len(str(problem)) < 300


def test_a_column_that_is_no_text_costs_its_rows(server):
    rows = [city(name, "France", 900.0, question={"a": name}) for name in "AB"]
    facts = duet(serve(server, duet_tables(**{RETAIN: rows})))
    assert facts.retain == ()
    assert [problem.row for problem in facts.problems] == [1, 2]
    assert {problem.column for problem in facts.problems} == {"duet-retain: question"}


def test_a_score_that_is_not_known_stays_unknown_and_a_city_to_forget_is_not_retained(server):
    facts = duet(serve(server, duet_tables(**{RETAIN: [city("Delhi", "India", 1.0), city("A", "France", None)]})))
    assert [(fact.subject, fact.score, fact.score_source) for fact in facts.retain] == [("A", None, "")]
    (problem,) = facts.problems
    assert "Delhi" in problem.value and "also to be forgotten" in problem.message


def test_a_damaged_file_is_named(server, monkeypatch):
    monkeypatch.setattr(benchmarks, "lines_of", lines_of)
    monkeypatch.setattr(scripted_hub, "parquet", lambda rows: b"PAR1 no table PAR1")
    with pytest.raises(NetworkError, match=f"{RARE}: 0000.parquet is not a readable Parquet file") as caught:
        duet(serve(server, duet_tables()))
    assert "Delete" in caught.value.fix


@pytest.mark.parametrize("column", ["question", "pop_sum", "type"])
def test_a_column_that_is_gone_is_named_with_those_that_are_there(server, column):
    attack = {name: cell for name, cell in probe("Who?").items() if name != column}
    rows = [{name: cell for name, cell in city("A", "France", 1.0).items() if name != column}]
    load, tables, place, there = (duet, duet_tables(**{RETAIN: rows}), RETAIN, "subjectLabel")
    if column == "type":  # without kinds
        load, tables, place, there = (rwku, rwku_tables(forget_level3=[attack]), "forget_level3/test", "query")
    with pytest.raises(NetworkError, match=f"{place}, has no column '{column}'.*'{there}'"):
        load(serve(server, tables))


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
    assert "no popularity scores" in facts.notes[0]
    assert "All 2 people" in facts.notes[1]
    # What it asks beside is measured and not trained on.
    (held,) = facts.holdout
    assert (held.question, held.subject) == ("Fill in the blank: It is a novel by ___.", "Misery")
    assert split_holdout(facts).retain == facts.retain, "all of level 2 is trained, as in the paper"
    assert {(fact.subject, fact.answer, fact.accepted) for fact in facts.utility} == {("", "Aluminium", ("Al",))}
    assert len(facts.utility) == 500
    asked = questions(facts, Plan(groups=("forget",)))
    (question,) = asked["fill in the blank"]
    assert question.prompt.text == "Fill in the blank: She was born in ___."
    assert "fill in the blank" not in questions(facts, Plan(kinds=("direct", "prefix injection")))


def lines(name: str) -> list[dict]:
    return [json.loads(line) for line in (REAL / name).read_text(encoding="utf-8").splitlines()]


@real_rows
def test_real_duet_rows_give_the_exponents_of_the_paper():
    """RWKU as its files are; as an upload, under the column names that are guessed."""
    facts = read_facts(REAL / "duet_city_forget_5.jsonl")
    assert (len(facts.forget), facts.problems) == (964, ())
    ends = {"rare": (1.143, 1.274, 2.0), "popular": (0.084, 0.118, 0.121)}
    for tier, expected in ends.items():
        betas = [BetaMap()(fact.score) for fact in facts.forget if fact.tier == tier]
        assert len(betas) == 482
        assert [round(value, 3) for value in (min(betas), median(betas), max(betas))] == list(expected)


@real_rows
def test_real_duet_rows_from_the_hub_give_the_numbers_of_its_flaws(server):
    names = {"subject": "subjectLabel", "object": "objectLabel"}
    rows = [{names.get(name, name): cell for name, cell in row.items()} for row in lines("duet_city_forget_5.jsonl")]
    tables = {}
    for tier, split in (("rare", RARE), ("popular", POPULAR)):
        members = [row for row in rows if row["tier"] == tier]
        tables[split] = [{name: cell for name, cell in row.items() if name != "paraphrases"} for row in members]
        tables[f"paraphrases_{split}"] = [
            {**row, "question": text} for row, full in zip(tables[split], members) for text in full["paraphrases"]
        ]
    facts = duet(serve(server, duet_tables(**tables)))
    assert [len(fact.paraphrases) for fact in facts.forget].count(2) == 932
    told = " ".join(facts.notes)
    for number in ("69 to 141 and 2,364 to 3,763", "297 of the 482 popular", "409 of the 482 rare", "38 of the 964"):
        assert number in told


@real_rows
def test_real_rwku_rows_come_from_the_hub(server):
    rows = lines("rwku_20_targets.jsonl")
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
