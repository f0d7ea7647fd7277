"""Recorded outcomes of unlearning on a real language model: the rows of `bench real`. No torch."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean

from adapop.facts.fact import TIERS
from adapop.paths import ASSETS
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.report.recorded import rows_of
from adapop.report.table import Table, percent

# Model -> its recorded runs, asked as text after three examples.
FILES = {
    "Gemma 3 270M": ASSETS / "recorded" / "real-gemma3-270m-text-examples.csv",
    "SmolLM2": ASSETS / "recorded" / "real-smollm2-text-examples.csv",
}
COMMAND = "python -m adapop bench real"
AT = " at "  # separates arm and settings in a trial's title
LEAST_BEFORE = 0.2  # least recall before unlearning for a share to be meaningful
Cells = Mapping[str, tuple[int, float, float]]  # "group/form/tier" -> count, recall before, after


@dataclass(frozen=True)
class Outcome:
    """The reported runs of an arm, which differ in nothing but their seed."""

    title: str
    runs: tuple[Cells, ...]

    def share(self, group: str, form: str, tier: str = "all") -> float | None:
        """Mean over the runs of `share_of`; None where too few facts were known."""
        shares = [share_of(cells, group, form, tier) for cells in self.runs]
        return None if None in shares or not shares else fmean(shares)


def share_of(cells: Cells, group: str, form: str, tier: str = "all") -> float | None:
    """One run's recall after unlearning as a share of that before; None if too few were known."""
    _, before, after = cells.get(f"{group}/{form}/{tier}", (0, 0.0, 0.0))
    return after / before if before >= LEAST_BEFORE else None


@cache
def outcomes(path: Path) -> tuple[Outcome, ...]:
    """The arms in the order of the file, without the trials that chose their settings."""
    runs: dict[str, list[Cells]] = {}
    for row in rows_of(path):
        if AT not in row["arm"] and not row["failed"]:
            runs.setdefault(row["arm"], []).append(json.loads(row["shares"]))
    return tuple(Outcome(title, tuple(cells)) for title, cells in runs.items())


def by_model(files: Mapping[str, Path] = FILES) -> Table:
    """Shares left of each model's known facts, a row per arm and model."""
    models = {model: {one.title: one for one in outcomes(file)} for model, file in files.items()}
    places = [("forget", REWORDED, tier) for tier in TIERS]
    places += [("retain", DIRECT), ("holdout", DIRECT)]
    rows = []
    for title in dict.fromkeys(title for arms in models.values() for title in arms):
        for model, arms in models.items():
            if one := arms.get(title):
                shares = (percent(one.share(*place)) for place in places)
                rows.append((title, model, *shares, str(len(one.runs))))
    left = "the share of what each model answered before that it still answers"
    note = f"Recorded by “{COMMAND}”: {left}; the forget set was asked in other words."
    return models_table(rows, ("retained", "held out", "runs"), note)


def models_table(rows: Iterable[tuple[str, ...]], head: Sequence[str], note: str) -> Table:
    """Shares left by tier, a row per arm and model. head: titles of the columns after the tiers."""
    return Table("By model", ("", "model", *TIERS, *head), tuple(rows), note)
