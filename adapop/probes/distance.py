"""How far an unlearned model is from the oracle, which never read the facts to forget. No torch.

A fact counts as forgotten *as if never learnt* if its answer is about as likely as answers are to
an oracle that never read them: within the middle `BAND` of the oracle's probabilities for the same
relation. Less likely is over-forgotten: the answer is avoided, which shows that it was there. More
likely is under-forgotten. By chance, a share of 1 - `BAND` of the facts that the oracle never read
lies outside.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean

import numpy as np

from adapop.facts.fact import TIERS
from adapop.probes.intervals import Interval, difference, wilson

GUESSES = "guesses.json"  # beside the oracle's weights: fact id -> `Guess`
OVER, AS_NEVER_LEARNT, UNDER = "over-forgotten", "as if never learnt", "under-forgotten"
STATES = (OVER, AS_NEVER_LEARNT, UNDER)
STATE_NAMES = dict(zip(("over", "as_never", "under"), STATES))  # in names of columns
# FEWEST: facts that a relation needs for its own mean; the mean of a single fact is that fact.
BAND, FEWEST = 0.95, 8
TINY = 1e-10
MIA_NAMES = ("mia_loss", "mia_min_k", "mia_min_k_plus_plus", "mia_zlib")


@dataclass(frozen=True)
class Guess:
    """The oracle's results for a fact that it never read. direct, reworded: probability of the
    right answer, asked as trained and in all rewordings, see `FactDistance`. truth_ratio: by the
    function of this name, with `wrong_answers` from the world's facts."""

    direct: float
    reworded: float
    truth_ratio: float


@dataclass(frozen=True)
class FactDistance:
    """One fact to forget, asked in one form. Probabilities are of the right answer, the geometric
    mean over its tokens and over the questions of the form, [0, 1]."""

    id: str
    """The fact's id."""
    tier: str
    """The tier of its score."""
    form: str
    """`DIRECT`, or `REWORDED` for all of its rewordings."""
    unlearned: float
    """Probability by the unlearned model."""
    oracle: float
    """Probability by the oracle."""
    low: float
    """Lower end of the band of answers that the oracle never read."""
    high: float
    """Upper end of the band."""

    @property
    def state(self) -> str:
        return state_of(self.unlearned, self)


def state_of(p: float, fact: FactDistance) -> str:
    """The state of a fact whose answer has this probability."""
    return OVER if p < fact.low else UNDER if p > fact.high else AS_NEVER_LEARNT


@dataclass(frozen=True)
class GroupDistance:
    """Means over the facts of a group and tier, for one form of the question."""

    group: str
    """One of `facts.fact.FACT_GROUPS`."""
    tier: str
    """A tier of scores, or "all"."""
    form: str
    """`DIRECT` or `REWORDED`."""
    facts: int
    """Number of facts."""
    kl: float
    """KL(oracle || unlearned) where an answer token is predicted, nats per token."""
    same: float
    """Share of facts for which both models predict the same tokens in the answer's places."""


@dataclass(frozen=True)
class Membership:
    """AUCs of an attack, facts to forget against held-out facts, on two models: see `auc`."""

    attack: str
    """One of `MIA_NAMES`."""
    unlearned: float
    """The unlearned model's AUC."""
    oracle: float
    """The oracle's AUC."""

    @property
    def privleak(self) -> float:
        """MUSE's privacy leakage in percent: above 0 the facts look less trained on than they do to
        the oracle."""
        return (self.oracle - self.unlearned) / (1 - self.oracle + TINY) * 100


@dataclass(frozen=True)
class ForgetQuality:
    """How alike the truth ratios of two models are, on the same facts."""

    p_value: float
    """Of the two-sided Kolmogorov-Smirnov test, [0, 1]; near 1 if the models look the same."""
    log10: float
    """log10 of the p-value, exact where the p-value itself underflows to 0."""
    distance: float
    """Largest distance between the two distributions, [0, 1]."""
    higher: bool
    """Whether the unlearned model's ratios are higher there: it prefers wrong answers more."""


