"""`bench tuned`: tables and figures of methods with the settings that equal searches chose.

The rows are recorded and are not made again. The searches (Optuna, 40 trials an arm at seed 0) and
the runs of their winners on other seeds are code of commit 1e770910, which made the rows.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean

from adapop.config.methods import METHODS
from adapop.errors import ConfigError
from adapop.experiments import distance, pictures, tables
from adapop.experiments.plans import ADAPOP, CONTROL_ARMS
from adapop.experiments.results import ATTACK_KINDS, Results, Row
from adapop.experiments.run import Experiment
from adapop.experiments.tables import OUTCOMES, Rows, Value, column, counted, over, paired_by_seed
from adapop.experiments.validation import TEST
from adapop.facts.fact import PEOPLE, SANDBOX, TIERS
from adapop.paths import ASSETS
from adapop.probes.intervals import Summary
from adapop.probes.prompts import CHOICE, REWORDED
from adapop.report.figures import Figure
from adapop.report.figures.experiments import front_panels
from adapop.report.figures.outcomes import Outcome
from adapop.report.table import Table, reading

RECORDED = ASSETS / "recorded"
FILES = {SANDBOX: "tuned", "half-spread": "tuned-half-spread", PEOPLE: "tuned-people"}  # by world
ANEW = "tuned-people-anew"  # searched among the people, not in the sandbox
THREE = "three"  # the name of the worlds of `FILES` together
NOT_SHOWN = ("Redirect, other targets",)  # recorded by an earlier search
# The settings of `LIMITS` cost twice the amount by which they fall short, see `objective`.
PRICE, LIMITS = 2.0, {"holdout": 0.93, "utility": 0.95, "retain": 0.97}
OBJECTIVE = reading("objective", **LIMITS)
STUDENT = "95 % interval of Student's t"
NOTE = "Every other setting is the winner's: nothing was chosen for these arms."
OURS, WGA = METHODS["redirect"].title, METHODS["wga"].title
# Winner -> how the titles of arms begin that differ from it only in how they use scores.
VARIANTS = {OURS: "Redirect's settings", WGA: f"{WGA}'s settings"}
WITH = ": "  # separates world and arm in the title of an arm in several worlds
# Title of a column of `recovery_table` -> name of the row's column.
RECOVERED = {
    "taught again, before": "relearn_before",
    "after": "relearn_after",
    "after (control)": "relearn_control",
    "rounded": "rounded",
    "sampled": "sampled",
    "sampled (control)": "sampled_control",
}


def experiment(world: str = SANDBOX, anew: bool = False) -> tuple[str, Experiment]:
    """The name of the rows' file, and the experiment, of a world or of `THREE`. anew: searched in
    that world. Raises ConfigError: there are no such rows."""
    if world not in (*FILES, THREE):
        message = f"No tuned runs are recorded in the world {world!r}."
        raise ConfigError(message, f"Use one of {', '.join((*FILES, THREE))}.")
    if anew and world != PEOPLE:
        message = f"--anew does not go with the world {world!r}."
        raise ConfigError(message, f"Use --world {PEOPLE}, or leave it out.")
    title = f"Tuned{' anew' * anew}, in {world}{' worlds' * (world == THREE)}"
    split = "split" if anew or world == SANDBOX else "split of the shipped sandbox"
    question = reading("tuned", objective=OBJECTIVE, split=split)
    if world == THREE:
        made = (worlds_table, worlds_difference_table)
        shown = Experiment(title, question, _no_runs, made, (fronts,), recorded=_rows_of_worlds)
        return f"tuned-{THREE}", shown
    name = ANEW if anew else FILES[world]
    made = (
        test_table, recovery_table, *(partial(variant_table, base=base) for base in VARIANTS),
        shuffled_table, to_ours_table, partial(tables.difference_table, base=ADAPOP),
        tables.guess_table, distance.oracle_table, tables.cost_table,
    )  # fmt: skip
    drawn = tuple(partial(_draw_winners, draw) for draw in DRAWN)
    title = "Tuned" if world == SANDBOX else title
    return name, Experiment(title, question, _no_runs, made, drawn, partial(rows_of, name))


def _no_runs(*_: object) -> list:
    return []


def rows_of(name: str) -> dict[str, list[Row]]:
    """Arm -> its recorded rows by seed: methods in their usual order, controls, then the others in
    the order of the file, variants last."""
    usual = [*METHODS.values(), *CONTROL_ARMS.values()]
    by_arm: dict[str, list[Row]] = {arm.title: [] for arm in usual}
    for row in Results(RECORDED / f"{name}.csv").rows().values():
        if row["arm"] not in NOT_SHOWN:
            by_arm.setdefault(row["arm"], []).append(row)
    arms = {arm: sorted(rows, key=lambda row: row["seed"]) for arm, rows in by_arm.items() if rows}
    return winners(arms) | arms


def _rows_of_worlds() -> Rows:
    worlds = {world: rows_of(name) for world, name in FILES.items()}
    return {
        f"{world}{WITH}{arm}": rows for world, arms in worlds.items() for arm, rows in arms.items()
    }


def winners(arms: Rows) -> dict[str, Sequence[Row]]:
    """The arms whose settings a search chose, without variants of them."""
    variants = tuple(VARIANTS.values())
    return {title: rows for title, rows in arms.items() if not title.startswith(variants)}


def _draw_winners(draw: pictures.Draw, arms: Rows) -> Figure:
    """A figure of the winners only: with all arms it would be illegible."""
    return draw(winners(arms))


DRAWN = (pictures.tiers, pictures.cost, pictures.differences(ADAPOP), distance.nearness)


def objective(worst: float, holdout: float, utility: float, retain: float) -> float:
    """J, which the searches minimized: recall of the worst tier, reworded, plus twice the amounts
    by which holdout, utility and retain fall below their limits."""
    levels = {"holdout": holdout, "utility": utility, "retain": retain}
    return worst + PRICE * sum(max(0.0, limit - levels[name]) for name, limit in LIMITS.items())


def worst(row: Row) -> float | None:
    """Recall of the worst tier (the one with most left), asked in other words, test split."""
    recalls = [row[f"{TEST}_forget_{REWORDED}_{tier}"] for tier in TIERS]
    return None if None in recalls else max(recalls)


def score(row: Row) -> float | None:
    """J on the test split."""
    parts = {
        "worst": worst(row),
        "holdout": row[f"{TEST}_holdout_direct_all"],
        "utility": row[f"{TEST}_utility"],
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
"""Measures in which a method should do well all at once."""
WITH_GAP: dict[str, Value] = {"J": score, "gap": OUTCOMES["gap"], **AIMS}
"""`AIMS`, with J and the gap that scores are meant to close."""


def test_table(arms: Rows) -> Table:
    """J and the outcomes of every arm, the best first, each mean with its interval."""
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


def to_ours_table(arms: Rows) -> Table | None:
    """Every other winner minus Redirect's."""
    return pair_table(arms, OURS, list(winners(arms)), f"Difference to {OURS}")


