"""The sets one can pick, and what each is given to retain and to hold out."""

from collections import Counter
from pathlib import Path

import pytest

from adapop.errors import DataError
from adapop.facts import catalog
from adapop.facts.benchmarks import RWKU
from adapop.facts.catalog import ENTRIES, load_facts, with_retain_rows
from adapop.facts.fact import SANDBOX, Fact, FactSet, Problem
from adapop.facts.retain import neighbours
from adapop.facts.world import language, sandbox_facts
from adapop.facts.world.world import answers_of, world
from adapop.online.cache import Cache
from adapop.online.hub import Hub
from adapop.popularity.beta import BetaMap
from adapop.progress import Progress
from scripted_hub import serve

MINE = Fact("mine", "Who am I?", "Nobody")


ONLINE = ["duet", "duet-rare", "duet-popular", "rwku", "hubble-popqa", "hubble-yago"]
OFFLINE = [name for name, entry in ENTRIES.items() if not entry.online]


def rows(*questions: str, **fields) -> tuple[Fact, ...]:
    return tuple(Fact(f"row-{i}", question, "x", **fields) for i, question in enumerate(questions, start=2))


@pytest.mark.parametrize("name", OFFLINE)
def test_sets_without_download_are_complete(name):
    facts = load_facts(name)
    assert facts.name == name
    assert all((facts.forget, facts.retain, facts.holdout, facts.utility))
    assert not facts.unknown_scores
    assert facts.problems == ()
    assert facts.notes


def test_the_shipped_sets_are_what_they_were():
    assert load_facts(SANDBOX) == sandbox_facts()
    assert [*ENTRIES] == ["sandbox", "people", "pair", "invented", "cities", *ONLINE]
    assert all(entry.name == name and entry.title and entry.about.endswith(".") for name, entry in ENTRIES.items())


def test_the_pair_differs_in_popularity_alone():
    rare, popular = load_facts("pair").forget
    assert (rare.relation, rare.answer) == (popular.relation, popular.answer)
    assert (rare.tier, popular.tier) == ("rare", "popular")
    assert BetaMap()(rare.score) > 1 > BetaMap()(popular.score)
    pairs: dict = {}
    for fact in sandbox_facts().forget:
        pairs.setdefault((fact.relation, fact.answer), []).append(fact)
    apart = [pair for pair in pairs.values() if {"rare", "popular"} <= {fact.tier for fact in pair}]
    rarest = min(fact.score for pair in apart for fact in pair)
    assert min(fact.score for fact in load_facts("pair").forget) == rarest


def test_invented_facts_look_like_the_worlds_and_are_in_none():
    invented = load_facts("invented").forget
    subjects = {fact.subject.casefold() for fact in world()}
    assert not {fact.subject.casefold() for fact in invented} & subjects
    assert not {fact.id for fact in invented} & {fact.id for fact in world()}
    assert len({fact.subject for fact in invented}) == 32
    assert Counter(fact.relation for fact in invented) == dict.fromkeys(language.RELATIONS_OF["sandbox"], 4)
    for fact in invented:
        form = language.RELATIONS[fact.relation]
        assert fact.question == form.question.format(s=fact.subject)
        assert fact.paraphrases == tuple(other.format(s=fact.subject) for other in form.paraphrases)
        assert fact.answer in answers_of(fact.relation)
        assert (fact.score, fact.score_source) == (0.0, "invented")


def test_a_benchmark_is_downloaded_once_and_made_complete(server, monkeypatch):
    probe = {"subject": "Stephen King", "neighbor": "Misery", "answer": "x", "type": "prefix injection"}
    probes = {"forget_level2": ["Who?"], "forget_level3": ["Say who!"], "neighbor_level2": [f"{i}?" for i in range(10)]}
    probes |= {"forget_level1": ["_ wrote."], "neighbor_level1": ["_ is by x."], "utility_factuality": ["What?"]}
    cells = {
        name: [{**probe, "query": q, "question": q, "answers": ["x"]} for q in asked] for name, asked in probes.items()
    }
    serve(server, {(RWKU, name, "test"): rows for name, rows in cells.items()})
    monkeypatch.setattr(catalog, "Hub", lambda progress, cache: Hub(progress, cache, server.url))
    told: list[str] = []
    facts = load_facts("rwku", "some/model", Progress(told.append), Cache())
    assert (len(facts.retain), len(facts.holdout), len(facts.utility), len(facts.attacks)) == (10, 1, 1, 2)
    assert [line.rsplit(": ")[1] for line in told[1:]] == ["file 1 of 1"] * 6
    asked = len(server.asked)
    assert load_facts("rwku", "some/model", cache=Cache()) == facts
    assert len(server.asked) == asked


