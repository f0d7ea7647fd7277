import json
from collections import Counter
from dataclasses import asdict, replace

import pytest

from adapop.assets import as_kind
from adapop.errors import DataError
from adapop.facts import catalog
from adapop.facts.benchmarks import RWKU
from adapop.facts.catalog import ENTRIES, load_facts
from adapop.facts.fact import LISTS, SANDBOX, Fact, FactSet, Problem, separated
from adapop.facts.files import read_facts
from adapop.facts.retain import fitted, general, included_cities, neighbours, split_holdout, with_retain_rows
from adapop.facts.scale import with_tiers
from adapop.facts.tiers import ON_SCALE, Tiers, terciles
from adapop.facts.world import language, sandbox_facts
from adapop.facts.world.world import answers_of, world
from adapop.online.cache import Cache
from adapop.online.hub import Hub
from adapop.paths import SANDBOX_FOLDER
from adapop.popularity.base import Score, write_scored
from adapop.popularity.beta import BetaMap
from adapop.progress import Progress
from adapop.remark import Remark
from fact_files import notes_of, write
from raised import raised
from scripted_hub import serve
from taught import own_facts

ODD_TEXTS = (
    "a line separator \u2028 and a next line \x85", "quotes \"double\" and 'single' and a \\ backslash",
    "<script>alert('x')</script> & <b>bold</b>", "emoji 🦜 and a family 👩‍👩‍👧",
    "two\nlines, a\ttab and a\r return", "=HYPERLINK(1) | {s} %s")  # fmt: skip
MINE = Fact("mine", "Who am I?", "Nobody")
ONLINE = ["duet", "duet-rare", "duet-popular", "rwku", "hubble-popqa", "hubble-yago"]


def numbered(count: int, prefix: str = "r") -> tuple[Fact, ...]:
    return tuple(Fact(f"{prefix}{i}", f"question {i}?", f"answer {i}") for i in range(count))


def test_tiers_on_the_scale_and_thirds_of_the_scores_with_their_bounds_and_labels():
    tiers = {None: "unknown", 0.0: "rare", 265.0: "rare", 265.1: "middle", 999.9: "middle", 1000.0: "popular"}
    assert {score: Fact("a", "q", "a", score=score).tier for score in tiers} == tiers
    for scores, tiers in (
        ([1, 2, 3, 4, 5, 6], "rrmmpp"), ([6e6, 1e6, 3e6], "prm"), ([5, 5, 9], "rrp"), ([0, None, 1, 2], "rump"),
        ([1, 1, 1, 1, 2, 3], "rrrrmp"),  # ties keep together: no cut between equal scores
        ([1, 2, 2, 2, 2, 3], "rmmmmp"), ([1, 2, 3, 3, 3, 3], "rmpppp"), ([5, 5, 5], "mmm"),
        ([1, 1, 2, 2, 2, 3, 3, 4], "rrmmmppp"),  # cuts after 2 and 5 of 8 are nearest to 2.67 and 5.33
    ):  # fmt: skip
        assert tiers_of(with_tiers(scored(scores)).forget) == tiers
    for scores, kind, counts in (
        ([1, 2, 3], "tiers_thirds", "1 rare (up to 1), 1 middle (2), 1 popular (from 3)"),
        ([5, 5, 9], "tiers_two_scores", "2 rare (up to 5), 1 popular (from 9)"),
        ([5, 5], "tiers_equal_scores", "2 middle (5)")):  # fmt: skip
        assert with_tiers(scored(scores)).notes == (Remark(kind, {"counts": counts}),)
    facts = with_tiers(scored([100, 200, 300], retain=facts_of([50, 100, 150, 250, 300, 9e9, None], prefix="r")))
    assert tiers_of(facts.retain) == "rrmmppu"
    tiers = terciles([10_000, 48_000, 48_900, 310_000, 320_000, 5e6])
    assert [tiers.label(tier) for tier in ("rare", "middle", "popular", "all", "unknown")] == [
        "rare (up to 48,000)", "middle (48,900 to 310,000)", "popular (from 320,000)", "all", "unknown"]  # fmt: skip
    assert ON_SCALE.text == "rare (up to 265), middle (265 to 1,000), popular (from 1,000)"
    assert terciles([0.25, 0.5]).text == "rare (up to 0.25), popular (from 0.5)"
    assert terciles([5.0]).text == "middle (5)"
    for written in (tiers, replace(tiers, note="Tiers are thirds, as older versions wrote.")):
        assert as_kind(asdict(written), Tiers) == written
    bare = with_tiers(scored([None, None, None]))
    assert (tiers_of(bare.forget), bare.tiers, bare.notes) == ("uuu", Tiers(), ())
    looked_up = replace(bare, forget=facts_of([7e5, 8e5, 9e5]))
    assert tiers_of(with_tiers(looked_up, anew=True).forget) == "rmp"


