"""Tiers that belong to the set: whose they are, where the cuts lie, and the ranges that are said of them."""

from dataclasses import replace

import pytest

from adapop.errors import DataError
from adapop.facts.catalog import load_facts
from adapop.facts.fact import Fact, FactSet
from adapop.facts.files import read_facts
from adapop.facts.scale import with_tiers
from adapop.facts.tiers import ON_SCALE, Tiers, terciles
from adapop.facts.world import sandbox_facts
from adapop.popularity.base import Score
from adapop.popularity.scoredfile import write_scored


def scored(scores, source="column population", **groups):
    """A set with these scores."""
    return FactSet("own", forget=facts_of(scores, source), **groups)


def facts_of(scores, source="column population", prefix="f"):
    """Facts with these scores."""
    return tuple(
        Fact(f"{prefix}{i}", f"Where is {prefix}{i}?", "a", score=score, score_source=source)
        for i, score in enumerate(scores)
    )


def tiers_of(facts):
    """Each fact's tier by its first letter."""
    return "".join(fact.tier[0] for fact in facts)


@pytest.mark.parametrize(
    ("scores", "tiers"),
    [
        ([1, 2, 3, 4, 5, 6], "rrmmpp"),
        ([6e6, 1e6, 3e6], "prm"),
        ([1, 1, 1, 1, 2, 3], "rrrrmp"),  # ties keep together: no cut between equal scores
        ([1, 2, 2, 2, 2, 3], "rmmmmp"),
        ([1, 2, 3, 3, 3, 3], "rmpppp"),
        ([1, 1, 2, 2, 2, 3, 3, 4], "rrmmmppp"),  # cuts after 2 and 5 of 8 are nearest to 2.67 and 5.33
        ([5, 5, 9], "rrp"),
        ([5, 5, 5], "mmm"),
        ([0, None, 1, 2], "rump"),
    ],
)
def test_thirds_of_the_scores(scores, tiers):
    assert tiers_of(with_tiers(scored(scores)).forget) == tiers


def test_bounds_and_labels_are_of_the_forget_set():
    facts = with_tiers(scored([100, 200, 300], retain=facts_of([50, 100, 150, 250, 300, 9e9, None], prefix="r")))
    assert tiers_of(facts.retain) == "rrmmppu"
    tiers = terciles([10_000, 48_000, 48_900, 310_000, 320_000, 5e6])
    assert [tiers.label(tier) for tier in ("rare", "middle", "popular", "all", "unknown")] == [
        "rare (up to 48,000)", "middle (48,900 to 310,000)", "popular (from 320,000)", "all",
        "unknown",
    ]  # fmt: skip
    assert ON_SCALE.text == "rare (up to 265), middle (265 to 1,000), popular (from 1,000)"
    assert terciles([0.25, 0.5]).text == "rare (up to 0.25), popular (from 0.5)"
    assert terciles([5.0]).text == "middle (5)"
    assert Tiers.from_json(tiers.as_json()) == tiers
    bare = with_tiers(scored([None, None, None]))
    assert (tiers_of(bare.forget), bare.tiers, bare.notes) == ("uuu", Tiers(), ())
    looked_up = replace(bare, forget=facts_of([7e5, 8e5, 9e5]))
    assert tiers_of(with_tiers(looked_up, anew=True).forget) == "rmp"


@pytest.mark.parametrize(
    ("scores", "numbers"),
    [
        ([1, 2, 3], ("1 rare (up to 1)", "1 middle (2)", "1 popular (from 3)")),
        ([5, 5, 9], ("2 rare (up to 5)", "1 popular (from 9)")),
        ([5, 5], ("2 middle (5)",)),
    ],
)
def test_a_note_says_how_many_there_are(scores, numbers):
    (note,) = with_tiers(scored(scores)).notes
    assert all(number in note for number in numbers), note


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


def test_a_file_of_ones_own_gets_thirds_on_every_way_in(tmp_path):
    path = tmp_path / "cities.csv"
    path.write_text("question,answer,population\n" + "".join(f"q{i},a{i},{10_000 * (i + 1)}\n" for i in range(6)))
    facts = load_facts(str(path), columns={"score": "population"})
    assert tiers_of(facts.forget) == "rrmmpp"
    assert facts.tiers.text == "rare (up to 20,000), middle (30,000 to 40,000), popular (from 50,000)"
