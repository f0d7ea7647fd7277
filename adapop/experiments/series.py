"""Tables of recall by exposure level and by epoch."""

from __future__ import annotations

from collections.abc import Sequence

from adapop.experiments.results import Row
from adapop.experiments.tables import Rows, counted, text
from adapop.probes.intervals import Summary, summary
from adapop.report.table import Table


def along(rows: Sequence[Row], name: str) -> list[Summary]:
    """Summaries over seeds of a list column, position by position, up to the shortest list; without failed runs."""
    lists = [row[name] for row in rows if not row["failed"]]
    return [summary(list(values)) for values in zip(*lists)]


def level_table(seen: Rows) -> Table:
    """Recall of the facts to forget by how often pretraining showed them, asked in other words."""
    levels = next((row["levels"] for rows in seen.values() for row in rows if row["levels"]), [])
    empty = ("",) * len(levels)  # of an arm all of whose runs failed
    rows = [
        (title, *(tuple(map(text, along(found, "levels_reworded"))) or empty), counted(found))
        for title, found in seen.items()
    ]
    note = "By score, four times the number of exposures: rarest first. Mean ± standard deviation over seeds."
    return Table("Recall by exposure", ("", *(f"{level:g}" for level in levels), "seeds"), tuple(rows), note)


def epoch_table(seen: Rows) -> Table:
    """Recall after each epoch, rare and popular facts, asked in other words; and the controller's λ."""
    lines = []
    for title, found in seen.items():
        for tier in ("rare", "popular"):
            lines.append((title, tier, along(found, f"epochs_reworded_{tier}"), counted(found)))
        if any(any(row["lam"]) for row in found):
            lines.append((title, "λ", along(found, "lam"), counted(found)))
    epochs = max((len(means) for _, _, means, _ in lines), default=0)
    rows = [(title, of, *map(text, means), *("",) * (epochs - len(means)), seeds) for title, of, means, seeds in lines]
    note = "Each fact's first rewording. Mean ± standard deviation over seeds; epoch 0 is the original model."
    head = ("", "", *(f"epoch {epoch}" for epoch in range(epochs)), "seeds")
    return Table("Recall by epoch", head, tuple(rows), note)