def test_problem_says_where_what_and_fix_and_invents_no_row_or_column():
    assert str(Problem(3, "score", "-1", "is odd", "Mend it")) == "row 3, 'score' ('-1') is odd. Mend it"
    for row, column, start in ((0, "", "file bad"), (4, "", "row 4 bad"), (0, "score", "'score' bad")):
        assert str(Problem(row, column, "", "bad", "Fix")).startswith(start)


def test_a_written_set_is_read_again_as_it_was(tmp_path):
    names = ("id", "question", "answer", "subject", "relation", "object", "score_source")
    given = [(text, dict.fromkeys(names, text)) for text in ODD_TEXTS]
    forget = [Fact(**texts, score=12.5, paraphrases=(text, "plain"), alternates=(text,)) for text, texts in given]
    forget += [Fact("a", "q", "a", score=None), Fact("b", "r", "a", score=0.0)]
    groups = {
        "retain": numbered(2), "holdout": numbered(1, "h"), "utility": numbered(3, "u"), "attacks": numbered(2, "a"),
        "neighbours": numbered(1, "n"), "examples": numbered(1, "e")}  # fmt: skip
    facts = FactSet("set", tuple(forget), **groups, notes=("n",))
    facts.write(tmp_path / "facts.jsonl")
    again = FactSet.load(tmp_path / "facts.jsonl", "set", ["n"])
    assert again == facts and again.sha256 == facts.sha256 and [fact.id for fact in again.unknown_scores] == ["a"]
    lines = (tmp_path / "facts.jsonl").read_bytes().decode().split("\n")
    assert [json.loads(line)["question"] for line in lines[: len(ODD_TEXTS)]] == list(ODD_TEXTS)


def test_hash_sees_every_change_of_the_data_and_nothing_else():
    facts = FactSet("set", (Fact("a", "q", "x"),))
    for change in (
        {"forget": (Fact("a", "q", "other"),)}, {"forget": (Fact("a", "q", "x", score=0.0),)},
        {"forget": (Fact("a", "q", "x", paraphrases=("p",)),)}, {"forget": (), "retain": (Fact("a", "q", "x"),)},
        *({group: numbered(1)} for group in ("holdout", "utility", "attacks", "neighbours", "examples"))):  # fmt: skip
        assert replace(facts, **change).sha256 != facts.sha256
    facts = FactSet("set", numbered(2, "f"), retain=numbered(1), utility=numbered(1, "u"))
    assert facts.sha256 == "ebc3dc3a39ca594c1e6e7850f65339fc8eb650a57ac87df999d827c86d20c2ef"
    assert replace(facts, name="other", notes=("a note", Remark("invented"))).sha256 == facts.sha256


