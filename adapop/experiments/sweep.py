"""Tables of the learning-rate sweep: each rate's outcome, the rate that the rule chooses, the rate
that each tier needs, and equal forgetting.

The rule is defined in `config.presets.RATES`. It uses only the recall of the trained questions, of
facts to forget and facts to retain. `config.presets.SANDBOX_RATES` is its choice at seed 0, and
`PEOPLE_RATES` that in the world of people.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from statistics import fmean

import pandas as pd

from adapop.config.methods import METHODS
from adapop.config.presets import FORGOTTEN, RATES, RETAIN_KEPT, make_config
from adapop.experiments import tables
from adapop.experiments.results import Row
from adapop.experiments.tables import OUTCOMES, Rows, Value, column, mean_table, out_of, over, text
from adapop.facts.fact import SANDBOX, TIERS
from adapop.probes.intervals import summary
from adapop.report.table import Table

CHOICE_NOTE = (
    "The rule, the same for all: of the rates that keep trained retain recall at {retain_kept:g} "
    "or more, the lowest that brings recall of the trained forget questions to {forgotten:.2f} or "
    "less, else the one that brings it lowest; if none keeps the retain facts, the one that keeps "
    "most. It sees neither holdout nor rewordings. A seed is empty until its sweep is complete; if "
    "runs failed, the cell says among how many rates it chose. The last column is what the other "
    "experiments use: the choice at seed 0."
)
TIER_NOTE = (
    "The rate at which recall of a tier, asked in other words, first falls to {half:.0%}, "
    "interpolated between two rates of the grid in the logarithm of the rate: mean over the seeds "
    "where it does, and their number; empty if there are none. If the lowest rate already erases "
    "half, a seed counts with that rate. The last column: the rate that popular facts need, "
    "divided by that of rare facts, over the seeds that have both."
)
NEAREST_NOTE = (
    "If a method's “forget, as trained” is far from AdaPop's, no rate in the grid forgets about as "
    "much. Seeds: only those with a complete sweep."
)
EQUAL_NOTE = (
    "Each method where it forgets as much as AdaPop at its own rate, asked as trained: "
    "interpolated linearly between neighbouring rates, seed by seed. Seeds: those with such a pair "
    "of rates; empty if there are none."
)

HALF = 0.5  # recall down to which a tier must fall: `rate_at`
TRAINED, KEPT = "forget_direct_all", "retain_direct_all"
EQUAL = ("rare", "popular", "gap", "retain", "holdout", "utility")
AT_EQUAL = {name: OUTCOMES[name] for name in EQUAL}


def chosen(points: Sequence[Row]) -> Row:
    """The rule of `config.presets.RATES`, applied to a method's runs or means, one per rate."""
    keeping = [row for row in points if row[KEPT] >= RETAIN_KEPT]
    if not keeping:
        return max(points, key=itemgetter(KEPT))
    forgetting = (row for row in keeping if row[TRAINED] <= FORGOTTEN)
    return next(forgetting, None) or min(keeping, key=itemgetter(TRAINED))


def grid(arms: Rows) -> tuple[float, ...]:
    """The learning rates of a sweep: the sandbox's, or for another model those in its rows."""
    rates = {row["rate"] for rows in arms.values() for row in rows}
    return RATES if rates <= set(RATES) else tuple(sorted(rates))


def points_of(arms: Rows, method: str, complete: bool = True) -> dict[int, list[Row]]:
    """Completed runs of a method by seed, in order of rate.

    complete: only seeds with every rate, because a partial sweep may lead to another choice."""
    runs: dict[int, list[Row]] = {}
    for row in sorted((row for rows in arms.values() for row in rows), key=itemgetter("rate")):
        if row["method"] == method:
            runs.setdefault(row["seed"], []).append(row)
    return {
        seed: [row for row in rows if not row["failed"]]
        for seed, rows in runs.items()
        if not complete or {row["rate"] for row in rows} >= set(grid(arms))
    }


def mean_points(by_seed: Mapping[int, Sequence[Row]]) -> list[Row]:
    """Mean recalls over seeds, a row per rate in ascending order, without rates at which a seed
    failed."""
    rows = [row for rows in by_seed.values() for row in rows]
    runs = pd.DataFrame(rows, columns=["rate", TRAINED, KEPT]).groupby("rate")
    whole = runs.filter(lambda at_rate: len(at_rate) == len(by_seed))
    return whole.groupby("rate").agg(fmean).reset_index().to_dict("records")


def sweep_table(arms: Rows) -> Table:
    values = {"forget, as trained": column(TRAINED), **tables.measured(arms, OUTCOMES)}
    note = f"As trained: the questions trained on. {tables.READING}"
    return mean_table("Every rate", arms, values, note)


def choice_table(arms: Rows) -> Table:
    """The rate that the rule chooses per seed and on the means, and the one used elsewhere."""
    seeds, count = _seeds(arms), len(grid(arms))
    rows = []
    for method, about in METHODS.items():
        if by_seed := points_of(arms, method):
            rates = [_choice(by_seed[seed], count) if seed in by_seed else "" for seed in seeds]
            means = _chosen_on(mean_points(by_seed))
            rows.append((about.title, *rates, *means, f"{own_rate(arms, method):g}"))
    note = CHOICE_NOTE.format(retain_kept=RETAIN_KEPT, forgotten=FORGOTTEN)
    head = ("", *(f"seed {seed}" for seed in seeds), "on the means", "keeps", "erases", "used")
    return Table("The rate that the rule chooses", head, tuple(rows), note)


