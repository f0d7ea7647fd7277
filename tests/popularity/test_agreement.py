"""Two proxies compared: by hand, at the edges, and under what cannot matter; and scores made wrong on purpose."""

import math
import statistics

import pytest

from adapop.errors import ConfigError, DataError
from adapop.facts.fact import Fact
from adapop.popularity.agreement import agreement, joined, remarks_of
from adapop.popularity.beta import BetaMap
from adapop.popularity.controls import between_tiers, inverted, noisy, shuffled, swapped
from adapop.remark import sentences

FIRST = {"a": 1.0, "b": 10.0, "c": 100.0, "d": 1000.0}


def compared(first, second):
    return agreement(first, second, BetaMap())


def test_a_proxy_agrees_with_itself_and_not_with_its_opposite():
    found = compared(FIRST, dict(FIRST))
    assert (found.facts, found.unknown, found.discordant) == (4, 0, ())
    assert (found.pearson_log, found.spearman, found.same_label) == (pytest.approx(1), pytest.approx(1), 1)
    assert (found.beta_shift, found.own_beta_shift) == (0, 0)
    found = compared(FIRST, {fact: 1e4 / score for fact, score in FIRST.items()})
    assert (found.spearman, found.same_label) == (pytest.approx(-1), 0)
    assert found.discordant[:2] in {("a", "d"), ("d", "a")}
    found = compared(FIRST, {fact: 1000 * score for fact, score in FIRST.items()})
    assert (found.spearman, found.same_label) == (pytest.approx(1), 1)
    assert found.own_beta_shift == pytest.approx(0, abs=1e-12)
    assert found.beta_shift > 0.3
    said = " ".join(sentences(remarks_of(compared(FIRST, FIRST), "Wikidata", "the judge")))
    assert "Wikidata and the judge have both scored 4 facts." in said
    assert "Spearman 1.00" in said


def test_by_hand():
    second = {"a": 5.0, "b": 700.0, "c": 20.0, "d": 9000.0}
    found = compared(FIRST, second)
    # ranks 1 2 3 4 against 1 3 2 4: 1 - 6 * 2 / (4 * 15)
    assert found.spearman == pytest.approx(0.8)
    x, y = ([math.log(score + 1) for score in scores.values()] for scores in (FIRST, second))
    mx, my = sum(x) / 4, sum(y) / 4
    over = sum((i - mx) * (j - my) for i, j in zip(x, y))
    under = math.sqrt(sum((i - mx) ** 2 for i in x) * sum((j - my) ** 2 for j in y))
    assert found.pearson_log == pytest.approx(over / under)
    assert found.same_label == 0.5
    assert set(found.discordant) == {"b", "c"}
    beta = BetaMap()
    assert found.beta_shift == pytest.approx(sum(abs(beta(FIRST[k]) - beta(second[k])) for k in FIRST) / 4)
    # Rare and popular as the scales of Wikidata and the judge have them: popular from 1,000 on.
    first = {"a": 100.0, "b": 200.0, "c": 3000.0, "d": 1000.0}
    second = {"a": 50.0, "b": 5000.0, "c": 9000.0, "d": 1200.0}
    assert agreement(first, second, BetaMap()).same_tier == 0.75
    assert agreement(first, dict.fromkeys(first, 5.0) | {"a": 6.0}, BetaMap()).same_tier is None


def test_unknown_is_left_out_and_zero_is_a_score():
    second = {**FIRST, "d": None, "e": 5.0}
    found = compared(FIRST, second)
    assert (found.facts, found.unknown) == (3, 2)
    assert found.spearman == pytest.approx(1)
    assert compared({**FIRST, "z": 0.0}, {**FIRST, "z": 0.0}).facts == 5
    found = compared(FIRST, dict.fromkeys(FIRST, 7.0))
    assert (found.pearson_log, found.spearman, found.own_beta_shift) == (None, None, None)
    assert remarks_of(found, "one", "two")[1].values["spearman"] == "not defined"
    for second in ({}, {"a": 1.0, "b": 2.0}, dict.fromkeys(FIRST)):
        with pytest.raises(DataError, match="too few"):
            compared(FIRST, second)


def facts(*questions, ids="row-{}"):
    return tuple(Fact(ids.format(i), question, "x") for i, question in enumerate(questions, 2))


