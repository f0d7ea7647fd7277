"""Tables of the learning-rate sweep: each rate's outcome, the rate the rule chooses, and equal forgetting.

The rule is the one `config.presets.RATES` states. It sees recall of the trained questions, of facts to forget and of
facts to retain, and nothing else. `config.presets.SANDBOX_RATES` is what it chose at seed 0, and
`PEOPLE_RATES` in the world of people.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from statistics import fmean

import pandas as pd

from adapop.config.methods import METHODS
from adapop.config.presets import FORGOTTEN, RATES, RETAIN_KEPT, SANDBOX_RATES, make_config
from adapop.experiments.results import Row
from adapop.experiments.tables import OUTCOMES, READING, Rows, Value, column, counted, measured, over, text
from adapop.facts.fact import SANDBOX
from adapop.probes.intervals import summary
from adapop.report.table import Table

TRAINED, KEPT = "forget_direct_all", "retain_direct_all"
AT_EQUAL = {name: OUTCOMES[name] for name in ("rare", "popular", "gap", "retain", "holdout", "utility")}


def chosen(points: Sequence[Row]) -> Row:
    """The rule of `config.presets.RATES`, applied to one method's runs (or means of them) in order of rate."""
    keeping = [row for row in points if row[KEPT] >= RETAIN_KEPT]
    if not keeping:
        return max(points, key=itemgetter(KEPT))
    return next((row for row in keeping if row[TRAINED] <= FORGOTTEN), None) or min(keeping, key=itemgetter(TRAINED))


def points_of(seen: Rows, method: str, complete: bool = True) -> dict[int, list[Row]]:
    """A method's runs by seed, in order of rate, without those that failed.

    complete: only seeds on which every rate was run, for part of a sweep would choose otherwise than the whole.
    """
    runs: dict[int, list[Row]] = {}
    for row in sorted((row for rows in seen.values() for row in rows), key=itemgetter("rate")):
        if row["method"] == method:
            runs.setdefault(row["seed"], []).append(row)
    return {
        seed: [row for row in rows if not row["failed"]]
        for seed, rows in runs.items()
        if not complete or {row["rate"] for row in rows} >= set(RATES)
    }


def mean_points(by_seed: Mapping[int, Sequence[Row]]) -> list[Row]:
    """Each rate's mean recalls over seeds, in order of rate; a rate at which a seed failed has none."""
    runs = pd.DataFrame([row for rows in by_seed.values() for row in rows], columns=["rate", TRAINED, KEPT])
    rates = runs.groupby("rate").filter(lambda found: len(found) == len(by_seed)).groupby("rate")
    return rates.agg(fmean).reset_index().to_dict("records")


def sweep_table(seen: Rows) -> Table:
    """Every method at every rate."""
    values = {"forget, as trained": column(TRAINED), **measured(seen, OUTCOMES)}
    rows = [
        (title, *(text(over(found, value)) for value in values.values()), counted(found))
        for title, found in seen.items()
    ]
    return Table("Every rate", ("", *values, "seeds"), tuple(rows), f"As trained: the questions trained on. {READING}")


def choice_table(seen: Rows) -> Table:
    """Which rate the rule chooses on each seed and on the means, and which the other experiments use."""
    seeds = _seeds(seen)
    rows = []
    for method in METHODS:
        by_seed = points_of(seen, method)
        if by_seed:
            each = [_choice(by_seed[seed]) if seed in by_seed else "" for seed in seeds]
            rows.append((METHODS[method].title, *each, *_chosen_on(mean_points(by_seed)), _used(by_seed, method)))
    note = (
        f"The rule, the same for all: of the rates that keep trained retain recall at {RETAIN_KEPT:g} or more, the "
        f"lowest that brings recall of the trained forget questions to {FORGOTTEN:.2f} or less, else the one that "
        "brings it lowest; if none keeps the retain facts, the one that keeps most. It sees neither holdout nor "
        "rewordings. A seed is empty until its sweep is complete; a choice among fewer rates, since runs failed, says "
        "of how many. The last column is what the other experiments use: the choice at seed 0."
    )
    head = ("", *(f"seed {seed}" for seed in seeds), "on the means", "keeps", "erases", "used")
    return Table("The rate that the rule chooses", head, tuple(rows), note)