def own_rate(arms: Rows, method: str) -> float:
    """A method's rate in other experiments on this model, or the middle one of its sweep."""
    config = next((row["config"] for rows in arms.values() for row in rows if row["config"]), "{}")
    model = json.loads(config).get("model", SANDBOX)
    own, rates = make_config(method, model=model).learning_rate, grid(arms)
    return own if own in rates else rates[len(rates) // 2]


def _choice(points: Sequence[Row], rates: int) -> str:
    if not points:
        return "all failed"
    among = "" if len(points) == rates else f" (of {len(points)})"
    return f"{chosen(points)['rate']:g}{among}"


def _chosen_on(means: Sequence[Row]) -> tuple[str, str, str]:
    """The rate chosen on the means, and whether it keeps and erases enough."""
    if not means:
        return "each failed once", "", ""
    point = chosen(means)
    keeps, erases = point[KEPT] >= RETAIN_KEPT, point[TRAINED] <= FORGOTTEN
    return f"{point['rate']:g}", "yes" if keeps else "no", "yes" if erases else "no"


def tier_table(arms: Rows) -> Table:
    """The learning rate at which half of each tier is forgotten: the gap as a ratio of rates."""
    rows = []
    for method, about in METHODS.items():
        if by_seed := points_of(arms, method):
            needed = {
                tier: [rate_at(points, OUTCOMES[tier]) for points in by_seed.values()]
                for tier in TIERS
            }
            pairs = zip(needed["rare"], needed["popular"])
            ratio = summary([popular / rare for rare, popular in pairs if rare and popular])
            rows.append((about.title, *map(_needed, needed.values()), text(ratio)))
    note = TIER_NOTE.format(half=HALF)
    return Table("The rate that each tier needs", ("", *TIERS, "popular / rare"), tuple(rows), note)


def rate_at(points: Sequence[Row], value: Value) -> float | None:
    """The lowest learning rate at which a value falls to `HALF`, interpolated; None if it never
    does."""
    for lower, upper in pairwise(points):
        above, below = value(lower), value(upper)
        if above is None or below is None:
            continue
        if above <= HALF:
            return lower["rate"]
        if below <= HALF:
            share = (above - HALF) / (above - below)
            return lower["rate"] * (upper["rate"] / lower["rate"]) ** share
    return None


def _needed(rates: Sequence[float | None]) -> str:
    reached = [rate for rate in rates if rate is not None]
    return f"{fmean(reached):.2g} ({len(reached)} of {len(rates)})" if reached else ""


def nearest_table(arms: Rows) -> Table:
    """Each method at the rate whose trained forget recall is nearest to AdaPop's, seed by seed."""
    values, rows = tables.measured(arms, OUTCOMES), []
    for method, about in METHODS.items():
        picked = [
            min(points, key=lambda row: abs(row[TRAINED] - goal))
            for goal, points in _with_goals(arms, method).values()
            if points
        ]
        if picked:
            cells = [text(over(picked, value)) for value in (column(TRAINED), *values.values())]
            count = out_of(len(picked), len(_seeds(arms)))
            rows.append((about.title, tables.rates_of(picked), *cells, count))
    head = ("", "rate", "forget, as trained", *values, "seeds")
    return Table("The rate nearest to AdaPop's forgetting", head, tuple(rows), NEAREST_NOTE)


def equal_table(arms: Rows) -> Table:
    """Outcomes of each method where its sweep crosses AdaPop's trained forget recall."""
    rows = []
    for method in METHODS:
        goals = _with_goals(arms, method, complete=False)
        crossed = [crossing(points, goal, rates=grid(arms)) for goal, points in goals.values()]
        outcomes = [values for values in crossed if values is not None]
        cells = [text(summary([one[name] for one in outcomes if name in one])) for name in AT_EQUAL]
        if goals:
            rows.append((METHODS[method].title, *cells, out_of(len(outcomes), len(_seeds(arms)))))
    return Table("At equal forgetting", ("", *AT_EQUAL, "seeds"), tuple(rows), EQUAL_NOTE)


def crossing(points: Sequence[Row], goal: float, rates: Sequence[float] = RATES) -> dict | None:
    """`AT_EQUAL`, as far as known, interpolated where trained forget recall first falls through
    `goal` between two neighbours of `rates`; None if it never does."""
    neighbours = set(pairwise(rates))
    for lower, upper in pairwise(points):
        above, below = lower[TRAINED], upper[TRAINED]
        if (lower["rate"], upper["rate"]) in neighbours and above >= goal >= below:
            share = (above - goal) / (above - below) if above > below else 0.0
            ends = ((name, value(lower), value(upper)) for name, value in AT_EQUAL.items())
            return {name: (1 - share) * a + share * b for name, a, b in ends if None not in (a, b)}
    return None


def _seeds(arms: Rows) -> list[int]:
    return sorted({row["seed"] for rows in arms.values() for row in rows})


def _with_goals(
    arms: Rows, method: str, complete: bool = True
) -> dict[int, tuple[float, list[Row]]]:
    """Seed -> (AdaPop's recall of trained forget questions at its own rate, the method's runs)."""
    own, runs = own_rate(arms, "adapop"), points_of(arms, "adapop", complete=False)
    goals = {
        seed: row[TRAINED] for seed, rows in runs.items() for row in rows if row["rate"] == own
    }
    return {
        seed: (goals[seed], points)
        for seed, points in points_of(arms, method, complete).items()
        if seed in goals
    }