@pytest.mark.parametrize("field", ["id", "question", "answer", "subject", "own_tier", "paraphrases", "parts"])
def test_half_a_character_in_a_fact_made_in_python_is_named(field):
    half = "cut \ud83d"
    texts = {"id": "f", "question": "Who?", "answer": "Ana"}
    with pytest.raises(DataError, match=rf"{field} of the fact '(f|cut \ufffd)' has a broken character.*'cut \ufffd'"):
        Fact(**{**texts, field: (half,) if field in LISTS else half})
    with pytest.raises(DataError, match="name of the set has a broken character"):
        FactSet(half, (Fact(**texts),))
    assert Fact(**{**texts, "answer": "a whole 🦜"}).answer == "a whole 🦜"


def test_split_holdout_is_disjoint_complete_by_ids_and_by_question():
    facts = FactSet("set", numbered(1, "f"), retain=numbered(20), notes=("before",))
    split = split_holdout(facts)
    assert (len(split.retain), len(split.holdout)) == (14, 6) and not set(split.retain) & set(split.holdout)
    assert set(split.retain) | set(split.holdout) == set(facts.retain) and split.notes[0] == "before"
    assert split.notes[1:] == (Remark("holdout_from_retain", {"holdout": 6, "retain": 20}),)
    forwards = FactSet("set", (), retain=numbered(20))
    backwards = FactSet("set", (), retain=tuple(replace(fact, answer="new") for fact in reversed(numbered(20))))
    held = [{fact.id for fact in split_holdout(facts).holdout} for facts in (forwards, backwards)]
    assert held[0] == held[1]
    split = split_holdout(FactSet("set", (), retain=numbered(2)))
    assert (len(split.retain), len(split.holdout)) == (1, 1)
    held = FactSet("own", numbered(1, "f"), retain=numbered(20), holdout=numbered(1, "h"))
    for alone in (held, FactSet("none", numbered(1, "f"))):
        assert split_holdout(alone) == alone
    for count in (1, 3):  # a single question is trained on, and the set says so
        rows = tuple(Fact(f"r{i}", "the same?", "x") for i in range(count))
        split = split_holdout(FactSet("set", (), retain=rows))
        assert (split.retain, split.holdout, split.notes) == (rows, (), (Remark("no_holdout"),))
    for seed in range(8):
        rows = tuple(Fact(f"{seed}-{i}", f"Question {'  ' * (i % 2)}{i % 4}?", "x") for i in range(12))
        split = split_holdout(FactSet("set", (), retain=rows))
        retained, held = ({fact.question.split()[1] for fact in facts} for facts in (split.retain, split.holdout))
        assert retained and held and not retained & held
        assert len(split.retain) + len(split.holdout) == 12


def test_separated_drops_the_less_urgent_use_of_a_question(small):
    assert separated(small) == small

    def one(name: str) -> Fact:
        return Fact(name, "Who?", "x")

    facts = FactSet("set", (one("f"),), retain=(one("r"), Fact("r2", "Why?", "x")), holdout=(Fact("h", "WHY?", "x"),))
    facts = replace(facts, holdout=(*facts.holdout, Fact("h2", "When?", "x")), neighbours=(Fact("n", "when?", "x"),))
    apart = separated(facts, {"r": 7})
    assert [fact.id for fact in (*apart.forget, *apart.retain, *apart.holdout)] == ["f", "r2", "h2"]
    assert [(p.row, p.value, p.message) for p in apart.problems] == [
        (7, "Who?", "is also to be forgotten"), (0, "WHY?", "is also to be retained"),
        (0, "when?", "is also to be held out")]  # fmt: skip


def scored(scores, source="column population", **groups):
    return FactSet("own", forget=facts_of(scores, source), **groups)


def facts_of(scores, source="column population", prefix="f"):
    named = [(f"{prefix}{i}", score) for i, score in enumerate(scores)]
    return tuple(Fact(name, f"Where is {name}?", "a", score=score, score_source=source) for name, score in named)


def tiers_of(facts):
    return "".join(fact.tier[0] for fact in facts)


