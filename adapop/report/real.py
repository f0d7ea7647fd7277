"""Recorded outcomes of unlearning on a real language model: the rows of `bench real`. No torch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from adapop.paths import ASSETS
from adapop.report.recorded import rows_of

FILE = ASSETS / "recorded" / "real-smollm2-text-examples.csv"
COMMAND = "python -m adapop bench real"
AT = " at "  # in the title of a trial, between the arm's and the settings
LEAST_BEFORE = 0.2  # recall before unlearning, below which a share of it says nothing
Cells = Mapping[str, tuple[int, float, float]]  # "group/form/tier" -> facts, recall before, after


@dataclass(frozen=True)
class Outcome:
    """The reported runs of an arm, which differ in nothing but their seed."""

    title: str
    runs: tuple[Cells, ...]

    def share(self, group: str, form: str, tier: str = "all") -> float | None:
        """Mean over the runs of `share_of`; None where too little was known."""
        shares = [share_of(cells, group, form, tier) for cells in self.runs]
        return None if None in shares or not shares else fmean(shares)


def share_of(cells: Cells, group: str, form: str, tier: str = "all") -> float | None:
    """Recall after unlearning over that before, of one run; None where too little was known."""
    _, before, after = cells.get(f"{group}/{form}/{tier}", (0, 0.0, 0.0))
    return after / before if before >= LEAST_BEFORE else None


@cache
def outcomes() -> tuple[Outcome, ...]:
    """The arms in the order of the file, without the trials that chose their settings."""
    runs: dict[str, list[Cells]] = {}
    for row in rows_of(FILE):
        if AT not in row["arm"] and not row["failed"]:
            runs.setdefault(row["arm"], []).append(json.loads(row["shares"]))
    return tuple(Outcome(title, tuple(cells)) for title, cells in runs.items())
