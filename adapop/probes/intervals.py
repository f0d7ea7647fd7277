"""95 % intervals: Student's t over seeds, bootstrap and Wilson over facts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, fmean, stdev

import numpy as np

# two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120)


@dataclass(frozen=True)
class Summary:
    """A number over seeds."""

    mean: float
    sd: float | None
    """Standard deviation over seeds; None with a single seed, as the two fields below."""
    low: float | None
    """Lower end of the 95 % interval of the mean (Student's t)."""
    high: float | None
    """Upper end of that interval."""
    seeds: int
    """Number of seeds, at least 1."""

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.sd is None else f"{self.mean:.2f} ± {self.sd:.2f}"

    def expected(self, seeds: int) -> tuple[float, float] | None:
        """The 95 % prediction interval for the mean of so many further seeds; None with a single seed."""
        if self.sd is None:
            return None
        half = _t(self.seeds - 1) * self.sd * math.sqrt(1 / self.seeds + 1 / seeds)
        return self.mean - half, self.mean + half

    @property
    def interval(self) -> str:
        """The mean with its 95 % interval as text, with signs."""
        return f"{self.mean:+.2f}" if self.low is None else f"{self.mean:+.2f} ({self.low:+.2f} to {self.high:+.2f})"


def summary(values: Sequence[float]) -> Summary | None:
    """The summary of values, one per seed; None for no values."""
    if not values:
        return None
    mean = fmean(values)
    if len(values) == 1:
        return Summary(mean, None, None, None, 1)
    sd = stdev(values)
    half = _t(len(values) - 1) * sd / math.sqrt(len(values))
    return Summary(mean, sd, mean - half, mean + half, len(values))


def _t(freedom: int) -> float:
    return T95[min(freedom, len(T95)) - 1]  # beyond the table slightly too wide, never too narrow


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> Summary | None:
    """The summary of first - second over the seeds in both; None without one.

    The same seed has the same initial adapter, order and pairing of rows.
    """
    return summary([first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())])


RESAMPLES = 1_000


CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean over facts with its 95 % interval."""

    mean: float
    low: float
    """Lower end, <= mean; equal to it if all facts have the same value and the interval is bootstrapped."""
    high: float
    """Upper end, >= mean."""


def bootstrap(values: Sequence[float], seed: int) -> Interval:
    """The mean of at least one value and its percentile interval over 1,000 resamples.

    Equal values are drawn together, so the cost of a resample depends on the number of distinct values.
    """
    distinct, counts = np.unique(np.asarray(values, dtype=float), return_counts=True)
    count = len(values)
    draws = np.random.default_rng(seed).multinomial(count, counts / count, size=RESAMPLES)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(draws @ distinct / count, [tail, 1 - tail])
    return Interval(fmean(values), float(low), float(high))


def wilson(mean: float, count: int) -> Interval:
    """A share of `count` facts and its 95 % Wilson interval.

    For a mean of values in [0, 1] the interval is conservative: values of only 0 and 1 have the largest variance.
    """
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    centre, scale = mean + z * z / (2 * count), 1 + z * z / count
    half = z * sqrt(mean * (1 - mean) / count + z * z / (4 * count * count))
    return Interval(mean, max(0.0, min(mean, (centre - half) / scale)), min(1.0, max(mean, (centre + half) / scale)))


def difference(one: Interval, other: Interval) -> Interval:
    """The difference of two shares of different facts, with Newcombe's interval."""
    mean = one.mean - other.mean
    low = sqrt((one.mean - one.low) ** 2 + (other.high - other.mean) ** 2)
    high = sqrt((one.high - one.mean) ** 2 + (other.mean - other.low) ** 2)
    return Interval(mean, mean - low, mean + high)


def apart(one: Interval, other: Interval) -> bool:
    """Whether two intervals do not overlap."""
    return one.low > other.high or other.low > one.high
