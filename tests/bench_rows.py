"""Rows of experiments, made by hand, and those of a file."""

from adapop.experiments.results import COLUMNS, LISTS, Results

WRITTEN = {"config": "{}", "quick": 1, "seed": 0, "rate": 2e-3, "seconds": 2.0, "peak_mb": 600}  # of each run


def by_arm(path, more=""):
    """The rows of a file by the title of their arm, with something behind each title."""
    arms = {}
    for line in Results(path).rows().values():
        arms.setdefault(line["arm"] + more, []).append(line)
    return arms


def row(seed=0, method="adapop", failed="", **cells):
    """A row with nothing measured but the cells given."""
    empty = {name: [] if name in LISTS else None for name in COLUMNS}
    texts = {"failed": failed, "method": method, "config": "{}", "commit": "c1", "seconds": 2.0, "peak_mb": 600}
    return {**empty, **texts, "seed": seed, "rate": 2e-3, **cells}


def cells(table, name):
    """The cells of a table's first line with this name, by column."""
    return dict(zip(table.head, next(line for line in table.rows if line[0] == name)))


def recalls(rare, popular, holdout, **more):
    cells = {"forget_reworded_rare": rare, "forget_reworded_middle": (rare + popular) / 2}
    cells |= {"forget_reworded_popular": popular, "forget_reworded_all": (rare + popular) / 2}
    return {**cells, "holdout_direct_all": holdout, "retain_direct_all": 1.0, "utility": 0.9, **more}


SEEN = {
    "AdaPop": [row(0, **recalls(0.4, 0.5, 0.8)), row(1, **recalls(0.6, 0.5, 0.7)), row(2, **recalls(0.5, 0.2, 0.9))],
    "WGA": [
        row(1, "wga", **recalls(0.2, 0.8, 0.9)),
        row(0, "wga", **recalls(0.1, 0.9, 1.0)),
        row(2, "wga", "The loss is not finite."),
    ],
}
