"""Controls: scores made wrong on purpose. A method that needs scores must do worse with them."""

import math
import random
from collections.abc import Mapping

from adapop.errors import ConfigError

WIDEST_NOISE = 20.0  # scores overflow beyond it


def shuffled(scores: dict[str, float], seed: int) -> dict[str, float]:
    """The same scores, permuted at random: the distribution is kept, the signal is removed."""
    values = list(scores.values())
    random.Random(seed).shuffle(values)
    return dict(zip(scores, values))


def inverted(scores: dict[str, float]) -> dict[str, float]:
    """The same scores in reversed ranking: the distribution is kept, the signal is inverted."""
    return swapped(scores, 0, 1.0)


def noisy(scores: dict[str, float], seed: int, sigma: float = 1.0) -> dict[str, float]:
    """Each score times exp(sigma * N(0, 1)), as from a proxy that is right only on average. Zero
    stays zero. Raises ConfigError: sigma is not from 0 to 20."""
    if not 0 <= sigma <= WIDEST_NOISE:
        message = f"The noise's sigma is {sigma:g}."
        raise ConfigError(message, f"Choose one from 0 to {WIDEST_NOISE:g}.")
    rng = random.Random(seed)
    return {fact: score * math.exp(sigma * rng.gauss(0, 1)) for fact, score in scores.items()}


def between_tiers(
    scores: dict[str, float], tiers: Mapping[str, str | None], seed: int, share: float
) -> dict[str, float]:
    """The scores, swapped in a share of random pairs of a rare and a popular fact, as in the paper.
    Raises ConfigError: share is not from 0 to 1."""
    _check_share(share)
    rng = random.Random(seed)
    rare = sorted(fact for fact in scores if tiers[fact] == "rare")
    popular = sorted(fact for fact in scores if tiers[fact] == "popular")
    rng.shuffle(rare)
    rng.shuffle(popular)
    pairs = list(zip(rare, popular))
    return _exchanged(scores, pairs[: round(share * len(pairs))])


def swapped(scores: dict[str, float], seed: int, share: float = 0.5) -> dict[str, float]:
    """The scores, with a share of the pairs swapped. Pairs mirror the ranking: rarest with most
    popular and so on. share: 1 is `inverted`. Raises ConfigError: it is not from 0 to 1."""
    _check_share(share)
    ranked = sorted(scores, key=lambda fact: (scores[fact], fact))
    pairs = list(zip(ranked, ranked[::-1]))[: len(ranked) // 2]
    return _exchanged(scores, random.Random(seed).sample(pairs, round(share * len(pairs))))


def _exchanged(scores: dict[str, float], pairs: list[tuple[str, str]]) -> dict[str, float]:
    new = {one: scores[other] for pair in pairs for one, other in (pair, pair[::-1])}
    return scores | new


def _check_share(share: float) -> None:
    if not 0 <= share <= 1:
        raise ConfigError(f"The share that trades scores is {share:g}.", "Choose one from 0 to 1.")
