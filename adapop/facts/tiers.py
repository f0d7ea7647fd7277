"""Tiers of popularity (rare, middle, popular), and the range of scores of each in a set."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from adapop.remark import Remark

RARE_BELOW, POPULAR_FROM = 265.0, 1000.0  # on Wikidata's scale
TIERS = ("rare", "middle", "popular")
UNKNOWN = "unknown"
SCALE, COLUMN, TERCILES = "scale", "column", "terciles"
Range = tuple[float | None, float | None]  # lowest and highest score, None where there is no limit


@dataclass(frozen=True)
class Tiers:
    """Where a set's tiers come from, and the scores of each; None for a tier that it lacks."""

    source: str = ""
    """"scale": the bounds 265 and 1,000; "terciles": thirds of the forget scores; "column": given
    by the file; "": not decided yet, with the bounds of "scale"."""
    rare: Range | None = (None, RARE_BELOW)
    """(lowest, highest) score, included, None for no limit; None if there is no such tier."""
    middle: Range | None = (RARE_BELOW, POPULAR_FROM)
    """As `rare`; with the bounds of "scale" it lies between them."""
    popular: Range | None = (POPULAR_FROM, None)
    """As `rare`."""
    note: str | Remark = ""
    """Counts of facts to forget in each tier; "" on Wikidata's scale. Older sets: a sentence."""

    def of(self, score: float | None) -> str:
        """The tier of a score by these bounds, "unknown" without a score."""
        if score is None:
            return UNKNOWN
        if self.rare and score <= self.rare[1]:
            return "rare"
        return "popular" if self.popular and score >= self.popular[0] else "middle"

    def label(self, tier: str) -> str:
        """The tier's name with its scores, "rare (up to 48,000)", or the name alone."""
        low, high = (getattr(self, tier) or (None, None)) if tier in TIERS else (None, None)
        if low is None and high is None:
            return tier
        if low is None:
            return f"{tier} (up to {number(high)})"
        if high is None:
            return f"{tier} (from {number(low)})"
        ends = number(low) if low == high else f"{number(low)} to {number(high)}"
        return f"{tier} ({ends})"

    @property
    def text(self) -> str:
        """The tiers of the set with their ranges."""
        return ", ".join(self.label(tier) for tier in TIERS if getattr(self, tier))


ON_SCALE = Tiers(SCALE)


def terciles(scores: Iterable[float]) -> Tiers:
    """Thirds of one or more scores, cut between different ones, as near to a third as possible. Two
    different scores make two tiers, rare and popular; equal ones make one, middle."""
    ordered = sorted(scores)
    values = sorted(set(ordered))
    if len(values) == 1:
        tiers = Tiers(TERCILES, None, (values[0], values[0]), None)
        kind = "tiers_equal_scores"
    elif len(values) == 2:
        tiers = Tiers(TERCILES, (None, values[0]), None, (values[1], None))
        kind = "tiers_two_scores"
    else:
        # how many facts have this score or a lower one
        counts = [bisect_right(ordered, value) for value in values]
        cuts = range(len(values) - 1)
        first = min(cuts[:-1], key=lambda place: abs(3 * counts[place] - len(ordered)))
        second = min(cuts[first + 1 :], key=lambda place: abs(3 * counts[place] - 2 * len(ordered)))
        middle = (values[first + 1], values[second])
        tiers = Tiers(TERCILES, (None, values[first]), middle, (values[second + 1], None))
        kind = "tiers_thirds"
    return replace(tiers, note=Remark(kind, {"counts": _counted(tiers, map(tiers.of, ordered))}))


def of_column(rows: Iterable[tuple[str, float | None]]) -> Tiers:
    """The tiers that a file gives, with their scores. rows: tier and score of each forget fact."""
    rows, spans = list(rows), {}
    for tier in {tier for tier, _ in rows}:
        known = [score for own, score in rows if own == tier and score is not None]
        spans[tier] = (min(known, default=None), max(known, default=None))
    tiers = Tiers(COLUMN, *map(spans.get, TIERS))
    counts = _counted(tiers, [tier for tier, _ in rows]) or "none"
    return replace(tiers, note=Remark("tiers_of_file", {"counts": counts}))


def _counted(tiers: Tiers, members: Iterable[str]) -> str:
    """How many facts each tier has, with its range of scores."""
    counts = Counter(members)
    return ", ".join(f"{counts[tier]:,} {tiers.label(tier)}" for tier in TIERS if counts[tier])


def number(value: float) -> str:
    """A score, formatted for people."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
