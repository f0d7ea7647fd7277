"""How an epoch's forget rows are split into optimiser steps. No torch.

If the rows do not fill the last batch (DUET: 964 rows by 32 leave 4), a last step of so few rows
would move the weights as far as a full one: AdamW's step hardly depends on how many rows its
gradient is the mean of.
"""

from collections.abc import Sequence
from itertools import chain, pairwise, zip_longest
from math import ceil


def count(rows: int, batch: int, last_step: str = "even") -> int:
    """Number of optimiser steps in an epoch of at least one row. last_step: as in `RunConfig`."""
    return max(1, rows // batch) if last_step == "rolled" else ceil(rows / batch)


def spans(rows: int, batch: int, last_step: str, epoch: int) -> list[tuple[int, int]]:
    """(start, stop) of each step of an epoch, counted on through the rows of all epochs. epoch:
    from 1.

    "even": steps whose sizes differ by one row at most. "short": full batches, and a last step of
    the rows left. "rolled": only full batches, which may span two epochs; rows left at the end of
    the last epoch are not trained on. HF's Trainer makes the same steps of the same rows, but
    counts a step that spans two epochs as one of the earlier."""
    steps = count(rows, batch, last_step)
    if last_step == "rolled":
        size = min(batch, rows)
        ends = [step * size for step in range((epoch - 1) * steps, epoch * steps + 1)]
    elif last_step == "short":
        ends = [(epoch - 1) * rows + min(step * batch, rows) for step in range(steps + 1)]
    else:
        ends = [(epoch - 1) * rows + step * rows // steps for step in range(steps + 1)]
    return list(pairwise(ends))


def by_tier(order: Sequence[int], tiers: Sequence[str], batch: int) -> list[int]:
    """The order of an epoch's rows in batches of one tier each, the tiers taking turns; within a
    tier rows keep their order. Rows that fill no batch come last. tiers: of each row."""
    members = [[row for row in order if tiers[row] == tier] for tier in dict.fromkeys(tiers)]
    starts = [range(0, len(rows) - batch + 1, batch) for rows in members]
    full = [[rows[i : i + batch] for i in places] for rows, places in zip(members, starts)]
    rest = [row for rows in members for row in rows[len(rows) // batch * batch :]]
    turns = chain.from_iterable(zip_longest(*full, fillvalue=()))
    return [*chain.from_iterable(turns), *rest]
