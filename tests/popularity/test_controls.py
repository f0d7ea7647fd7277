import math
import statistics

import pytest

from adapop.errors import ConfigError
from adapop.popularity.controls import between_tiers, inverted, noisy, shuffled, swapped

SCORES = {f"fact-{i}": float(10 * i) for i in range(20)}
TIED = {"a": 1.0, "b": 5.0, "c": 5.0, "d": 9.0}


@pytest.mark.parametrize("seed", range(5))
def test_labels_and_scores_are_shuffled_by_seed(seed):
    again = shuffled(SCORES, seed)
    assert list(again) == list(SCORES)
    assert sorted(again.values()) == sorted(SCORES.values())
    assert sum(again[fact] == SCORES[fact] for fact in SCORES) < len(SCORES) / 2
    again = swapped(SCORES, seed)
    assert sorted(again.values()) == sorted(SCORES.values())
    assert sum(again[fact] != SCORES[fact] for fact in SCORES) == len(SCORES) / 2


def test_seeds_and_shares_of_wrong_scores():
    assert shuffled(SCORES, 1) == shuffled(SCORES, 1) != shuffled(SCORES, 2)
    assert swapped(SCORES, 0, 1.0) == inverted(SCORES)
    assert swapped(SCORES, 0, 0.0) == SCORES
    for share in (-0.1, 1.1):
        with pytest.raises(ConfigError, match="The share that trades scores"):
            between_tiers(SCORES, TIERED, 0, share)


def test_inverted_turns_the_order_round():
    again = inverted(SCORES)
    assert list(again) == list(SCORES)
    assert sorted(again.values()) == sorted(SCORES.values())
    assert sorted(again, key=again.get) == sorted(SCORES, key=SCORES.get, reverse=True)
    backwards = dict(reversed(TIED.items()))
    assert inverted(TIED) == inverted(backwards)
    assert sorted(inverted(TIED).values()) == sorted(TIED.values())


@pytest.mark.parametrize("control", [lambda scores: shuffled(scores, 0), inverted, lambda scores: noisy(scores, 0)])
def test_scores_given_are_left_alone(control):
    scores = dict(SCORES)
    control(scores)
    assert scores == SCORES


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


@pytest.mark.parametrize(
    "control",
    [
        *(lambda share=share: swapped(SCORES, 0, share) for share in (-0.01, 1.01, 2.0, math.nan, math.inf)),
        *(lambda sigma=sigma: noisy(SCORES, 0, sigma) for sigma in (-0.1, 20.1, 5000.0, math.nan, math.inf)),
    ],
)
def test_values_out_of_range_are_refused(control):
    with pytest.raises(ConfigError) as caught:
        control()
    assert "Choose one from 0 to" in caught.value.fix