def variant_table(arms: Rows, base: str) -> Table | None:
    """Arms that differ from a winner only in how they use scores, minus that winner."""
    others = [title for title in arms if title.startswith(VARIANTS[base])]
    return pair_table(arms, base, others, f"Scores, all else as {base}", NOTE, WITH_GAP)


def shuffled_table(arms: Rows) -> Table | None:
    """Variants with given scores minus the same arms with shuffled ones."""
    rows = []
    for title, other in product(arms, repeat=2):
        # "..., scores shuffled" beside "...", or "(gentle curve, shuffled)" beside "(gentle curve)"
        pair = other.replace(", scores shuffled", "").replace(", shuffled)", ")")
        if title.startswith(tuple(VARIANTS.values())) and pair == title != other:
            rows += pair_table(arms, other, [title], values=WITH_GAP).rows
    if not rows:
        return None
    note = f"The arm minus itself with shuffled scores, paired by seed: mean ({STUDENT})."
    return Table("What the right scores add to shuffled ones", ("", *WITH_GAP), tuple(rows), note)


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


def fronts(arms: Rows) -> Figure:
    """Recall of the worst tier against holdout, a point per method, a panel per world."""
    methods, panels = {method.title for method in METHODS.values()}, {}
    for title, rows in arms.items():
        world, _, arm = title.partition(WITH)
        left, holdout = over(rows, worst), over(rows, OUTCOMES["holdout"])
        if arm in methods and left and holdout:
            sides = {"forget": pictures.share(left), "holdout": pictures.share(holdout)}
            panels.setdefault(world, []).append(Outcome(arm, arm, **sides))
    return front_panels(panels, "worst tier left, asked in other words", "holdout kept")


def _ranked(title: str, arms: Rows, values: Mapping[str, Value], note: str) -> Table:
    """Means with their intervals, a row per arm, in increasing order of the first value."""
    lines = [
        (arm, [over(rows, value) for value in values.values()], counted(rows))
        for arm, rows in arms.items()
    ]
    lines.sort(key=lambda line: line[1][0].mean if line[1][0] else float("inf"))
    rows = [(arm, *map(_ranged, cells), seeds) for arm, cells, seeds in lines]
    return Table(title, ("", *values, "seeds"), tuple(rows), note)


def _ranged(summary: Summary | None) -> str:
    """A mean with its interval, without signs."""
    return "" if summary is None else summary.ranged
