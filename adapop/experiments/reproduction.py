"""Tables that compare an experiment's recorded rows with rows of other seeds, cell by cell."""

from collections.abc import Iterator

from adapop.experiments.tables import DIFFERENCES, OUTCOMES, Rows, by_seed, over
from adapop.probes.intervals import Summary, paired
from adapop.report.table import Table

HALF_A_DIGIT = 0.005  # of the second decimal, which is the last that the tables show


def cell_table(recorded: Rows, again: Rows) -> Table:
    """The cells of `tables.outcome_table` whose mean over the other seeds is outside the recorded 95 % interval."""
    cells = [
        (title, name, first, second)
        for title, found in again.items()
        for name, value in OUTCOMES.items()
        if (first := over(recorded.get(title, ()), value)) and (second := over(found, value)) and first.sd is not None
    ]
    rows, surprising = [], 0
    for title, name, first, second in cells:
        if not _within(second.mean, (first.low, first.high)):
            beyond = not _within(second.mean, first.expected(second.seeds))
            surprising += beyond
            rows.append((title, name, first.ranged, f"{second} ({second.seeds})", "no" if beyond else "yes"))
    note = (
        f"{len(cells) - len(rows)} of {len(cells)} cells lie inside the recorded mean's interval. That is not 95 % of "
        "them even if nothing but the seeds differs, for the other seeds spread too; the last column takes that into "
        f"account: {len(cells) - surprising} of {len(cells)} are as expected 95 times in 100. Half a unit of the last "
        "digit is no difference. In brackets: seeds; cells of one arm go together and are no independent tests."
    )
    return Table("Cells outside", ("", "", "recorded", "again", "as expected"), tuple(rows), note)


def claim_table(recorded: Rows, again: Rows, base: str) -> Table:
    """The differences to one arm that the recorded seeds support and that have the other sign on the other seeds."""
    rows, count = [], 0
    for title, name, first, second in _differences(recorded, again, base):
        if first.low is not None and not first.low <= 0 <= first.high:
            count += 1
            if first.mean * second.mean <= 0:
                rows.append((title, name, first.interval, f"{second.interval}, {second.seeds} pairs"))
    note = (
        f"Of {count} differences to {base} whose recorded 95 % interval leaves out 0, {count - len(rows)} have the "
        "same sign on the other seeds."
    )
    return Table("Differences that turned", ("", "", "recorded", "again"), tuple(rows), note)


def _differences(recorded: Rows, again: Rows, base: str) -> Iterator[tuple[str, str, Summary, Summary]]:
    for title in again:
        for name, value in DIFFERENCES.items():
            first, second = (
                paired(by_seed(seen.get(title, ()), value), by_seed(seen.get(base, ()), value))
                for seen in (recorded, again)
            )
            if title != base and first and second:
                yield title, name, first, second


def _within(mean: float, ends: tuple[float, float]) -> bool:
    return ends[0] - HALF_A_DIGIT <= mean <= ends[1] + HALF_A_DIGIT
