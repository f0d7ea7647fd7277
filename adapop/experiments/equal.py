"""Do scores earn their place? Arms over rates, read where each leaves equally much of the facts to forget.

Between two arms that forget unequally, a difference in gap or damage may be that of how much they forget. So each arm's
rates are read at the same levels of recall of the trained forget questions, seed by seed.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

from adapop.experiments.plans import SCORED
from adapop.experiments.results import Row
from adapop.experiments.sweep import crossing
from adapop.experiments.tables import OUTCOMES, Rows, Value, text
from adapop.experiments.winners import worst
from adapop.probes.intervals import paired, summary
from adapop.report.table import Table

LEVELS = (0.7, 0.5, 0.3, 0.1)  # recall of the trained forget questions
VALUES: dict[str, Value] = {
    "gap": OUTCOMES["gap"],
    "worst tier": worst,
    **{name: OUTCOMES[name] for name in ("retain", "holdout", "utility")},
}
AT = " at "  # between an arm and its rate


def by_arm(seen: Rows) -> dict[str, dict[int, list[Row]]]:
    """The runs that did not fail, in order of rate, by arm and seed."""
    found: dict[str, dict[int, list[Row]]] = {}
    for title, rows in seen.items():
        for row in rows:
            if not row["failed"]:
                found.setdefault(title.rpartition(AT)[0], {}).setdefault(row["seed"], []).append(row)
    return {
        arm: {seed: sorted(rows, key=itemgetter("rate")) for seed, rows in seeds.items()}
        for arm, seeds in found.items()
    }


def at_level(seeds: Mapping[int, Sequence[Row]], level: float) -> dict[int, dict[str, float]]:
    """`VALUES` of the seeds on which an arm crosses the level between two neighbouring rates."""
    found = {seed: crossing(rows, level, VALUES) for seed, rows in seeds.items()}
    return {seed: values for seed, values in found.items() if values is not None}


def level_table(level: float) -> Callable[[Rows], Table]:
    """The table of one level: what each arm has left and kept there."""
    note = (
        "Interpolated linearly between the two neighbouring rates whose recall of the trained forget questions lies "
        "around the level, seed by seed; empty where no seed has two such rates. Mean ± standard deviation."
    )

    def table(seen: Rows) -> Table:
        rows = []
        for arm, seeds in by_arm(seen).items():
            crossed = at_level(seeds, level)
            cells = [text(summary([values[name] for values in crossed.values()])) for name in VALUES]
            rows.append((arm, *cells, f"{len(crossed)} of {len(seeds)}"))
        title = f"Where {level:.0%} of the trained questions are still answered"
        return Table(title, ("", *VALUES, "seeds"), tuple(rows), note)

    return table


def added_table(seen: Rows) -> Table | None:
    """Right minus shuffled scores at each level, paired by seed; None where no level has both."""
    arms, rows = by_arm(seen), []
    for name, pair in SCORED.items():
        for level in LEVELS:
            right, wrong = (at_level(arms.get(arm.title, {}), level) for arm in pair)
            if shared := right.keys() & wrong.keys():
                found = [paired(_each(right, value), _each(wrong, value)) for value in VALUES]
                rows.append((f"{name}, at {level:.0%}", *(one.interval for one in found), str(len(shared))))
    note = "Paired by seed at equal recall of the trained forget questions: mean (95 % interval of Student's t)."
    title = "Right scores minus shuffled ones, at equal forgetting"
    return Table(title, ("", *VALUES, "seeds"), tuple(rows), note) if rows else None


def _each(crossed: Mapping[int, Mapping[str, float]], name: str) -> dict[int, float]:
    return {seed: values[name] for seed, values in crossed.items()}