@dataclass(frozen=True)
class Distance:
    """A run's model against the oracle of its world."""

    facts: tuple[FactDistance, ...]
    """The facts to forget, in each form."""
    groups: tuple[GroupDistance, ...]
    """Means of each group, tier and form."""
    quality: ForgetQuality
    """TOFU's forget quality."""
    truth_ratio: float
    """Mean of `closer_to_1` over the facts to forget, for the unlearned model."""
    oracle_truth_ratio: float
    """The same for the oracle."""
    membership: tuple[Membership, ...]
    """A value for each attack; empty without held-out facts."""

    def of(self, form: str, tier: str = "all") -> list[FactDistance]:
        """The facts of a tier, asked in one form."""
        return [fact for fact in self.facts if fact.form == form and tier in ("all", fact.tier)]

    def shares(self, form: str, tier: str = "all") -> dict[str, Interval]:
        """State -> share of a tier's facts, with its 95% interval; empty without facts."""
        return shares([fact.state for fact in self.of(form, tier)])

    def mostly(self, form: str, state: str) -> str:
        """The tier, rare or popular, that has clearly more of its facts in this state than the
        other: the interval of the difference excludes 0. "" for neither."""
        rare, popular = (self.shares(form, tier) for tier in (TIERS[0], TIERS[-1]))
        if not rare or not popular:
            return ""
        gap = difference(rare[state], popular[state])
        return TIERS[0] if gap.low > 0 else TIERS[-1] if gap.high < 0 else ""


def shares(states: Sequence[str]) -> dict[str, Interval]:
    """State -> its share, with its 95% interval; empty without states."""
    count = len(states)
    return {state: wilson(states.count(state) / count, count) for state in STATES} if count else {}


def bands(relations: Sequence[str], logs: Sequence[float]) -> dict[str, tuple[float, float]]:
    """Relation -> (lower, upper) end of the middle `BAND` of probabilities of facts never read.

    relations, logs: each fact's relation and the oracle's log p of its answer. Guesses are likelier
    in some relations than in others, so each has its own mean; relations with fewer than `FEWEST`
    facts share one. The spread is pooled, because a single relation has few facts."""
    counts = Counter(relations)
    names = {name: name if count >= FEWEST else None for name, count in counts.items()}
    groups = [names[name] for name in relations]
    means = {one: fmean(log for own, log in zip(groups, logs) if own == one) for one in {*groups}}
    rest = [log - means[names[name]] for name, log in zip(relations, logs)]
    low, high = np.quantile(rest, [(1 - BAND) / 2, (1 + BAND) / 2])
    ends = {one: (math.exp(mean + low), math.exp(mean + high)) for one, mean in means.items()}
    return {name: ends[one] for name, one in names.items()}


def truth_ratio(right: float, wrong: Sequence[float]) -> float:
    """Likelihood of the wrong answers divided by that of the right one, above 0. right, wrong: -log
    p of each answer, nats per token. Those of the wrong answers are averaged."""
    return math.exp(-fmean(wrong)) / (math.exp(-right) + TINY)


def closer_to_1(ratio: float) -> float:
    """The truth ratio or its inverse, whichever is lower, [0, 1]; 1 if both kinds are as likely."""
    return min(ratio, 1 / (ratio + TINY))


def forget_quality(unlearned: Sequence[float], oracle: Sequence[float]) -> ForgetQuality:
    """TOFU's forget quality, computed exactly. unlearned, oracle: truth ratios of the same
    facts."""
    count = len(oracle)
    values = np.sort(np.concatenate([unlearned, oracle]))
    below, other = (np.searchsorted(np.sort(own), values, "right") for own in (unlearned, oracle))
    gaps = below - other
    place = int(np.abs(gaps).argmax())
    largest = abs(int(gaps[place]))
    orders = extreme = comb(2 * count, count)
    # Counts the orderings of two samples of one size with such a gap (Gnedenko, Korolyuk 1951).
    if largest:
        times = range(1, count // largest + 1)
        extreme = 2 * sum((-1) ** (k - 1) * comb(2 * count, count - k * largest) for k in times)
    log10 = math.log10(extreme) - math.log10(orders)
    return ForgetQuality(extreme / orders, log10, largest / count, bool(gaps[place] < 0))


def auc(forget: Sequence[float], holdout: Sequence[float]) -> list[float]:
    """For each fact to forget, the share of held-out facts that look less trained on (ties half),
    [0, 1]; the mean is the AUC. forget, holdout: membership scores, high if little trained on."""
    gaps = np.subtract.outer(forget, holdout)
    return ((gaps < 0).mean(1) + (gaps == 0).mean(1) / 2).tolist()