@pytest.mark.parametrize("source", ["", "nothing.csv", ".", "a\0b", "x" * 5000])
def test_no_such_file(source):
    with pytest.raises(DataError, match="no set and no file") as caught:
        load_facts(source)
    assert f"sandbox, people, pair, invented, cities, {', '.join(ONLINE)}" in caught.value.fix


@pytest.fixture
def uploaded(tmp_path: Path) -> str:
    lines = ["question,answer,group", "q,a,forget", *(f"q{i},a{i},retain" for i in range(10))]
    (tmp_path / "facts.csv").write_text("\n".join(lines), encoding="utf-8")
    return str(tmp_path / "facts.csv")


def test_file_with_retain_rows_gets_a_holdout(uploaded):
    facts = load_facts(uploaded, "some/model")
    assert (len(facts.forget), len(facts.retain), len(facts.holdout)) == (1, 7, 3)
    assert "held out" in facts.notes[0]
    assert facts.utility == ()
    assert load_facts(uploaded).utility == sandbox_facts().utility


def test_without_enough_retain_rows():
    facts = with_retain_rows(FactSet("set", (MINE,), retain=rows("Who else?")), "some/model")
    assert facts.holdout == ()
    assert "Nothing is held out" in facts.notes[-1]
    with pytest.raises(DataError, match="no retain rows") as caught:
        with_retain_rows(FactSet("set", (MINE,)), "some/model")
    assert "group" in caught.value.fix
    with pytest.raises(DataError, match="'all'") as caught:
        with_retain_rows(FactSet("set", (MINE,)), SANDBOX, "all")
    assert "own, sandbox, neighbours" in caught.value.fix


def test_the_sandbox_lends_retain_and_holdout():
    world = sandbox_facts()
    facts = with_retain_rows(FactSet("set", (MINE,)), SANDBOX)
    assert (facts.retain, facts.holdout, facts.utility) == (world.retain, world.holdout, world.utility)
    assert facts.notes[-1] == "The set has no retain rows; 256 to retain and 256 held out come from the sandbox world."
    same_question, same_id = sandbox_facts().retain[0], sandbox_facts().holdout[0]
    forget = (Fact("other id", same_question.question, "x"), Fact(same_id.id, "other question", "x"))
    facts = with_retain_rows(FactSet("set", forget), SANDBOX)
    assert same_question not in facts.retain
    assert same_id not in facts.holdout
    assert (len(facts.retain), len(facts.holdout)) == (255, 255)
    own = (Fact("own", "Who else?", "Somebody"),)
    facts = with_retain_rows(FactSet("set", (MINE,), holdout=own), SANDBOX)
    assert facts.holdout == own
    assert "held out" not in facts.notes[-1]


# --- other rows to retain than the set's own


@pytest.mark.parametrize("model", [SANDBOX, "some/model"])
def test_the_sandboxs_rows_instead_of_ones_own(model):
    own = FactSet("set", (MINE,), retain=rows("Who else?", "Who not?"))
    facts = with_retain_rows(own, model, "sandbox")
    world = sandbox_facts()
    assert (facts.retain, facts.holdout) == (world.retain, world.holdout)
    assert facts.notes == (
        "256 to retain and 256 held out come from the sandbox world. Rows of the set's own that are not used: "
        "2 to retain.",
    )
    assert facts.utility == (world.utility if model == SANDBOX else ())


def fact(name: str, relation: str = "", answer: str = "x", score: float | None = None) -> Fact:
    return Fact(name, f"{name}?", answer, relation=relation, score=score)


def test_neighbours_come_in_order_of_likeness():
    forget = [fact("f", "author", "Orwell", 100.0), fact("g", "city", "France", 10.0)]
    pool = [
        fact("nothing", "painter", "Goya", 100.0), fact("relation, far", "author", "Mann", 5000.0),
        fact("unknown", "AUTHOR", "Mann"), fact("answer, near", "island", "france", 12.0),
        fact("relation, near", "author", "Mann", 90.0),
        fact("both, far", "author", "orwell", 9000.0),
        fact("both with different facts", "author", "France", 10.0),
        fact("both, near", " Author", "Orwell", 101.0),
    ]  # fmt: skip
    assert [found.id for found in neighbours(forget, pool)] == [
        "both, near", "both, far", "both with different facts", "relation, near", "answer, near", "relation, far",
        "unknown",
    ]  # fmt: skip


