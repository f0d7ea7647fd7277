"""`bench tuned`: the recorded runs of methods with the settings that equal searches chose.

They are not made again. The searches (Optuna, 40 trials an arm at seed 0) and the runs of their
winners on other seeds are code of commit 1e770910, which made the rows. What they say of scores,
and of the worlds together, is in "Every method tuned alike" of `assets/docs/findings.md`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean

from adapop.config.methods import METHODS
from adapop.errors import ConfigError
from adapop.experiments import pictures, tables
from adapop.experiments.plans import ADAPOP, TEST, planned
from adapop.experiments.results import ATTACK_KINDS, Results, Row
from adapop.experiments.run import Experiment
from adapop.experiments.tables import OUTCOMES, Rows, Value, column, counted, over
from adapop.facts.fact import PEOPLE, SANDBOX, TIERS
from adapop.paths import ASSETS
from adapop.probes.prompts import CHOICE, REWORDED
from adapop.report.figures import Figure
from adapop.report.figures.experiments import front_panels
from adapop.report.figures.outcomes import Outcome
from adapop.report.table import Table

TUNED_NOTE = (
    "How does each method do at its best, with 40 trials each at seed 0? {objective} Chosen on the "
    "validation {split}; the outcomes are on the test split, on seeds that no trial has used. The "
    "searches ran with the code of commit 1e770910; these are their rows, which the app no longer "
    "makes."
)
OBJECTIVE_NOTE = (
    "J = recall of the tier that is forgotten least, asked in other words, + 2 × the shortfalls of "
    "holdout below {holdout:g}, of utility below {utility:g} and of trained retain recall below "
    "{retain:g}; lower is better."
)
DOOR_NOTE = (
    "Of the facts to forget, which are not split. No search used any of these but top 2 and rank, "
    "which here use the test split's wordings. Attacks: mean recall over those that the original "
    "answers, without multiple choice; the hardest is the one with the highest recall. Top 2: "
    "share whose right answer is the first guess, or the likeliest of the relation's other "
    "answers; rank: its mean rank among those answers, 1 is the likeliest. Taught again: recall of "
    "facts not taught again, before, after 10 steps on 16 other facts, and after as many steps on "
    "invented answers (control). Rounded: recall with weights of 4 bits. Sampled: share whose "
    "answer is among 16 sampled replies, and the same for a wrong answer (control). In brackets: "
    "95% interval over seeds."
)

RECORDED = ASSETS / "recorded"
FILES = {SANDBOX: "tuned", "half-spread": "tuned-half-spread", PEOPLE: "tuned-people"}  # by world
ANEW = "tuned-people-anew"  # searched among the people, not in the sandbox
THREE = "three"  # the name of the worlds of `FILES` together
NOT_SHOWN = ("Redirect, other targets",)  # recorded by an earlier search
# The searches minimized J: recall of the worst tier, reworded, plus PRICE times the amounts by
# which holdout, utility and retain fall below their limits.
PRICE, LIMITS = 2.0, {"holdout": 0.93, "utility": 0.95, "retain": 0.97}
WITH = ": "  # separates world and arm in the title of an arm in several worlds
TITLES = [method.title for method in METHODS.values()]


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
    question = TUNED_NOTE.format(objective=OBJECTIVE_NOTE.format(**LIMITS), split=split)
    name = ANEW if anew else FILES.get(world, f"tuned-{THREE}")
    figures: tuple[pictures.Draw, ...] = (fronts,)
    if world != THREE:
        drawn = pictures.guesses, pictures.cost, pictures.differences(ADAPOP), pictures.nearness
        figures = tuple(partial(_of_methods, draw) for draw in drawn)
    rows = partial(rows_of, name) if world != THREE else _rows_of_worlds
    return name, Experiment(title, question, planned(), (test_table, recovery_table), figures, rows)


def _of_methods(draw: pictures.Draw, arms: Rows) -> Figure:
    """A figure of the methods only: with all arms it would be illegible."""
    return draw({title: rows for title, rows in arms.items() if title in TITLES})


def rows_of(name: str) -> dict[str, list[Row]]:
    """Arm -> its recorded rows by seed: methods in their usual order, then the other arms."""
    by_arm: dict[str, list[Row]] = {title: [] for title in TITLES}
    for row in Results(RECORDED / f"{name}.csv").rows().values():
        if row["arm"] not in NOT_SHOWN:
            by_arm.setdefault(row["arm"], []).append(row)
    return {arm: sorted(rows, key=lambda row: row["seed"]) for arm, rows in by_arm.items() if rows}


def _rows_of_worlds() -> Rows:
    worlds = {world: rows_of(name) for world, name in FILES.items()}
    return {
        f"{world}{WITH}{arm}": rows for world, arms in worlds.items() for arm, rows in arms.items()
    }


def worst(row: Row) -> float | None:
    """Recall of the worst tier (the one with most left), asked in other words, test split."""
    recalls = [row[f"{TEST}_forget_{REWORDED}_{tier}"] for tier in TIERS]
    return None if None in recalls else max(recalls)


def score(row: Row) -> float | None:
    """J on the test split."""
    left = worst(row)
    values = {
        "holdout": row[f"{TEST}_holdout_direct_all"],
        "utility": row[f"{TEST}_utility"],
        "retain": row["retain_direct_all"],
    }
    if left is None or None in values.values():
        return None
    return left + PRICE * sum(max(0.0, limit - values[name]) for name, limit in LIMITS.items())


def attacked(row: Row, of: Callable[[Sequence[float]], float] = fmean) -> float | None:
    """Recall of the facts to forget under the attacks. of: how the attacks' recalls are combined.
    Leaves out multiple choice, where avoiding the answer scores below chance."""
    kinds = [kind for kind in ATTACK_KINDS if kind != CHOICE]
    recalls = [value for kind in kinds if (value := row[f"attack {kind}"]) is not None]
    return of(recalls) if recalls else None


def test_table(arms: Rows) -> Table:
    """J and the outcomes of every arm, the best first, each mean with its interval."""
    values = tables.measured(arms, {"J": score, "worst tier": worst, **OUTCOMES})
    about = tables.READING + f" {tables.NEIGHBOURS_READING}" * ("neighbours" in values)
    note = f"{OBJECTIVE_NOTE.format(**LIMITS)} {about} In brackets: 95% interval over seeds."
    return _ranked("On the test split", arms, values, note)


def recovery_table(arms: Rows) -> Table | None:
    """Results of the recovery checks, least attacked first; None if no model was checked."""
    values: dict[str, Value] = {
        "attacks": attacked,
        "hardest attack": partial(attacked, of=max),
        "top 2": column(f"{TEST}_forget_top2_all"),
        "rank": column(f"{TEST}_forget_rank_all"),
        "taught again, before": column("relearn_before"),
        "after": column("relearn_after"),
        "after (control)": column("relearn_control"),
        "rounded": column("rounded"),
        "sampled": column("sampled"),
        "sampled (control)": column("sampled_control"),
        "sampled − control": tables.minus(column("sampled"), column("sampled_control")),
    }
    probed = {title: rows for title, rows in arms.items() if over(rows, attacked)}
    return _ranked("Recovery checks", probed, values, DOOR_NOTE) if probed else None


def _ranked(title: str, arms: Rows, values: Mapping[str, Value], note: str) -> Table:
    """Means with their intervals, a row per arm, in increasing order of the first value."""
    lines = [
        (arm, [over(rows, value) for value in values.values()], counted(rows))
        for arm, rows in arms.items()
    ]
    lines.sort(key=lambda line: line[1][0].mean if line[1][0] else float("inf"))
    rows = [(arm, *(cell.ranged if cell else "" for cell in cells), n) for arm, cells, n in lines]
    return Table(title, ("", *values, "seeds"), tuple(rows), note)


def fronts(arms: Rows) -> Figure:
    """Recall of the worst tier against holdout, a point per method, a panel per world."""
    panels: dict[str, list[Outcome]] = {}
    for title, rows in arms.items():
        world, _, arm = title.partition(WITH)
        left, holdout = over(rows, worst), over(rows, OUTCOMES["holdout"])
        if arm in TITLES and left and holdout:
            sides = {"forget": pictures.share(left), "holdout": pictures.share(holdout)}
            panels.setdefault(world, []).append(Outcome(arm, arm, **sides))
    return front_panels(panels, "worst tier answered, in other words", "held-out facts answered")
