"""What our own method was to reach, written before its search: six levels at once, and to beat every other method."""

from collections.abc import Mapping, Sequence

from adapop.config.methods import METHODS
from adapop.experiments.results import Row
from adapop.experiments.tables import Rows, Value, by_seed, column, over
from adapop.experiments.winners import AIMS, OURS, mean_of_worlds
from adapop.probes.intervals import paired
from adapop.report.table import Table

AIM = {"worst tier": 0.08, "attacks": 0.05, "top 2": 0.2, "holdout": 0.97, "utility": 0.96, "retain": 0.99}
LESS = ("worst tier", "attacks", "top 2")  # is better
MEANS: dict[str, Value] = {name: column(name) for name in AIMS}  # of what `mean_of_worlds` gives
DIGITS = 3  # a level is reached or not before it is rounded


def reached_table(seen: Rows, values: Mapping[str, Value] = AIMS) -> Table | None:
    """Which levels the mean of each arm reaches, those of most levels first; None where no arm was attacked."""
    found = []
    for title, rows in seen.items():
        means = {name: over(rows, value) for name, value in values.items()}
        if all(means.values()):
            reached = {name: _reaches(name, mean.mean) for name, mean in means.items()}
            cells = (f"{mean.mean:.{DIGITS}f}{'' if reached[name] else ' ✗'}" for name, mean in means.items())
            found.append((title, *cells, f"{sum(reached.values())} of {len(AIM)}"))
    found.sort(key=lambda line: (-int(line[-1].split()[0]), float(line[1].split()[0])))
    head = [f"{name} {'≤' if name in LESS else '≥'} {AIM[name]:g}" for name in values]
    note = "Means over seeds; ✗: the level is not reached."
    return Table("The aim", ("", *head, "reached"), tuple(found), note) if found else None


def beaten_table(seen: Rows, values: Mapping[str, Value] = AIMS) -> Table | None:
    """On which of `AIMS` our method is better and worse than each other method; None where it was not run.

    Better and worse: the 95 % interval of the difference, paired by seed, leaves out 0.
    """
    ours, rows = seen.get(OURS), []
    for title in (method.title for method in METHODS.values()):
        if ours and title != OURS and title in seen:
            better, worse = _parted(ours, seen[title], values)
            rows.append((title, str(len(better)), ", ".join(better), ", ".join(worse)))
    note = "Whose interval of the difference, paired by seed, leaves out 0. The aim: better on four, worse on none."
    return Table(f"{OURS} against each", ("", "better on", "which", "worse on"), tuple(rows), note) if rows else None


def reached_in_worlds(seen: Rows) -> Table | None:
    """`reached_table` of the mean of the worlds."""
    return reached_table(mean_of_worlds(seen), MEANS)


def beaten_in_worlds(seen: Rows) -> Table | None:
    """`beaten_table` of the mean of the worlds."""
    return beaten_table(mean_of_worlds(seen), MEANS)


def _reaches(name: str, mean: float) -> bool:
    return mean <= AIM[name] if name in LESS else mean >= AIM[name]


def _parted(ours: Sequence[Row], other: Sequence[Row], values: Mapping[str, Value]) -> tuple[list[str], list[str]]:
    """The names of what ours is better at, and worse."""
    better, worse = [], []
    for name, value in values.items():
        pair = paired(by_seed(ours, value), by_seed(other, value))
        if pair and pair.low is not None and (pair.low > 0 or pair.high < 0):
            (better if (pair.high < 0) == (name in LESS) else worse).append(name)
    return better, worse
