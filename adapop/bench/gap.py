"""The popularity gap on the sandbox: every method and the score controls, three seeds, as the README's table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev

from adapop.config import METHODS, make_config
from adapop.execution import execute, prepare
from adapop.facts import TIERS
from adapop.probes.measure import REWORDED
from adapop.sandbox import sandbox_facts

SEEDS = (0, 1, 2)
ARMS = (
    ("AdaPop", "adapop", "paper"),
    ("AdaPop, α₀ = 1", "adapop", "gentle"),
    ("AdaPop, α fixed", "adapop", "alpha-fixed"),
    ("AdaPop, scores shuffled", "adapop", "shuffled"),
    ("AdaPop, scores inverted", "adapop", "inverted"),
    *((method.upper(), method, "paper") for method in METHODS if method != "adapop"),
)
COLUMNS = (
    *(("forget", REWORDED, tier) for tier in TIERS),
    *((group, "direct", "all") for group in ("retain", "holdout", "utility")),
)


def recalls(method: str, preset: str, seed: int) -> list[float]:
    """Final recall of one run, in the order of COLUMNS."""
    with tempfile.TemporaryDirectory() as folder:
        run = prepare(make_config(method, preset, seed=seed), sandbox_facts(), Path(folder))
        for _ in execute(run):
            pass
        measured = run.measured()
    return [measured.recall(*column) for column in COLUMNS]


def table() -> Iterator[str]:
    """The table in Markdown, a line as soon as it is known: mean over seeds, ± the standard deviation."""
    yield "| | rare | middle | popular | retain | holdout | utility |"
    yield "|---|---|---|---|---|---|---|"
    for title, method, preset in ARMS:
        runs = [recalls(method, preset, seed) for seed in SEEDS]
        cells = [f"{fmean(column):.2f} ± {stdev(column):.2f}" for column in zip(*runs)]
        yield f"| {title} | {' | '.join(cells)} |"


def main() -> None:
    """Prints the table; about five minutes on two cores."""
    for line in table():
        print(line, flush=True)
