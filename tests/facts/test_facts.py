"""Facts, sets of them, and tiers: whose they are, where the cuts lie, and the ranges that are said of them."""

import json
from dataclasses import replace

import pytest

from adapop.errors import DataError
from adapop.facts.catalog import load_facts
from adapop.facts.fact import Fact, FactSet, Problem, scores_of, separated
from adapop.facts.files import read_facts
from adapop.facts.holdout import split_holdout
from adapop.facts.scale import with_tiers
from adapop.facts.tiers import ON_SCALE, Tiers, terciles
from adapop.facts.world import sandbox_facts
from adapop.popularity.base import Score
from adapop.popularity.scoredfile import write_scored

ODD_TEXTS = (
    "a line separator \u2028 and a next line \x85", "quotes \"double\" and 'single' and a \\ backslash",
    "<script>alert('x')</script> & <b>bold</b>", "emoji 🦜 and a family 👩‍👩‍👧",
    "two\nlines, a\ttab and a\r return", "=HYPERLINK(1) | {s} %s",
)  # fmt: skip


def numbered(count: int, prefix: str = "r") -> tuple[Fact, ...]:
    return tuple(Fact(f"{prefix}{i}", f"question {i}?", f"answer {i}") for i in range(count))


def test_tier():
    tiers = {None: "unknown", 0.0: "rare", 265.0: "rare", 265.1: "middle", 999.9: "middle", 1000.0: "popular"}
    assert {score: Fact("a", "q", "a", score=score).tier for score in tiers} == tiers


def test_problem_says_where_what_and_fix_and_invents_no_row_or_column():
    problem = Problem(3, "score", "-1", "is not a score", "Leave it empty")
    assert str(problem) == "row 3, 'score' is '-1': is not a score. Leave it empty"
    for row, column, start in ((0, "", "file: bad"), (4, "", "row 4: bad"), (0, "score", "'score': bad")):
        assert str(Problem(row, column, "", "bad", "Fix")).startswith(start)


def test_a_written_set_is_read_again_as_it_was(tmp_path):
    names = ("id", "question", "answer", "subject", "relation", "object", "score_source")
    given = [(text, dict.fromkeys(names, text)) for text in ODD_TEXTS]
    forget = [Fact(**texts, score=12.5, paraphrases=(text, "plain"), alternates=(text,)) for text, texts in given]
    groups = {
        "retain": numbered(2), "holdout": numbered(1, "h"), "utility": numbered(3, "u"), "attacks": numbered(2, "a"),
    }  # fmt: skip
    facts = FactSet("set", tuple(forget), **groups, notes=("n",))
    facts.write(tmp_path / "facts.jsonl")
    again = FactSet.load(tmp_path / "facts.jsonl", "set", ["n"])
    assert again == facts and again.sha256 == facts.sha256
    lines = (tmp_path / "facts.jsonl").read_bytes().decode().split("\n")
    assert [json.loads(line)["question"] for line in lines[: len(ODD_TEXTS)]] == list(ODD_TEXTS)
    facts = FactSet("set", (Fact("a", "q", "a", score=None), Fact("b", "q", "a", score=0.0)))
    facts.write(tmp_path / "facts.jsonl")
    again = FactSet.load(tmp_path / "facts.jsonl", "set")
    assert scores_of(again.forget) == {"a": None, "b": 0.0}
    assert [fact.id for fact in again.unknown_scores] == ["a"]
    facts = FactSet("set", numbered(2, "f"), retain=numbered(1))
    facts.write(tmp_path / "facts.jsonl")
    assert "attacks" not in (tmp_path / "facts.jsonl").read_text(encoding="utf-8")
    assert FactSet.load(tmp_path / "facts.jsonl", "set") == facts


def test_hash_sees_every_change_of_the_data_and_nothing_else():
    facts = FactSet("set", (Fact("a", "q", "x"),))
    for change in (
        {"forget": (Fact("a", "q", "other"),)}, {"forget": (Fact("a", "q", "x", score=0.0),)},
        {"forget": (Fact("a", "q", "x", paraphrases=("p",)),)}, {"forget": (), "retain": (Fact("a", "q", "x"),)},
        {"holdout": numbered(1)}, {"utility": numbered(1)}, {"attacks": numbered(1)}):  # fmt: skip
        assert replace(facts, **change).sha256 != facts.sha256
    facts = FactSet("set", numbered(2, "f"), retain=numbered(1), utility=numbered(1, "u"))
    assert facts.sha256 == "ebc3dc3a39ca594c1e6e7850f65339fc8eb650a57ac87df999d827c86d20c2ef"
    assert replace(facts, name="other", notes=("a note",)).sha256 == facts.sha256


def test_split_holdout_is_disjoint_complete_and_by_ids():
    facts = FactSet("set", numbered(1, "f"), retain=numbered(20), notes=("before",))
    split = split_holdout(facts)
    assert (len(split.retain), len(split.holdout)) == (14, 6)
    assert not set(split.retain) & set(split.holdout)
    assert set(split.retain) | set(split.holdout) == set(facts.retain)
    assert split.notes[0] == "before"
    assert "6 of its 20 retain rows are held out" in split.notes[1]
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
        assert (split.retain, split.holdout) == (rows, ()) and "Nothing is held out" in split.notes[0]


def test_no_question_is_both_trained_on_and_held_out():
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
    apart = separated(facts, {"r": 7})
    assert [fact.id for fact in (*apart.forget, *apart.retain, *apart.holdout)] == ["f", "r2"]
    assert [(p.row, p.value, p.message) for p in apart.problems] == [
        (7, "Who?", "is also to be forgotten"), (0, "WHY?", "is also to be retained")]  # fmt: skip


