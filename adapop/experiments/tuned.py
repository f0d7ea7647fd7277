"""`bench tuned`: every method at its best. Chosen on validation at seed 0 (`tuning`), reported on test by others."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from adapop.errors import ConfigError
from adapop.experiments import pictures, tables
from adapop.experiments.item import Arm, Ground, Item, World, over_seeds
from adapop.experiments.plans import ADAPOP, WORLDS, Known
from adapop.experiments.results import Row
from adapop.experiments.run import Engine, Experiment
from adapop.experiments.spaces import SEARCHES, with_point
from adapop.experiments.tables import Rows, counted, over, text
from adapop.experiments.tuning import LIMITS, best_of, objective, search, trials_file, trials_of
from adapop.facts.fact import SANDBOX, TIERS
from adapop.facts.world import sandbox_facts
from adapop.paths import SHIPPED
from adapop.report.settings import spoken
from adapop.report.table import Table

OBJECTIVE = (
    "J = recall of the tier that is forgotten least, asked in other words, + 2 times what holdout falls short of "
    f"{LIMITS['holdout']:g}, utility of {LIMITS['utility']:g} and trained retain recall of {LIMITS['retain']:g}; less "
    "is better."
)


def run_searches(
    names: Sequence[str], folder: Path, trials: int, quick: bool, engine: Engine, told: Callable[[str], None]
) -> dict[str, str]:
    """Makes the trials that are missing, an arm a process. Returns the reason, by name, for arms that were not done."""
    errors = {}
    left = [name for name in names if len(trials_of(trials_file(folder, name))) < trials]
    told(f"{len(names) - len(left)} of {len(names)} searches of {trials} trials are done already.")
    for done in engine(left, partial(search, folder=folder, trials=trials, quick=quick)):
        told(f"search {done.item}: {done.error or f'{done.result} trials made'}")
        if done.error:
            errors[f"search {done.item}"] = done.error
    return errors


def experiment(folder: Path, trials: int, names: Sequence[str], world: World | Ground | None = None) -> Experiment:
    """The winners of the searches that are done, on the shipped sandbox or as they are in another world."""
    ground = world if isinstance(world, Ground) else None
    done = {name: trials_of(trials_file(folder, name))[:trials] for name in names}
    done = {name: found for name, found in done.items() if len(found) == trials}
    arms = [with_point(SEARCHES[name].arm, best_of(found)["point"]) for name, found in done.items()]
    if isinstance(world, World):
        arms = [Arm(arm.title, arm.method, arm.preset, arm.changes, world=world) for arm in arms]

    def plan(seeds: Sequence[int], quick: bool, known: Known) -> list[Item]:
        return [replace(item, ground=ground) for item in over_seeds(arms, seeds, quick)]

    def winners(seen: Rows) -> Table:
        return winner_table(done)

    return Experiment(
        f"Tuned{f', in {world.name}' if world else ''}",
        f"How does each method do at its best, with {trials} trials each at seed 0? {OBJECTIVE} Chosen on the "
        "validation half; the tables of outcomes are of the test half, on seeds that no trial has seen.",
        plan,
        (test_table, winners, partial(tables.difference_table, base=ADAPOP), tables.guess_table, tables.cost_table),
        (pictures.tiers, pictures.cost, pictures.differences(ADAPOP)),
    )


def world_named(name: str) -> World | Ground:
    """One of `plans.WORLDS`, which are pretrained on demand, or a shipped one.

    Raises:
        ConfigError: there is none of this name.
    """
    shipped = [other for other in SHIPPED if other != SANDBOX]
    if name in shipped:
        return Ground(sandbox_facts(name), name, {})
    for world in WORLDS:
        if world.name == name:
            return world
    known = ", ".join((*shipped, *(world.name for world in WORLDS)))
    raise ConfigError(f"There is no world {name!r}.", f"Use one of {known}.")


def worst(row: Row) -> float | None:
    """Recall of the tier that is forgotten least, asked in other words, on the test half."""
    found = [tables.OUTCOMES[tier](row) for tier in TIERS]
    return None if None in found else max(found)


def on_test(row: Row) -> float | None:
    """J on the test half."""
    parts = {"worst": worst(row), **{name: tables.OUTCOMES[name](row) for name in LIMITS}}
    return None if None in parts.values() else objective(**parts)


def test_table(seen: Rows) -> Table:
    """J and the outcomes of every winner, the best first, each mean with its interval over seeds."""
    values = tables.measured(seen, {"J": on_test, "worst tier": worst, **tables.OUTCOMES})
    found = [(title, [over(rows, value) for value in values.values()], counted(rows)) for title, rows in seen.items()]
    found.sort(key=lambda line: line[1][0].mean if line[1][0] else float("inf"))
    rows = [(title, *(ranged(cell) for cell in cells), seeds) for title, cells, seeds in found]
    reading = tables.READING + f" {tables.NEIGHBOURS_READING}" * ("neighbours" in values)
    note = f"{OBJECTIVE} {reading} In brackets: 95 % interval of Student's t over seeds."
    return Table("On the test half", ("", *values, "seeds"), tuple(rows), note)


def ranged(found: tables.Summary | None) -> str:
    """A mean with its interval, without signs."""
    if found is None or found.low is None:
        return text(found)
    return f"{found.mean:.2f} ({found.low:.2f} to {found.high:.2f})"


def winner_table(done: dict[str, list[dict]]) -> Table:
    """What was chosen for each arm, and by which numbers."""
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
