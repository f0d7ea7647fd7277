"""Tables of `bench tuned`: searches, luck, winners, recovery checks, worlds, benefit of scores."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from adapop.config.methods import METHODS
from adapop.experiments import tables
from adapop.experiments.results import ATTACK_KINDS, Row
from adapop.experiments.spaces import MOVES, SEARCHES, Range, Space
from adapop.experiments.tables import OUTCOMES, Rows, Value, column, counted, over, paired_by_seed
from adapop.experiments.tuning import LIMITS, Trial, best_of, objective
from adapop.experiments.validation import TEST, VALIDATION
from adapop.facts.fact import TIERS
from adapop.probes.intervals import Summary
from adapop.probes.prompts import CHOICE, REWORDED
from adapop.report.settings import spoken
from adapop.report.table import Table, reading

OBJECTIVE = reading("objective", **LIMITS)
Done = Mapping[str, Sequence[Trial]]  # name in `SEARCHES` -> its trials
STUDENT = "95 % interval of Student's t"
NOTHING_DONE = 1.0  # J of the original model: nothing forgotten, nothing lost
OURS = METHODS["redirect"].title
WITH = ": "  # separates world and arm in the title of an arm in several worlds
# Title of a column here -> name of the row's column.
RECOVERED = {
    "taught again, before": "relearn_before",
    "after": "relearn_after",
    "after (control)": "relearn_control",
    "rounded": "rounded",
    "sampled": "sampled",
    "sampled (control)": "sampled_control",
}


def worst(row: Row, split: str = TEST) -> float | None:
    """Recall of the worst tier (the one with most left), asked in other words."""
    recalls = [row[f"{split}_forget_{REWORDED}_{tier}"] for tier in TIERS]
    return None if None in recalls else max(recalls)


def score(row: Row, split: str = TEST) -> float | None:
    """J on one split."""
    parts = {
        "worst": worst(row, split),
        "holdout": row[f"{split}_holdout_direct_all"],
        "utility": row[f"{split}_utility"],
        "retain": row["retain_direct_all"],
    }
    return None if None in parts.values() else objective(**parts)


def attacked(row: Row, of: Callable[[Sequence[float]], float] = fmean) -> float | None:
    """Recall of the facts to forget under the attacks. of: how the attacks' recalls are combined.
    Leaves out multiple choice, where avoiding the answer scores below chance."""
    kinds = [kind for kind in ATTACK_KINDS if kind != CHOICE]
    recalls = [value for kind in kinds if (value := row[f"attack {kind}"]) is not None]
    return of(recalls) if recalls else None


AIMS: dict[str, Value] = {
    "worst tier": worst,
    "attacks": attacked,
    "top 2": column(f"{TEST}_forget_top2_all"),
    **{name: OUTCOMES[name] for name in ("holdout", "utility", "retain")},
}
"""Measures in which our method should do well all at once."""
WITH_GAP: dict[str, Value] = {"J": score, "gap": OUTCOMES["gap"], **AIMS}
"""`AIMS`, with J and the gap that scores are meant to close."""


def test_table(arms: Rows) -> Table:
    """J and the outcomes of every winner, the best first, each mean with its interval."""
    values = tables.measured(arms, {"J": score, "worst tier": worst, **OUTCOMES})
    about = tables.READING + f" {tables.NEIGHBOURS_READING}" * ("neighbours" in values)
    note = f"{OBJECTIVE} {about} In brackets: {STUDENT} over seeds."
    return _ranked("On the test split", arms, values, note)


def recovery_table(arms: Rows) -> Table | None:
    """Results of the recovery checks, least attacked first; None if no model was checked."""
    hardest = partial(attacked, of=max)
    values = {"attacks": attacked, "hardest attack": hardest, "top 2": AIMS["top 2"]}
    values |= {"rank": column(f"{TEST}_forget_rank_all")}
    values |= {head: column(name) for head, name in RECOVERED.items()}
    values["sampled − control"] = tables.minus(column("sampled"), column("sampled_control"))
    probed = {title: rows for title, rows in arms.items() if over(rows, attacked)}
    return _ranked("Recovery checks", probed, values, reading("door")) if probed else None


def pair_table(
    arms: Rows,
    base: str,
    others: Sequence[str],
    title: str = "",
    note: str = "",
    values: Mapping[str, Value] = AIMS,
) -> Table | None:
    """Other arms minus the arm `base`, paired by seed; None if no such pair has rows."""
    rows = []
    for name in others:
        if name != base and name in arms and base in arms:
            pairs = (paired_by_seed(arms[name], arms[base], value) for value in values.values())
            rows.append((name, *(pair.interval if pair else "" for pair in pairs)))
    text = f"The arm minus {base}, paired by seed: mean ({STUDENT} over the pairs). {note}"
    return Table(title, ("", *values), tuple(rows), text.strip()) if rows else None


def shuffled_table(arms: Rows, titles: Mapping[str, str]) -> Table | None:
    """Arms with given scores minus the same arms with shuffled ones. titles: with given -> with
    shuffled scores."""
    compared = [
        pair_table(arms, shuffled, [given], values=WITH_GAP) for given, shuffled in titles.items()
    ]
    rows = tuple(row for table in compared if table for row in table.rows)
    if not rows:
        return None
    note = f"The arm minus itself with shuffled scores, paired by seed: mean ({STUDENT})."
    return Table("What the right scores add to shuffled ones", ("", *WITH_GAP), rows, note)


def mean_of_worlds(arms: Rows) -> Rows:
    """`AIMS` averaged over worlds, a row for each arm and seed that all worlds have. Titles in
    `arms` begin with the world. A value is None if a world lacks it."""
    worlds: dict[str, dict[str, Sequence[Row]]] = defaultdict(dict)
    for title, rows in arms.items():
        world, _, arm = title.partition(WITH)
        worlds[arm][world] = rows
    whole = max(map(len, worlds.values()), default=0)
    return {
        arm: _means(list(by_world.values()))
        for arm, by_world in worlds.items()
        if len(by_world) == whole
    }


def _means(worlds: Sequence[Sequence[Row]]) -> list[Row]:
    by_world = [{row["seed"]: row for row in rows} for rows in worlds]
    means_by_seed = []
    for seed in sorted(set.intersection(*(set(rows) for rows in by_world))):
        rows = [seeds[seed] for seeds in by_world]
        mean: Row = {
            "seed": seed,
            "failed": next((one["failed"] for one in rows if one["failed"]), ""),
        }
        for name, value in AIMS.items():
            values = [value(row) for row in rows]
            mean[name] = None if None in values else fmean(values)
        means_by_seed.append(mean)
    return means_by_seed


def worlds_table(arms: Rows) -> Table:
    """`AIMS` of every arm averaged over worlds, the lowest recall of the worst tier first."""
    values = {name: column(name) for name in AIMS}
    return _ranked("Mean of the worlds", mean_of_worlds(arms), values, reading("worlds"))


def worlds_difference_table(arms: Rows) -> Table | None:
    """Every arm minus Redirect, averaged over worlds."""
    means, values = mean_of_worlds(arms), {name: column(name) for name in AIMS}
    title = f"Difference to {OURS}"
    return pair_table(means, OURS, list(means), title, "Means of the worlds.", values)


def _ranked(title: str, arms: Rows, values: Mapping[str, Value], note: str) -> Table:
    """Means with their intervals, a row per arm, in increasing order of the first value."""
    lines = [
        (arm, [over(rows, value) for value in values.values()], counted(rows))
        for arm, rows in arms.items()
    ]
    lines.sort(key=lambda line: line[1][0].mean if line[1][0] else float("inf"))
    rows = [(arm, *map(ranged, cells), seeds) for arm, cells, seeds in lines]
    return Table(title, ("", *values, "seeds"), tuple(rows), note)


def ranged(summary: Summary | None) -> str:
    """A mean with its interval, without signs."""
    return "" if summary is None else summary.ranged


def winner_table(done: Done) -> Table:
    """Chosen settings of each arm, with the validation results that chose them."""
    rows = []
    for name, trials in done.items():
        best = best_of(trials)
        parts = [f"{best[part]:.3f}" if part in best else "" for part in ("J", "worst", *LIMITS)]
        settings = ", ".join(f"{key} {spoken(value)}" for key, value in best["point"].items())
        failed = sum(bool(trial["failed"]) for trial in trials)
        seconds = sum(trial["seconds"] for trial in trials) / len(trials)
        cells = (f"{best['number'] + 1} of {len(trials)}", f"{failed}", f"{seconds:.0f}", settings)
        rows.append((SEARCHES[name].arm.title, f"{trials[0]['J']:.3f}", *parts, *cells))
    head = ("", "J of the preset", "J", "worst tier", *LIMITS)
    head += ("trial", "failed", "seconds a trial", "settings")
    return Table("What was chosen", head, tuple(rows), f"{OBJECTIVE} {reading('winners')}")


def search_table(done: Done) -> Table:
    """For each search: best J, trials better than no unlearning, settings at a range's end."""
    rows = []
    for name, trials in done.items():
        best, moves = best_of(trials), best_of(trials[: len(MOVES)])
        useful = sum(trial["J"] < NOTHING_DONE for trial in trials)
        helped = best["J"] < NOTHING_DONE
        ends = at_an_end(best["point"], SEARCHES[name].space) if helped else ()
        cells = (f"{moves['J']:.3f}", f"{best['J']:.3f}", f"{useful}", ", ".join(ends))
        rows.append((SEARCHES[name].arm.title, *cells))
    head = ("", "best J, first moves", "best J, all trials")
    head += ("better than nothing", "at an end of its range")
    note = reading("search", moves=len(MOVES))
    return Table("How far the searches went", head, tuple(rows), note)


def at_an_end(point: Mapping[str, Any], space: Space) -> list[str]:
    """The settings of a point that lie at the lowest or highest value of their range, except 0."""
    ranges = {name: among for name, among in space.items() if isinstance(among, Range)}
    return [
        f"{name} {spoken(point[name])}"
        for name, among in ranges.items()
        if point[name] and point[name] in (among.low, among.high)
    ]


def luck_table(arms: Rows, done: Done) -> Table:
    """J of each winner: in the search, on other seeds, and on the test split."""
    rows = []
    for name, trials in done.items():
        title, best = SEARCHES[name].arm.title, best_of(trials)
        if title in arms:
            parts = {part: best[part] for part in ("worst", *LIMITS) if part in best}
            chosen = f"{objective(**parts):.2f}" if parts else ""
            other = over(arms[title], partial(score, split=VALIDATION))
            rows.append((title, chosen, ranged(other), ranged(over(arms[title], score))))
    head = ("", "validation, seed 0", "validation", "test")
    return Table("How much was luck", head, tuple(rows), reading("luck"))