def scored(scores, source="column population", **groups):
    """A set with these scores."""
    return FactSet("own", forget=facts_of(scores, source), **groups)


def facts_of(scores, source="column population", prefix="f"):
    """Facts with these scores."""
    named = [(f"{prefix}{i}", score) for i, score in enumerate(scores)]
    return tuple(Fact(name, f"Where is {name}?", "a", score=score, score_source=source) for name, score in named)


def tiers_of(facts):
    """Each fact's tier by its first letter."""
    return "".join(fact.tier[0] for fact in facts)


def test_thirds_of_the_scores():
    for scores, tiers in (
        ([1, 2, 3, 4, 5, 6], "rrmmpp"), ([6e6, 1e6, 3e6], "prm"), ([5, 5, 9], "rrp"), ([0, None, 1, 2], "rump"),
        ([1, 1, 1, 1, 2, 3], "rrrrmp"),  # ties keep together: no cut between equal scores
        ([1, 2, 2, 2, 2, 3], "rmmmmp"), ([1, 2, 3, 3, 3, 3], "rmpppp"), ([5, 5, 5], "mmm"),
        ([1, 1, 2, 2, 2, 3, 3, 4], "rrmmmppp"),  # cuts after 2 and 5 of 8 are nearest to 2.67 and 5.33
    ):  # fmt: skip
        assert tiers_of(with_tiers(scored(scores)).forget) == tiers
    for scores, numbers in (
        ([1, 2, 3], ("1 rare (up to 1)", "1 middle (2)", "1 popular (from 3)")),
        ([5, 5, 9], ("2 rare (up to 5)", "1 popular (from 9)")), ([5, 5], ("2 middle (5)",))):  # fmt: skip
        (note,) = with_tiers(scored(scores)).notes
        assert all(number in note for number in numbers), note


def test_bounds_and_labels_are_of_the_forget_set():
    facts = with_tiers(scored([100, 200, 300], retain=facts_of([50, 100, 150, 250, 300, 9e9, None], prefix="r")))
    assert tiers_of(facts.retain) == "rrmmppu"
    tiers = terciles([10_000, 48_000, 48_900, 310_000, 320_000, 5e6])
    assert [tiers.label(tier) for tier in ("rare", "middle", "popular", "all", "unknown")] == [
        "rare (up to 48,000)", "middle (48,900 to 310,000)", "popular (from 320,000)", "all", "unknown"]  # fmt: skip
    assert ON_SCALE.text == "rare (up to 265), middle (265 to 1,000), popular (from 1,000)"
    assert terciles([0.25, 0.5]).text == "rare (up to 0.25), popular (from 0.5)"
    assert terciles([5.0]).text == "middle (5)"
    assert Tiers.from_json(tiers.as_json()) == tiers
    bare = with_tiers(scored([None, None, None]))
    assert (tiers_of(bare.forget), bare.tiers, bare.notes) == ("uuu", Tiers(), ())
    looked_up = replace(bare, forget=facts_of([7e5, 8e5, 9e5]))
    assert tiers_of(with_tiers(looked_up, anew=True).forget) == "rmp"


def test_sets_on_their_own_scale_stay_as_they_are():
    for name in ("sandbox", "people", "pair", "invented"):
        facts = load_facts(name)
        assert with_tiers(facts) == with_tiers(facts, anew=True) == facts, name
        assert facts.tiers == ON_SCALE and {fact.own_tier for fact in facts.forget} == {""}, name
    duet = scored([70, 300, 2000], "DUET pop_sum")
    assert tiers_of(with_tiers(duet).forget) == "rmp"
    assert with_tiers(duet).sha256 == duet.sha256
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
    before = scored([1e4, 2e4, 3e4])
    before.write(tmp_path / "old.jsonl")
    assert "own_tier" not in (tmp_path / "old.jsonl").read_text()
    assert tiers_of(FactSet.load(tmp_path / "old.jsonl", "own", (), ON_SCALE).forget) == "ppp"
    assert sandbox_facts().sha256 == load_facts("sandbox").sha256
    path = tmp_path / "facts.jsonl"
    path.write_text('{"group": "forget", "id": "a", "question": "q", "answer": "a", "tier": "rare"}\n')
    with pytest.raises(DataError, match="line 1"):
        FactSet.load(path, "own")


def test_a_column_wins(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("question,answer,score,Tier\nq1,a,9,Rare\nq2,b,1,POPULAR\nq3,c,5,\nq4,d,5,odd\n")
    facts = read_facts(path)
    assert tiers_of(facts.forget) == "rpu"
    (problem,) = facts.problems
    assert (problem.row, problem.column, problem.value) == (5, "Tier", "odd")
    facts = with_tiers(facts)
    assert replace(facts.tiers, note="") == Tiers("column", (9, 9), None, (1, 1))
    assert facts.notes.count(facts.tiers.note) == 1 and "1 rare (9), 1 popular (1)" in facts.tiers.note
    again = with_tiers(replace(facts, forget=tuple(replace(fact, score=7.0) for fact in facts.forget)), anew=True)
    assert tiers_of(again.forget) == "rpu" and again.tiers.rare == (7, 7)
    write_scored(facts, {fact.id: Score(fact.id, 3.0, "somewhere") for fact in facts.forget}, tmp_path / "out.csv")
    assert tiers_of(read_facts(tmp_path / "out.csv").forget) == "rpu"
