"""What a few seeds say: mean, standard deviation, and the 95 % interval of Student's t over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

# two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120)


@dataclass(frozen=True)
class Summary:
    """Of a number over seeds. sd, low, high: None with a single seed, which says nothing of the spread."""

    mean: float
    sd: float | None
    low: float | None
    high: float | None
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.sd is None else f"{self.mean:.2f} ± {self.sd:.2f}"

    def expected(self, seeds: int) -> tuple[float, float] | None:
        """Where the mean of so many further seeds falls 95 % of the time if nothing but the seeds differs.

        None with a single seed.
        """
        if self.sd is None:
            return None
        half = _t(self.seeds - 1) * self.sd * math.sqrt(1 / self.seeds + 1 / seeds)
        return self.mean - half, self.mean + half

    @property
    def interval(self) -> str:
        """The mean with its 95 % interval, as text with signs."""
        return f"{self.mean:+.2f}" if self.low is None else f"{self.mean:+.2f} ({self.low:+.2f} to {self.high:+.2f})"


def summary(values: Sequence[float]) -> Summary | None:
    """Of at least one value; None for none."""
    if not values:
        return None
    mean = fmean(values)
    if len(values) == 1:
        return Summary(mean, None, None, None, 1)
    sd = stdev(values)
    half = _t(len(values) - 1) * sd / math.sqrt(len(values))
    return Summary(mean, sd, mean - half, mean + half, len(values))


def _t(freedom: int) -> float:
    return T95[min(freedom, len(T95)) - 1]  # beyond the table a little too wide, never too narrow


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> Summary | None:
    """Of first minus second, by seed: the same seed has the same adapter, order and pairing. None without a pair."""
    return summary([first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())])