def _used(by_seed: Mapping[int, Sequence[Row]], method: str) -> str:
    """The rate of the other experiments on the model of these runs."""
    configs = [json.loads(row["config"]) for rows in by_seed.values() for row in rows]
    return f"{make_config(method, model=configs[0].get('model', SANDBOX) if configs else SANDBOX).learning_rate:g}"


def _choice(points: Sequence[Row]) -> str:
    if not points:
        return "all failed"
    among = "" if len(points) == len(RATES) else f" (of {len(points)})"
    return f"{chosen(points)['rate']:g}{among}"


def _chosen_on(means: Sequence[Row]) -> tuple[str, str, str]:
    """The choice on the means, whether it keeps and whether it erases enough."""
    if not means:
        return "each failed once", "", ""
    point = chosen(means)
    kept, erased = point[KEPT] >= RETAIN_KEPT, point[TRAINED] <= FORGOTTEN
    return f"{point['rate']:g}", "yes" if kept else "no", "yes" if erased else "no"


def nearest_table(seen: Rows) -> Table:
    """Each method at the rate whose trained forget recall is nearest to AdaPop's at its own rate, seed by seed."""
    values, rows = measured(seen, OUTCOMES), []
    for method in METHODS:
        picked = [
            min(points, key=lambda row: abs(row[TRAINED] - goal))
            for goal, points in _with_goals(seen, method).values()
            if points
        ]
        if picked:
            cells = [text(over(picked, value)) for value in (column(TRAINED), *values.values())]
            rates = ", ".join(f"{rate:g}" for rate in sorted({row["rate"] for row in picked}))
            rows.append((METHODS[method].title, rates, *cells, f"{len(picked)} of {len(_seeds(seen))}"))
    head = ("", "rate", "forget, as trained", *values, "seeds")
    note = (
        "A method whose first column is far from AdaPop's has no rate in the grid that forgets as much, or as little. "
        "Seeds: those on which the sweep is complete."
    )
    return Table("The rate nearest to AdaPop's forgetting", head, tuple(rows), note)


def equal_table(seen: Rows) -> Table:
    """What each method has left where its sweep crosses AdaPop's trained forget recall, between two rates."""
    rows = []
    for method in METHODS:
        goals = _with_goals(seen, method, complete=False)
        crossed = [crossing(points, goal) for goal, points in goals.values()]
        found = [values for values in crossed if values is not None]
        cells = [text(summary([values[name] for values in found])) for name in AT_EQUAL]
        if goals:
            rows.append((METHODS[method].title, *cells, f"{len(found)} of {len(_seeds(seen))}"))
    note = (
        "Interpolated linearly between the two neighbouring rates of the grid around AdaPop's trained forget recall at "
        "its own rate, seed by seed. Seeds: on which two such rates were run and lie around it; empty where none do."
    )
    return Table("At equal forgetting", ("", *AT_EQUAL, "seeds"), tuple(rows), note)


def crossing(points: Sequence[Row], goal: float, values: Mapping[str, Value] = AT_EQUAL) -> dict[str, float] | None:
    """The values where trained forget recall first falls through `goal`, going up in rate between neighbours in the
    grid; None if it never does."""
    neighbours = set(pairwise(RATES))
    for lower, upper in pairwise(points):
        if (lower["rate"], upper["rate"]) in neighbours and lower[TRAINED] >= goal >= upper[TRAINED]:
            span = lower[TRAINED] - upper[TRAINED]
            share = (lower[TRAINED] - goal) / span if span else 0.0
            return {name: (1 - share) * value(lower) + share * value(upper) for name, value in values.items()}
    return None


def _seeds(seen: Rows) -> list[int]:
    """The seeds that any run has."""
    return sorted({row["seed"] for rows in seen.values() for row in rows})


def _with_goals(seen: Rows, method: str, complete: bool = True) -> dict[int, tuple[float, list[Row]]]:
    """Seed -> AdaPop's trained forget recall at its own rate, and a method's points."""
    goals = {
        seed: row[TRAINED]
        for seed, rows in points_of(seen, "adapop", complete=False).items()
        for row in rows
        if row["rate"] == SANDBOX_RATES["adapop"]
    }
    return {seed: (goals[seed], points) for seed, points in points_of(seen, method, complete).items() if seed in goals}