def test_sets_on_their_own_scale_stay_as_they_are():
    for name in ("sandbox", "people", "pair", "invented"):
        facts = load_facts(name)
        assert with_tiers(facts) == with_tiers(facts, anew=True) == facts, name
        assert facts.tiers == ON_SCALE and {fact.own_tier for fact in facts.forget} == {""}, name
    duet = scored([70, 300, 2000], "DUET pop_sum")
    assert tiers_of(with_tiers(duet).forget) == "rmp" and with_tiers(duet).sha256 == duet.sha256
    rwku = FactSet("rwku", forget=tuple(replace(fact, id=f"rwku-forget-{fact.id}") for fact in duet.forget))
    assert with_tiers(rwku).tiers == ON_SCALE
    judged = replace(rwku, forget=tuple(replace(fact, score_source="LLM judge m") for fact in rwku.forget))
    assert with_tiers(judged).tiers.source == "terciles"


def test_tiers_are_of_the_whole_set_and_stay_in_a_written_one(tmp_path):
    facts = with_tiers(scored([1, 2, 3, 4, 5, 6]))
    part = with_tiers(replace(facts, forget=facts.forget[3:]))
    assert tiers_of(part.forget) == "mpp" and part.notes == facts.notes
    other = with_tiers(replace(facts, forget=tuple(replace(fact, score=7 - fact.score) for fact in facts.forget)), True)
    assert tiers_of(other.forget) == "ppmmrr"
    assert len(other.notes) == 1, "the old note is gone"
    facts = with_tiers(scored([1e4, 2e4, 3e4]))
    facts.write(tmp_path / "new.jsonl")
    assert FactSet.load(tmp_path / "new.jsonl", "own", facts.notes, facts.tiers) == facts
    alone = FactSet.load(tmp_path / "new.jsonl", "own")
    assert (tiers_of(alone.forget), alone.tiers.source) == ("rmp", "column")
    scored([1e4, 2e4, 3e4]).write(tmp_path / "old.jsonl")
    assert "own_tier" not in (tmp_path / "old.jsonl").read_text()
    assert tiers_of(FactSet.load(tmp_path / "old.jsonl", "own", (), ON_SCALE).forget) == "ppp"
    path = write(
        tmp_path, "facts.jsonl", '{"group": "forget", "id": "a", "question": "q", "answer": "a", "tier": "rare"}'
    )
    raised(DataError, "line 1", FactSet.load, path, "own")


def test_a_column_wins(tmp_path):
    text = "question,answer,score,Tier\nq1,a,9,Rare\nq2,b,1,POPULAR\nq3,c,5,\nq4,d,5,odd\n"
    facts = read_facts(write(tmp_path, "own.csv", text))
    assert tiers_of(facts.forget) == "rpu"
    (problem,) = facts.problems
    assert (problem.row, problem.column, problem.value) == (5, "Tier", "odd")
    facts = with_tiers(facts)
    assert replace(facts.tiers, note="") == Tiers("column", (9, 9), None, (1, 1))
    assert facts.tiers.note == Remark("tiers_of_file", {"counts": "1 rare (9), 1 popular (1)"})
    assert facts.notes.count(facts.tiers.note) == 1
    again = with_tiers(replace(facts, forget=tuple(replace(fact, score=7.0) for fact in facts.forget)), anew=True)
    assert tiers_of(again.forget) == "rpu" and again.tiers.rare == (7, 7)
    write_scored(facts, {fact.id: Score(fact.id, 3.0, "somewhere") for fact in facts.forget}, tmp_path / "out.csv")
    assert tiers_of(read_facts(tmp_path / "out.csv").forget) == "rpu"


def rows(*questions: str, **fields) -> tuple[Fact, ...]:
    return tuple(Fact(f"row-{i}", question, "x", **fields) for i, question in enumerate(questions, start=2))


