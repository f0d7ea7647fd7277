"""95% intervals: the uncertainty of a measured number, over facts or over seeds.

Over facts, as an `Interval`: `bootstrap` for the mean of any values, such as recall that can be
partly right; `wilson` for a share of facts, where only the mean and the count are known;
`difference` for two shares of different facts (Newcombe's method); `clustered` where values come
in clusters; `mcnemar` for two shares of the same facts. Over seeds, as a `Summary`:
`summary` for runs that differ in nothing but their seed, `paired` for two methods on the same seeds
(Student's t).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

import numpy as np

CONFIDENCE = 0.95
RESAMPLES = 1_000
# Two-sided 95% quantiles of Student's t for 1, 2, ... degrees of freedom.
T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
    2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
)  # fmt: skip


@dataclass(frozen=True)
class Interval:
    """A mean with its interval, 95% unless stated otherwise, in the units of the values."""

    mean: float
    """Mean of the values."""
    low: float
    """The lower end; the mean itself if there is no spread."""
    high: float
    """The upper end; the mean itself if there is no spread."""

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f})"


def bootstrap(values: Sequence[float]) -> Interval:
    """The mean of at least one value, with the percentile interval over `RESAMPLES` resamples,
    always the same ones. Equal values are drawn together, to save time."""
    distinct, counts = np.unique(np.asarray(values, dtype=float), return_counts=True)
    count = len(values)
    draws = np.random.default_rng(0).multinomial(count, counts / count, size=RESAMPLES)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(draws @ distinct / count, [tail, 1 - tail])
    return Interval(fmean(values), float(low), float(high))


def wilson(mean: float, count: int) -> Interval:
    """A share of `count` facts, [0, 1], with its Wilson interval. Also for a mean of values in [0,
    1]: the interval is never too narrow, because such values vary at most as 0 and 1 do."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    centre, scale = mean + z * z / (2 * count), 1 + z * z / count
    half = z * math.sqrt(mean * (1 - mean) / count + z * z / (4 * count * count))
    low, high = min(mean, (centre - half) / scale), max(mean, (centre + half) / scale)
    return Interval(mean, max(0.0, low), min(1.0, high))


def of_facts(values: Sequence[float]) -> Interval:
    """The mean recall of at least one fact: Wilson's interval if every value is 0 or 1, or all are
    equal (where a bootstrap would claim certainty); else the bootstrap's."""
    if set(values) <= {0.0, 1.0} or len(set(values)) == 1:
        return wilson(fmean(values), len(values))
    return bootstrap(values)


def difference(one: Interval, other: Interval) -> Interval:
    """Difference between the shares of two sets of facts, with Newcombe's interval."""
    mean = one.mean - other.mean
    low = math.sqrt((one.mean - one.low) ** 2 + (other.high - other.mean) ** 2)
    high = math.sqrt((one.high - one.mean) ** 2 + (other.mean - other.low) ** 2)
    return Interval(mean, mean - low, mean + high)


def clustered(values: Sequence[float], clusters: Sequence[object]) -> Interval:
    """The mean of at least one value, with the percentile interval over `RESAMPLES` resamples of
    whole clusters, always the same ones. clusters: of each value; those of one cluster are drawn
    together. Of a single cluster there is no interval: both ends are the mean."""
    totals: dict[object, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        totals.setdefault(cluster, []).append(value)
    sums = np.array([sum(own) for own in totals.values()])
    counts = np.array([len(own) for own in totals.values()])
    size = len(totals)
    draws = np.random.default_rng(0).integers(size, size=(RESAMPLES, size))
    means = sums[draws].sum(1) / counts[draws].sum(1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(fmean(values), float(low), float(high))


def mcnemar(only_first: int, only_second: int) -> float:
    """McNemar's exact p-value, two-sided: whether of the pairs in which exactly one is right, one
    side has more than by chance. 1 without such pairs."""
    count, fewer = only_first + only_second, min(only_first, only_second)
    below = sum(math.comb(count, right) for right in range(fewer + 1))
    return min(1.0, 2 * below / 2**count)


def apart(one: Interval, other: Interval) -> bool:
    """Whether two intervals do not overlap."""
    return one.low > other.high or other.low > one.high


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation and 95% interval over seeds, in the units of the values."""

    mean: float
    """Mean over the seeds."""
    sd: float | None
    """Standard deviation over the seeds; None for a single seed."""
    low: float | None
    """Lower end of the 95% interval of the mean; None for a single seed."""
    high: float | None
    """Upper end of the 95% interval of the mean; None for a single seed."""
    seeds: int
    """Number of seeds, at least 1."""

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.sd is None else f"{self.mean:.2f} ± {self.sd:.2f}"

    @property
    def interval(self) -> str:
        """The mean with its 95% interval, as text with signs."""
        if self.low is None:
            return f"{self.mean:+.2f}"
        return f"{self.mean:+.2f} ({self.low:+.2f} to {self.high:+.2f})"

    @property
    def ranged(self) -> str:
        """The mean with its 95% interval, as text without signs; a single seed's value alone."""
        return str(self) if self.low is None else str(self.within())

    def within(self, least: float = -math.inf, most: float = math.inf) -> Interval:
        """The interval, clipped to [least, most]; for a single seed both ends are its value."""
        low, high = (self.mean, self.mean) if self.low is None else (self.low, self.high)
        return Interval(self.mean, max(least, low), min(most, high))


def summary(values: Sequence[float]) -> Summary | None:
    """Summary of values, one per seed; None without values."""
    if not values:
        return None
    mean = fmean(values)
    if len(values) == 1:
        return Summary(mean, None, None, None, 1)
    sd = stdev(values)
    # beyond the table its last value: rather too wide than too narrow
    t95 = T95[min(len(values) - 1, len(T95)) - 1]
    half = t95 * sd / math.sqrt(len(values))
    return Summary(mean, sd, mean - half, mean + half, len(values))


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> Summary | None:
    """The summary of first minus second, seed by seed; None without a seed that both have. Two runs
    of one seed have the same first adapter, row order and row pairs: only the method differs."""
    return summary([first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())])
