"""Tables of `bench tuned` about the search: winners, how far each search went, and how much J owes
to luck."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from adapop.experiments.halves import VALIDATION
from adapop.experiments.spaces import MOVES, SEARCHES, Range, Space
from adapop.experiments.tables import Rows, over
from adapop.experiments.tuning import LIMITS, Trial, best_of, objective
from adapop.experiments.winners import OBJECTIVE, ranged, score
from adapop.report.settings import spoken
from adapop.report.table import Table

Done = Mapping[str, Sequence[Trial]]  # the trials of each search, by its name in `SEARCHES`
NOTHING_DONE = 1.0  # J of the original model: nothing forgotten, nothing lost


def winner_table(done: Done) -> Table:
    """Chosen settings of each arm, with the validation numbers that chose them."""
    rows = []
    for name, trials in done.items():
        best = best_of(trials)
        parts = [f"{best[part]:.3f}" if part in best else "" for part in ("J", "worst", *LIMITS)]
        settings = ", ".join(f"{key} {spoken(value)}" for key, value in best["point"].items())
        failed = sum(bool(trial["failed"]) for trial in trials)
        seconds = sum(trial["seconds"] for trial in trials) / len(trials)
        first = f"{trials[0]['J']:.3f}"
        cells = (f"{best['number'] + 1} of {len(trials)}", f"{failed}", f"{seconds:.0f}", settings)
        rows.append((SEARCHES[name].arm.title, first, *parts, *cells))
    head = ("", "J of the preset", "J", "worst tier", *LIMITS, "trial", "failed", "seconds a trial", "settings")
    note = f"{OBJECTIVE} All on the validation half, seed 0. The preset itself is every arm's first trial."
    return Table("What was chosen", head, tuple(rows), note)


def search_table(done: Done) -> Table:
    """How many trials of each search helped, and which winning settings lie at an end of their
    range."""
    rows = []
    for name, trials in done.items():
        best, moves = best_of(trials), best_of(trials[: len(MOVES)])
        useful = sum(trial["J"] < NOTHING_DONE for trial in trials)
        ends = ", ".join(at_an_end(best["point"], SEARCHES[name].space)) if best["J"] < NOTHING_DONE else ""
        rows.append((SEARCHES[name].arm.title, f"{moves['J']:.3f}", f"{best['J']:.3f}", f"{useful}", ends))
    note = (
        f"J of the best of the {len(MOVES)} moves that every search begins with, and of all trials. Better than "
        "nothing: how many trials have a J below 1, that of the original; where they are few, the numbers say more of"
        " the search than of the method. The last column: settings of the winner at an end of their range, beyond "
        "which nothing was tried. A 0 that means none of something is no such end."
    )
    head = ("", "best J, first moves", "best J, all trials", "better than nothing", "at an end of its range")
    return Table("How far the searches went", head, tuple(rows), note)


def at_an_end(point: Mapping[str, Any], space: Space) -> list[str]:
    """The settings of a point that equal the lowest or highest value of their range, except 0."""
    ranges = {name: among for name, among in space.items() if isinstance(among, Range)}
    return [
        f"{name} {spoken(point[name])}"
        for name, among in ranges.items()
        if point[name] and point[name] in (among.low, among.high)
    ]


def luck_table(arms: Rows, done: Done) -> Table:
    """J of each winner: where it was chosen, on other seeds, and on the test half."""
    rows = []
    for name, trials in done.items():
        title, best = SEARCHES[name].arm.title, best_of(trials)
        if title in arms:
            chosen = objective(**{part: best[part] for part in ("worst", *LIMITS)}) if "worst" in best else None
            other = over(arms[title], partial(score, half=VALIDATION))
            test = ranged(over(arms[title], score))
            rows.append((title, "" if chosen is None else f"{chosen:.2f}", ranged(other), test))
    note = (
        "J of the winner on seed 0, where the best of all trials was taken; on the same questions with other seeds; "
        "and on the test half with these. The first step is what choosing flatters, the second how much easier or "
        "harder the test half is. Without what some searches were asked for besides J."
    )
    return Table("How much was luck", ("", "validation, seed 0", "validation", "test"), tuple(rows), note)