def test_which_fact_is_which():
    other = joined(facts("a?", "b?", "c?"), facts("C? ", "new?", "A?"))
    assert [fact.id for fact in other] == ["row-4", "second-row-3", "row-2"]
    one, other = facts("a?", "b?", ids="f{}"), facts(" A?", "b?", "c?", ids="f{}")
    assert joined(one, other) == other
    same = facts("a?", "b?", "A?")
    assert joined(same, same) == same
    with pytest.raises(DataError, match="row-3"):
        joined(same, facts("a?", "A?", "b?"))
    for ids in ("f{}", "row-{}-a"):
        with pytest.raises(DataError, match=r"'a\?' in one set and 'b\?' in the other") as caught:
            joined(facts("a?", "b?", ids=ids), facts("b?", "a?", ids=ids))
        assert "ids" in caught.value.fix


SCORES = {f"fact-{i}": float(10 * i) for i in range(20)}
TIED = {"a": 1.0, "b": 5.0, "c": 5.0, "d": 9.0}


def test_labels_and_scores_are_shuffled_by_seed():
    given = dict(SCORES)
    for seed in range(5):
        again = shuffled(SCORES, seed)
        assert list(again) == list(SCORES)
        assert sorted(again.values()) == sorted(SCORES.values())
        assert sum(again[fact] == SCORES[fact] for fact in SCORES) < len(SCORES) / 2
        again = swapped(SCORES, seed)
        assert sorted(again.values()) == sorted(SCORES.values())
        assert sum(again[fact] != SCORES[fact] for fact in SCORES) == len(SCORES) / 2
    inverted(SCORES), noisy(SCORES, 0)
    assert given == SCORES, "what is given is left alone"


def test_seeds_and_shares_of_wrong_scores():
    assert shuffled(SCORES, 1) == shuffled(SCORES, 1) != shuffled(SCORES, 2)
    assert swapped(SCORES, 0, 1.0) == inverted(SCORES)
    assert swapped(SCORES, 0, 0.0) == SCORES
    for share in (-0.1, 1.1):
        with pytest.raises(ConfigError, match="The share that trades scores"):
            between_tiers(SCORES, TIERED, 0, share)
    for control, values in ((swapped, (-0.01, 1.01, math.nan)), (noisy, (-0.1, 20.1, 5000.0, math.nan, math.inf))):
        for value in values:
            with pytest.raises(ConfigError) as caught:
                control(SCORES, 0, value)
            assert "Choose one from 0 to" in caught.value.fix


def test_inverted_turns_the_order_round():
    again = inverted(SCORES)
    assert list(again) == list(SCORES)
    assert sorted(again.values()) == sorted(SCORES.values())
    assert sorted(again, key=again.get) == sorted(SCORES, key=SCORES.get, reverse=True)
    backwards = dict(reversed(TIED.items()))
    assert inverted(TIED) == inverted(backwards)
    assert sorted(inverted(TIED).values()) == sorted(TIED.values())


TIERED = {fact: "rare" if score < 80 else "popular" if score >= 120 else "middle" for fact, score in SCORES.items()}


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_labels_swapped_between_tiers(share):
    """Eight facts are rare, eight popular, four between; who trades takes the other tier's score."""
    again = between_tiers(SCORES, TIERED, 3, share)
    assert sorted(again.values()) == sorted(SCORES.values())
    moved = {fact for fact in SCORES if again[fact] != SCORES[fact]}
    assert len(moved) == 16 * share
    assert all(again[fact] >= 120 for fact in moved if TIERED[fact] == "rare")
    assert all(again[fact] < 80 for fact in moved if TIERED[fact] == "popular")
    assert not any(TIERED[fact] == "middle" for fact in moved)
    assert share in (0.0,) or again != between_tiers(SCORES, TIERED, 4, share)


def test_noise_is_log_normal_and_finite():
    many = {str(i): 100.0 for i in range(4000)}
    logs = [math.log(score / 100) for score in noisy(many, 0).values()]
    assert statistics.fmean(logs) == pytest.approx(0, abs=0.06)
    assert statistics.stdev(logs) == pytest.approx(1, abs=0.05)
    assert noisy({"a": 0.0}, 0) == {"a": 0.0}
    assert noisy(SCORES, 3) == noisy(SCORES, 3) != noisy(SCORES, 4)
    assert noisy(SCORES, 3, sigma=0.0) == SCORES
    assert all(map(math.isfinite, noisy(SCORES, 0, 20.0).values()))
