"""The map from a popularity score to the exponent beta (Borisiuk et al. 2026, Eq. 4; App. A and B).

    beta(s) = clip(a * s^-b, low, high)

Two anchors determine a and b in closed form. The gradient on the gold logit is p^beta * (1 - p): it
fades as p -> 0 for every beta > 0 and peaks at p = beta / (1 + beta)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from adapop.errors import ConfigError, DataError
from adapop.facts.fact import Fact

LOW, HIGH = 0.05, 2.0  # paper, Eq. 4
RARE_ANCHOR, POPULAR_ANCHOR = (100.0, 1.5), (3000.0, 0.1)  # (score, beta); paper, App. A and B
ENDS = 0.05, 0.95  # quantiles of a set's scores that take the place of the anchors' scores
UNIFORM_WITHIN = 0.005  # largest distance from 1 of an exponent that counts as uniform
HIGHEST = 1e6  # largest upper clip: with so large an exponent no token is pushed
EXPONENT_MAX = 700.0  # exp overflows beyond it


Anchor = tuple[float, float]  # score and exponent


@dataclass(frozen=True)
class BetaMap:
    """The map from score to exponent. The defaults are the paper's rounded values."""

    a: float = 58.7
    """Factor, >= 0."""
    b: float = 0.796
    """Decay, >= 0; 0 gives every score the same exponent."""
    low: float = LOW
    """Lower clip of the exponent, >= 0."""
    high: float = HIGH
    """Upper clip of the exponent, >= low and at most HIGHEST."""

    def __post_init__(self) -> None:
        finite = all(math.isfinite(value) for value in (self.a, self.b, self.low, self.high))
        if not finite or min(self.a, self.b, self.low) < 0 or not self.low <= self.high <= HIGHEST:
            fix = f"a, b, low must be >= 0, high >= low, all finite, and high at most {HIGHEST:,g}."
            raise ConfigError(f"{self} is not a curve.", fix)

    def __call__(self, score: float) -> float:
        """Exponent of a score >= 0. A score of 0 gets the upper clip: the limit of a * s^-b for s
        -> 0. Raises ConfigError: the score is negative or not finite."""
        if not math.isfinite(score) or score < 0:
            message = f"A score of {score} has no beta."
            raise ConfigError(message, "Scores are finite and at least 0.")
        if self.b == 0 or self.a == 0:
            return min(max(self.a, self.low), self.high)
        # in logarithms, because a tiny score to a large power overflows
        exponent = math.log(self.a) - self.b * math.log(score) if score else math.inf
        return min(max(math.exp(min(exponent, EXPONENT_MAX)), self.low), self.high)

    @classmethod
    def from_anchors(cls, rare: Anchor = RARE_ANCHOR, popular: Anchor = POPULAR_ANCHOR) -> BetaMap:
        """The map through two (score, beta) points: b = ln(beta_r / beta_p) / ln(s_p / s_r), a =
        beta_r * s_r^b. Raises ConfigError: a value is not positive, scores do not rise enough, or
        betas rise."""
        (rare_score, rare_beta), (popular_score, popular_beta) = rare, popular
        rising = 0 < rare_score < popular_score < math.inf
        if not rising or not 0 < popular_beta <= rare_beta < math.inf:
            bounds = "its β above 0 and not above the rare one's"
            fix = f"The popular score must be above the rare one, and {bounds}."
            raise ConfigError(f"Anchors {rare} and {popular} fix no curve.", fix)
        b = math.log(rare_beta / popular_beta) / math.log(popular_score / rare_score)
        if abs(b * math.log(rare_score)) > EXPONENT_MAX:
            message = f"Anchor scores {rare_score:g} and {popular_score:g} are too close."
            raise ConfigError(message, "Spread them.")
        return cls(rare_beta * rare_score**b, b)

    @classmethod
    def from_quantiles(cls, scores: Iterable[float]) -> BetaMap:
        """The map with the paper's betas at the scores' own quantiles, for scores on another scale.
        Raises as `quantile_scores` and `from_anchors`."""
        rare, popular = quantile_scores(scores)
        return cls.from_anchors((rare, RARE_ANCHOR[1]), (popular, POPULAR_ANCHOR[1]))

    @classmethod
    def constant(cls, beta: float) -> BetaMap:
        """The map with the same exponent for every fact: 1 is WGA, 0 is plain gradient ascent."""
        return cls(a=beta, b=0.0, low=min(beta, LOW), high=max(beta, HIGH))

    def score_at(self, beta: float) -> float | None:
        """The score with this exponent; None for a clipped exponent, or if no score has it."""
        if self.b == 0 or self.a == 0 or not self.low < beta < self.high:
            return None
        exponent = math.log(self.a / beta) / self.b
        return math.exp(exponent) if abs(exponent) < EXPONENT_MAX else None

    @property
    def crossover(self) -> float | None:
        """The score where beta = 1, or None if the curve never reaches it."""
        return self.score_at(1.0)


# Methods that need no scores, to be named to those who have none: of those that teach no wrong
# answer, the two that keep most of the other facts in our own comparison (`bench main`).
SCORELESS = ("satimp", "wga")


def exponents(
    facts: Sequence[Fact],
    beta: BetaMap,
    scores: str = "given",
    missing: str = "error",
    seed: int = 0,
) -> dict[str, float]:
    """The exponent of each fact to forget, by its id. A constant map needs no scores.

    scores: "given"; or, as controls, "shuffled" (by the seed) or "inverted" among the facts with a
    score. missing: "error" refuses facts without a score; otherwise their exponent is 1 ("drop"
    removes such facts beforehand). Raises DataError: a score is missing, and missing is "error"."""
    if beta.b == 0:
        return dict.fromkeys((fact.id for fact in facts), beta(1.0))
    known = {fact.id: fact.score for fact in facts if fact.score is not None}
    unknown = [fact.id for fact in facts if fact.score is None]
    if unknown and missing == "error":
        if not known:
            message = "The facts have no popularity scores, and this method weighs facts by them."
            way = f"Choose a method that needs none: {' or '.join(SCORELESS)} (--method)"
            raise DataError(message, f"{way}. Or add scores.")
        message = f"{len(unknown)} of {len(facts)} facts have no score, for example {unknown[0]!r}."
        ways = "drop (they are left out) or uniform (their β is 1)"
        column = "say which column holds them (--columns score=NAME)"
        raise DataError(message, f"Add scores, {column}, or choose --missing-score {ways}.")
    if scores == "shuffled":
        known = shuffled(known, seed)
    elif scores == "inverted":
        known = inverted(known)
    return {fact.id: beta(known[fact.id]) if fact.id in known else 1.0 for fact in facts}


def quantile_scores(scores: Iterable[float]) -> tuple[float, float]:
    """The positive scores at the quantiles `ENDS`. Raises ConfigError: fewer than two."""
    ordered = sorted(score for score in scores if score > 0)
    if len(ordered) < 2:
        message = "Fewer than two positive scores give no anchors."
        raise ConfigError(message, "Use the paper's anchors.")
    low, high = (ordered[round(q * (len(ordered) - 1))] for q in ENDS)
    return low, high


def regime(beta: float) -> str:
    """The paper's term: "self-limiting" above 1, "uniform" at 1, "pressure-sustaining" below."""
    if abs(beta - 1) <= UNIFORM_WITHIN:
        return "uniform"
    return "self-limiting" if beta > 1 else "pressure-sustaining"


def peak(beta: float) -> float:
    """The probability p at which the gradient p^beta * (1 - p) is largest."""
    return beta / (1 + beta)


# Controls: scores made wrong on purpose. A method that needs scores must do worse with them.

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