def test_sets_without_download_are_complete_and_no_other_names_are_known():
    assert [*ENTRIES] == ["sandbox", "people", "pair", "invented", "cities", *ONLINE]
    assert load_facts(SANDBOX) == sandbox_facts()
    for name, entry in ENTRIES.items():
        assert entry.name == name and entry.title and entry.about.endswith(".") and entry.online == (name in ONLINE)
        if not entry.online:
            facts = load_facts(name)
            assert facts.name == name and facts.notes and facts.problems == () == facts.unknown_scores
            assert all((facts.forget, facts.retain, facts.holdout, facts.utility))
    for source in ("", "nothing.csv", ".", "a\0b", "x" * 5000):
        error = raised(DataError, "no set and no file", load_facts, source)
        assert f"sandbox, people, pair, invented, cities, {', '.join(ONLINE)}" in error.fix


def test_the_pair_differs_in_popularity_alone_and_invented_facts_are_in_no_world():
    rare, popular = load_facts("pair").forget
    assert (rare.relation, rare.answer) == (popular.relation, popular.answer)
    assert (rare.tier, popular.tier) == ("rare", "popular") and BetaMap()(rare.score) > 1 > BetaMap()(popular.score)
    pairs: dict = {}
    for fact in sandbox_facts().forget:
        pairs.setdefault((fact.relation, fact.answer), []).append(fact)
    apart = [pair for pair in pairs.values() if {"rare", "popular"} <= {fact.tier for fact in pair}]
    rarest = min(fact.score for pair in apart for fact in pair)
    assert min(fact.score for fact in load_facts("pair").forget) == rarest
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
        assert fact.answer in answers_of(fact.relation) and (fact.score, fact.score_source) == (0.0, "invented")


def test_a_benchmark_is_downloaded_once_and_made_complete(server, monkeypatch):
    probe = {"subject": "Stephen King", "neighbor": "Misery", "answer": "x", "type": "prefix injection"}
    probes = {"forget_level2": ["Who?"], "forget_level3": ["Say who!"], "neighbor_level2": [f"{i}?" for i in range(10)]}
    probes |= {"forget_level1": ["_ wrote."], "neighbor_level1": ["_ is by x."], "utility_factuality": ["What?"]}
    probe |= {"answers": ["x"]}
    cells = {name: [{**probe, "query": q, "question": q} for q in questions] for name, questions in probes.items()}
    serve(server, {(RWKU, name, "test"): rows for name, rows in cells.items()})
    monkeypatch.setattr(catalog, "Hub", lambda progress, cache: Hub(progress, cache, server.url))
    messages: list[str] = []
    facts = load_facts("rwku", "some/model", Progress(messages.append), Cache())
    assert (len(facts.retain), len(facts.holdout), len(facts.utility), len(facts.attacks)) == (10, 1, 1, 2)
    assert [line.rsplit(": ")[1] for line in messages[1:]] == ["file 1 of 1"] * 6
    count = len(server.asked)
    assert load_facts("rwku", "some/model", cache=Cache()) == facts and len(server.asked) == count


def test_file_with_retain_rows_gets_a_holdout(tmp_path):
    lines = ["question,answer,group", "q,a,forget", *(f"q{i},a{i},retain" for i in range(10))]
    path = str(write(tmp_path, "facts.csv", "\n".join(lines)))
    facts = load_facts(path, "some/model")
    assert (len(facts.forget), len(facts.retain), len(facts.holdout)) == (1, 7, 3)
    assert notes_of(facts) == {"holdout_from_retain": {"holdout": 3, "retain": 10}} and facts.utility == ()
    assert load_facts(path).utility == sandbox_facts().utility
    error = raised(DataError, "'all'", with_retain_rows, FactSet("set", (MINE,)), SANDBOX, "all")
    assert "own, sandbox, neighbours, split" in error.fix