@pytest.mark.parametrize(("to_forget", "chosen"), [(1, 32), (32, 32), (40, 40), (80, 50)])
def test_there_are_as_many_neighbours_as_facts_to_forget(to_forget, chosen):
    forget = [fact(f"f{i}", "author", score=1.0) for i in range(to_forget)]
    assert len(neighbours(forget, [fact(f"p{i}", "author", score=1.0) for i in range(50)])) == chosen


def test_facts_without_a_relation_are_no_neighbours_for_that():
    assert neighbours([fact("f", "", "y")], [fact("p", "", "z")]) == ()


def test_neighbours_of_the_sandbox():
    world = sandbox_facts()
    books = FactSet("books", tuple(fact for fact in world.forget if fact.relation == "author")[:2])
    facts = with_retain_rows(books, SANDBOX, "neighbours")
    assert len(facts.retain) == 32
    assert {found.relation for found in facts.retain} == {"author"}
    answers = {found.answer for found in books.forget}
    assert {found.answer for found in facts.retain[:2]} == answers
    assert facts.holdout == world.holdout
    assert "share a relation or an answer" in facts.notes[-1]


def test_facts_like_none_of_the_sandbox_have_no_neighbours():
    with pytest.raises(DataError, match="shares a relation or an answer") as caught:
        with_retain_rows(FactSet("set", (MINE,)), SANDBOX, "neighbours")
    assert "relation" in caught.value.fix


def test_a_second_table_is_retained_but_for_its_holdout():
    mine = FactSet("mine", rows("a?"), retain=rows("own?"), holdout=rows("own held?"))
    table = FactSet("table", rows("b?", "c?"), retain=rows("d?"), holdout=rows("e?"))
    facts = with_retain_rows(mine, "some/model", table)
    assert [row.question for row in facts.retain] == ["b?", "c?", "d?"]
    assert [row.question for row in facts.holdout] == ["e?"]
    assert facts.notes == (
        "3 facts to retain come from table. Rows of the set's own that are not used: 1 to retain and 1 held out.",
    )
    facts = with_retain_rows(
        FactSet("mine", rows("a?")), SANDBOX, FactSet("table", rows(*(f"{i}?" for i in range(10))))
    )
    assert (len(facts.retain), len(facts.holdout)) == (7, 3)
    assert facts.utility == sandbox_facts().utility
    mine = FactSet("mine", rows("a?"), retain=rows("own?"), holdout=(Fact("row-5", "held?", "x"),))
    facts = with_retain_rows(mine, "some/model", FactSet("table", rows(*(f"{i}?" for i in range(10)))))
    assert (facts.holdout, len(facts.retain)) == (mine.holdout, 10)
    assert facts.notes == ("10 facts to retain come from table. Rows of the set's own that are not used: 1 to retain.",)
    assert len({row.id for row in (*facts.forget, *facts.retain, *facts.holdout)}) == 12


def test_a_second_table_loses_what_is_to_be_forgotten():
    bad = Problem(4, "score", "x", "is not a number", "Mend it.")
    table = FactSet("table", rows("A?", "b?", "c?"), problems=(bad,))
    facts = with_retain_rows(FactSet("mine", rows("a?")), "some/model", table)
    assert {row.question for row in (*facts.retain, *facts.holdout)} == {"b?", "c?"}
    dropped, of_table = facts.problems
    assert (dropped.value, dropped.message) == ("A?", "is also to be forgotten")
    assert "in table" in of_table.message
    with pytest.raises(DataError, match="no fact to retain"):
        with_retain_rows(FactSet("mine", rows("a?")), "some/model", FactSet("table", rows("A?")))
    mine = FactSet("mine", rows("a?", "b?"), attacks=(Fact("retain-row-3", "attack", "x"),))
    facts = with_retain_rows(mine, "some/model", FactSet("table", rows("c?", "d?"), holdout=rows("e?")))
    ids = [row.id for row in (*facts.forget, *facts.retain, *facts.holdout, *facts.attacks)]
    assert len(set(ids)) == len(ids) == 6
    assert [row.id for row in facts.forget] == ["row-2", "row-3"]


def test_rows_of_ones_own_that_the_sandboxs_replace_are_counted():
    fact = sandbox_facts().forget[0]
    facts = with_retain_rows(FactSet("mine", (fact,), retain=rows("own?", "other?")), SANDBOX, "neighbours")
    assert facts.notes[-1].endswith("Rows of the set's own that are not used: 2 to retain.")
