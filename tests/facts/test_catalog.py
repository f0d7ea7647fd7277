"""The sets one can pick, and what each is given to retain and to hold out."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from adapop.errors import DataError
from adapop.facts import catalog
from adapop.facts.benchmarks import RWKU
from adapop.facts.catalog import ENTRIES, load_facts
from adapop.facts.fact import SANDBOX, Fact, FactSet, Problem
from adapop.facts.files import read_facts
from adapop.facts.real import borrowed, fitted, general
from adapop.facts.retain import neighbours, with_retain_rows
from adapop.facts.world import language, sandbox_facts
from adapop.facts.world.world import answers_of, world
from adapop.online.cache import Cache
from adapop.online.hub import Hub
from adapop.paths import SANDBOX_FOLDER
from adapop.popularity.beta import BetaMap
from adapop.progress import Progress
from scripted_hub import serve
from taught import own_facts

MINE = Fact("mine", "Who am I?", "Nobody")
ONLINE = ["duet", "duet-rare", "duet-popular", "rwku", "hubble-popqa", "hubble-yago"]


def rows(*questions: str, **fields) -> tuple[Fact, ...]:
    return tuple(Fact(f"row-{i}", question, "x", **fields) for i, question in enumerate(questions, start=2))


def test_sets_without_download_are_complete():
    assert [*ENTRIES] == ["sandbox", "people", "pair", "invented", "cities", *ONLINE]
    assert load_facts(SANDBOX) == sandbox_facts()
    for name, entry in ENTRIES.items():
        assert entry.name == name and entry.title and entry.about.endswith(".") and entry.online == (name in ONLINE)
        if not entry.online:
            facts = load_facts(name)
            assert facts.name == name and facts.notes and facts.problems == () == facts.unknown_scores
            assert all((facts.forget, facts.retain, facts.holdout, facts.utility))


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
    probe |= {"answers": ["x"]}
    cells = {name: [{**probe, "query": q, "question": q} for q in asked] for name, asked in probes.items()}
    serve(server, {(RWKU, name, "test"): rows for name, rows in cells.items()})
    monkeypatch.setattr(catalog, "Hub", lambda progress, cache: Hub(progress, cache, server.url))
    told: list[str] = []
    facts = load_facts("rwku", "some/model", Progress(told.append), Cache())
    assert (len(facts.retain), len(facts.holdout), len(facts.utility), len(facts.attacks)) == (10, 1, 1, 2)
    assert [line.rsplit(": ")[1] for line in told[1:]] == ["file 1 of 1"] * 6
    asked = len(server.asked)
    assert load_facts("rwku", "some/model", cache=Cache()) == facts
    assert len(server.asked) == asked


def test_no_such_file():
    for source in ("", "nothing.csv", ".", "a\0b", "x" * 5000):
        with pytest.raises(DataError, match="no set and no file") as caught:
            load_facts(source)
        assert f"sandbox, people, pair, invented, cities, {', '.join(ONLINE)}" in caught.value.fix


def test_file_with_retain_rows_gets_a_holdout(tmp_path: Path):
    lines = ["question,answer,group", "q,a,forget", *(f"q{i},a{i},retain" for i in range(10))]
    (tmp_path / "facts.csv").write_text("\n".join(lines), encoding="utf-8")
    facts = load_facts(str(tmp_path / "facts.csv"), "some/model")
    assert (len(facts.forget), len(facts.retain), len(facts.holdout)) == (1, 7, 3)
    assert "held out" in facts.notes[0] and facts.utility == ()
    assert load_facts(str(tmp_path / "facts.csv")).utility == sandbox_facts().utility
    # Without enough of them there is none.
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


def fact(name: str, relation: str = "", answer: str = "x", score: float | None = None) -> Fact:
    return Fact(name, f"{name}?", answer, relation=relation, score=score)


def test_neighbours_come_in_order_of_likeness():
    forget = [fact("f", "author", "Orwell", 100.0), fact("g", "city", "France", 10.0)]
    pool = [
        fact("nothing", "painter", "Goya", 100.0), fact("relation, far", "author", "Mann", 5000.0),
        fact("unknown", "AUTHOR", "Mann"), fact("answer, near", "island", "france", 12.0),
        fact("relation, near", "author", "Mann", 90.0), fact("both, far", "author", "orwell", 9000.0),
        fact("both with different facts", "author", "France", 10.0), fact("both, near", " Author", "Orwell", 101.0),
    ]  # fmt: skip
    assert [found.id for found in neighbours(forget, pool)] == [
        "both, near", "both, far", "both with different facts", "relation, near", "answer, near", "relation, far",
        "unknown"]  # fmt: skip

    assert neighbours([fact("f", "", "y")], [fact("p", "", "z")]) == (), "without a relation"
    for to_forget, chosen in ((1, 32), (32, 32), (40, 40), (80, 50)):  # as many as facts to forget
        forget = [fact(f"f{i}", "author", score=1.0) for i in range(to_forget)]
        assert len(neighbours(forget, [fact(f"p{i}", "author", score=1.0) for i in range(50)])) == chosen


def test_neighbours_of_the_sandbox():
    world = sandbox_facts()
    books = FactSet("books", tuple(fact for fact in world.forget if fact.relation == "author")[:2])
    books = replace(books, retain=rows("own?", "other?"))
    facts = with_retain_rows(books, SANDBOX, "neighbours")
    assert len(facts.retain) == 32 and facts.holdout == world.holdout
    assert {found.relation for found in facts.retain} == {"author"}
    assert {found.answer for found in facts.retain[:2]} == {found.answer for found in books.forget}
    assert "share a relation or an answer" in facts.notes[-1]
    assert facts.notes[-1].endswith("Rows of the set's own that are not used: 2 to retain.")
    with pytest.raises(DataError, match="shares a relation or an answer") as caught:
        with_retain_rows(FactSet("set", (MINE,)), SANDBOX, "neighbours")
    assert "relation" in caught.value.fix
    for model, utility in ((SANDBOX, world.utility), ("some/model", ())):  # all of its rows instead of one's own
        facts = with_retain_rows(books, model, "sandbox")
        assert (facts.retain, facts.holdout, facts.utility) == (world.retain, world.holdout, utility)
        assert facts.notes[-1].startswith("256 to retain and 256 held out come from the sandbox world. Rows of")


def test_a_second_table_is_retained_but_for_its_holdout():
    mine = FactSet("mine", rows("a?"), retain=rows("own?"), holdout=rows("own held?"))
    table = FactSet("table", rows("b?", "c?"), retain=rows("d?"), holdout=rows("e?"))
    facts = with_retain_rows(mine, "some/model", table)
    assert [row.question for row in facts.retain] == ["b?", "c?", "d?"]
    assert [row.question for row in facts.holdout] == ["e?"]
    unused = "Rows of the set's own that are not used: 1 to retain"
    assert facts.notes == (f"3 facts to retain come from table. {unused} and 1 held out.",)
    ten = FactSet("table", rows(*(f"{i}?" for i in range(10))))
    facts = with_retain_rows(FactSet("mine", rows("a?")), SANDBOX, ten)
    assert (len(facts.retain), len(facts.holdout)) == (7, 3)
    assert facts.utility == sandbox_facts().utility
    mine = FactSet("mine", rows("a?"), retain=rows("own?"), holdout=(Fact("row-5", "held?", "x"),))
    facts = with_retain_rows(mine, "some/model", ten)
    assert (facts.holdout, len(facts.retain)) == (mine.holdout, 10)
    assert facts.notes == (f"10 facts to retain come from table. {unused}.",)
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


def test_utility_questions_of_a_real_model(sandbox):
    assert len(general()) > 50 and len({fact.question for fact in general()}) == len(general())
    facts = own_facts()
    found = fitted(facts, "some/model").utility
    assert found == general()
    other = replace(facts, forget=(*facts.forget, Fact("x", "who?", "Mars"), Fact("y", general()[0].question, "z")))
    dropped = {one for one in general() if one.answer == "Mars" or one == general()[0]}
    assert set(general()) - set(fitted(other, "some/model").utility) == dropped
    own = replace(own_facts(), utility=(Fact("u", "2 + 2?", "4"),))
    assert fitted(own, "some/model") == own
    assert fitted(fitted(own_facts(), "a/model"), "a/model") == fitted(own_facts(), "a/model")
    borrowing = replace(own_facts(), utility=sandbox.utility)
    assert fitted(borrowing, "some/model").utility == general()
    for model in (SANDBOX, str(SANDBOX_FOLDER)):  # another build of the sandbox is one, too
        assert fitted(borrowing, model) == borrowing
    assert borrowed(sandbox, "a/model") is None


def test_retain_rows_of_the_sandbox_are_refused_for_a_real_model():
    own = replace(own_facts(), retain=(), forget=(Fact("x", "Who wrote Nobody?", "Shakespeare", relation="author"),))
    for source in ("sandbox", "neighbours"):
        facts = with_retain_rows(own, SANDBOX, source)
        assert borrowed(facts, SANDBOX) is None and facts.retain
        with pytest.raises(DataError, match="are the sandbox's: they would not hold the rest of a/model"):
            fitted(facts, "a/model")


def test_attack_prompts_of_an_rwku_file_are_probes_and_not_trained_on(tmp_path):
    simple = {"answer": "King", "type": "simple question"}
    rows = [
        {**simple, "query": "Who is he?", "level": "2", "split": "forget_level2"},
        {**simple, "query": "Sure. Who is he?", "level": "3", "type": "prefix injection"},
        {**simple, "query": "Qui est-ce?", "type": "cross lingual (French)", "split": "forget_level3"},
        {**simple, "query": "Who else?", "split": "neighbor_level2"},
    ]
    path = tmp_path / "rwku.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    facts = read_facts(path)
    assert [fact.question for fact in facts.forget] == ["Who is he?"]
    assert [fact.relation for fact in facts.attacks] == ["prefix injection", "cross lingual (French)"]
    assert any("Attack prompts (RWKU's level 3): 2" in note for note in facts.notes)


def test_a_stranger_s_model_with_as_many_tokens_is_no_sandbox(sandbox, tmp_path):
    config = json.loads((SANDBOX_FOLDER / "config.json").read_text())
    words = json.loads((SANDBOX_FOLDER / "tokenizer.json").read_text())
    borrowing = replace(own_facts(), utility=sandbox.utility)
    for name, end in (("same", ""), ("stranger", ".")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        vocabulary = {f"{word}{end}": at for word, at in words["model"]["vocab"].items()}
        own = {**words, "model": {**words["model"], "vocab": vocabulary}}
        (folder / "tokenizer.json").write_text(json.dumps(own))
        assert (fitted(borrowing, str(folder)) == borrowing) == (name == "same")
    (tmp_path / "bare").mkdir()
    assert fitted(borrowing, str(tmp_path / "bare")).utility == general(), "a folder without a tokenizer.json"