def test_every_third_fact_of_a_set_by_score_is_kept_and_a_part_of_these_held_out():
    scored = tuple(replace(one, score=float(i)) for i, one in enumerate(rows(*(f"{i}?" for i in range(12)))))
    for model in (SANDBOX, "some/model"):
        facts = with_retain_rows(FactSet("mine", scored, retain=rows("own?")), model, "split")
        assert [fact.score for fact in facts.forget] == [0, 2, 3, 5, 6, 8, 9, 11]
        assert sorted(fact.score for fact in (*facts.retain, *facts.holdout)) == [1, 4, 7, 10] and facts.holdout
        assert notes_of(facts)["split_retain"] == {"retain": 4, "facts": 12}
        assert notes_of(facts)["own_retain_unused"] == {"retain": 1}
    raised(DataError, "too few facts", with_retain_rows, FactSet("mine", scored[:2]), SANDBOX, "split")


def test_the_sandbox_lends_retain_and_holdout():
    world, facts = sandbox_facts(), with_retain_rows(FactSet("set", (MINE,)), SANDBOX)
    assert (facts.retain, facts.holdout, facts.utility) == (world.retain, world.holdout, world.utility)
    lent = Remark("world_retain", {"retain": 256, "world": "sandbox"})
    held = Remark("world_holdout", {"holdout": 256, "world": "sandbox"})
    assert facts.notes == (lent, held)
    same_question, same_id = sandbox_facts().retain[0], sandbox_facts().holdout[0]
    forget = (Fact("other id", same_question.question, "x"), Fact(same_id.id, "other question", "x"))
    facts = with_retain_rows(FactSet("set", forget), SANDBOX)
    assert same_question not in facts.retain and same_id not in facts.holdout
    assert (len(facts.retain), len(facts.holdout)) == (255, 255)
    own = (Fact("own", "Who else?", "Somebody"),)
    facts = with_retain_rows(FactSet("set", (MINE,), holdout=own), SANDBOX)
    assert facts.holdout == own
    assert facts.notes == (lent,)


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
    others = {"world_holdout": {"holdout": 256, "world": "sandbox"}, "own_retain_unused": {"retain": 2}}
    assert notes_of(facts) == {"neighbours_retain": {"retain": 32, "world": "sandbox"}, **others}
    assert (
        "relation" in raised(DataError, "shares", with_retain_rows, FactSet("set", (MINE,)), SANDBOX, "neighbours").fix
    )
    for model, utility in ((SANDBOX, world.utility), ("some/model", ())):  # all of its rows instead of one's own
        facts = with_retain_rows(books, model, "sandbox")
        assert (facts.retain, facts.holdout, facts.utility) == (world.retain, world.holdout, utility)
        assert notes_of(facts) == {"world_retain": {"retain": 256, "world": "sandbox"}, **others}


def test_a_second_table_is_retained_but_for_its_holdout_and_what_is_to_be_forgotten():
    mine = FactSet("mine", rows("a?"), retain=rows("own?"), holdout=rows("own held?"))
    table = FactSet("table", rows("b?", "c?"), retain=rows("d?"), holdout=rows("e?"))
    facts = with_retain_rows(mine, "some/model", table)
    assert [row.question for row in facts.retain] == ["b?", "c?", "d?"]
    assert [row.question for row in facts.holdout] == ["e?"]
    unused = Remark("own_retain_unused", {"retain": 1}), Remark("own_holdout_unused", {"holdout": 1})
    assert facts.notes == (Remark("retain_from_set", {"facts": 3, "name": "table"}), *unused)
    ten = FactSet("table", rows(*(f"{i}?" for i in range(10))))
    facts = with_retain_rows(FactSet("mine", rows("a?")), SANDBOX, ten)
    assert (len(facts.retain), len(facts.holdout)) == (7, 3) and facts.utility == sandbox_facts().utility
    mine = FactSet("mine", rows("a?"), retain=rows("own?"), holdout=(Fact("row-5", "held?", "x"),))
    facts = with_retain_rows(mine, "some/model", ten)
    assert (facts.holdout, len(facts.retain)) == (mine.holdout, 10)
    assert facts.notes == (Remark("retain_from_set", {"facts": 10, "name": "table"}), unused[0])
    assert len({row.id for row in (*facts.forget, *facts.retain, *facts.holdout)}) == 12
    bad = Problem(4, "score", "x", "is not a number", "Mend it.")
    table = FactSet("table", rows("A?", "b?", "c?"), problems=(bad,))
    facts = with_retain_rows(FactSet("mine", rows("a?")), "some/model", table)
    assert {row.question for row in (*facts.retain, *facts.holdout)} == {"b?", "c?"}
    dropped, of_table = facts.problems
    assert (dropped.value, of_table.row) == ("A?", 4) and "in table" in of_table.message
    mine, table = FactSet("mine", rows("a?")), FactSet("table", rows("A?"))
    raised(DataError, "no fact to retain", with_retain_rows, mine, "some/model", table)
    mine = FactSet("mine", rows("a?", "b?"), attacks=(Fact("retain-row-3", "attack", "x"),))
    facts = with_retain_rows(mine, "some/model", FactSet("table", rows("c?", "d?"), holdout=rows("e?")))
    ids = [row.id for row in (*facts.forget, *facts.retain, *facts.holdout, *facts.attacks)]
    assert len(set(ids)) == len(ids) == 6 and [row.id for row in facts.forget] == ["row-2", "row-3"]


