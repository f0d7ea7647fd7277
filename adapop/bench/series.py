"""Rows read along an axis: exposure levels and epochs."""

from __future__ import annotations

from collections.abc import Sequence

from adapop.bench.results import Row
from adapop.bench.statistics import Summary, summary
from adapop.bench.tables import Seen, Table, text


def along(rows: Sequence[Row], name: str) -> list[Summary]:
    """A list column's means over seeds, position by position, as far as every run that did not fail goes."""
    lists = [row[name] for row in rows if not row["failed"]]
    return [summary(list(values)) for values in zip(*lists)]


def level_table(seen: Seen) -> Table:
    """Recall of the facts to forget by how often pretraining showed them, asked in other words."""
    levels = next((row["levels"] for rows in seen.values() for row in rows if row["levels"]), [])
    rows = [(title, *map(text, along(found, "levels_reworded"))) for title, found in seen.items()]
    note = "By score, four times the number of exposures: rarest first. Mean ± standard deviation over seeds."
    return Table("Recall by exposure", ("", *(f"{level:g}" for level in levels)), tuple(rows), note)


def epoch_table(seen: Seen) -> Table:
    """Recall after each epoch, rare and popular facts, asked in other words; and the controller's λ."""
    rows = []
    for title, found in seen.items():
        for tier in ("rare", "popular"):
            rows.append((title, tier, *map(text, along(found, f"epochs_reworded_{tier}"))))
        if any(any(row["lam"]) for row in found):
            rows.append((title, "λ", *map(text, along(found, "lam"))))
    epochs = max((len(cells) - 2 for cells in rows), default=0)
    note = "Each fact's first rewording. Mean ± standard deviation over seeds; epoch 0 is the original model."
    return Table("Recall by epoch", ("", "", *(f"epoch {epoch}" for epoch in range(epochs))), tuple(rows), note)