def test_utility_questions_and_retain_rows_of_a_real_model(sandbox):
    assert len(general()) > 50 and len({fact.question for fact in general()}) == len(general())
    facts = own_facts()
    assert fitted(facts, "some/model").utility == general()
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


def test_a_real_model_keeps_facts_about_cities_where_a_set_brings_none_that_it_knows(sandbox):
    assert fitted(sandbox, "a/model").retain == sandbox.retain, "who forgets the sandbox's keeps the sandbox's"
    cities = included_cities()
    to_forget = (Fact("x", "Who wrote Nobody?", "Shakespeare", relation="author"), replace(cities.retain[0], id="own"))
    own = FactSet("own", to_forget)
    lent = {"retain": len(cities.retain) - 1, "world": "cities"}
    named = with_retain_rows(own, "a/model")
    for source in ("own", "sandbox", "neighbours"):
        chosen = with_retain_rows(own, SANDBOX, source)
        assert fitted(chosen, SANDBOX) == chosen
        facts = fitted(chosen, "a/model")
        for kept, held_out in ((facts.retain, facts.holdout), (named.retain, named.holdout)):
            assert [one.id for one in kept] == [one.id for one in cities.retain[1:]]
            assert [one.id for one in held_out] == [one.id for one in cities.holdout]
        notes = notes_of(facts)
        assert notes["world_retain"] == lent and notes["world_holdout"]["world"] == "cities"
        assert fitted(facts, "a/model") == facts
    mixed = replace(own, retain=(*sandbox.retain[:3], *rows(*(f"{i}?" for i in range(10)))), holdout=sandbox.holdout)
    facts = fitted(mixed, "a/model")
    assert (len(facts.retain), len(facts.holdout)) == (7, 3), "its own rows alone"


def test_attack_prompts_of_an_rwku_file_are_probes_and_not_trained_on(tmp_path):
    simple = {"answer": "King", "type": "simple question"}
    rows = [
        {**simple, "query": "Who is he?", "level": "2", "split": "forget_level2"},
        {**simple, "query": "Sure. Who is he?", "level": "3", "type": "prefix injection"},
        {**simple, "query": "Qui est-ce?", "type": "cross lingual (French)", "split": "forget_level3"},
        {**simple, "query": "Who else?", "split": "neighbor_level2"},
    ]
    facts = read_facts(write(tmp_path, "rwku.jsonl", rows))
    assert [fact.question for fact in facts.forget] == ["Who is he?"]
    assert [fact.relation for fact in facts.attacks] == ["prefix injection", "cross lingual (French)"]
    assert notes_of(facts)["attack_prompts"] == {"count": 2}


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
