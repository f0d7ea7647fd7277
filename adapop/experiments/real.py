"""`bench real`: runs on a real language model, the choice of each arm's rate, and their tables.

Each arm's rate is chosen at one seed on the validation split of the facts, so that all arms forget
about as much. Results are reported at other seeds on the test split, as shares of what the original
model knew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from adapop.errors import ConfigError
from adapop.experiments.plans import (
    CONTROL_ARMS,
    METHOD_ARMS,
    PAPER,
    TEST,
    VALIDATION,
    Arm,
    CustomData,
    Item,
    RowsByKey,
)
from adapop.experiments.results import ALL_ATTACKS, Row
from adapop.experiments.run import Experiment, Place, check_own
from adapop.experiments.tables import Rows, Value, counted, mean_table, minus, over, text
from adapop.facts.fact import TIERS, FactSet
from adapop.paths import found_from_anywhere
from adapop.probes.intervals import summary
from adapop.probes.prompting import FORM_OF_WAY
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.report.real import AT, LEAST_BEFORE, share_of
from adapop.report.record import name_of
from adapop.report.table import Table

SHARES_NOTE = (
    "Shares: recall divided by the original model's on the same questions, 1 if nothing is lost; "
    "only facts that it answers as trained, on the test split, which no choice used; empty where "
    "the original's recall is below {least_before:g}. Mean ± standard deviation over seeds."
)
REAL_OUTCOME_NOTE = (
    "Of the facts to forget asked in other words, rare / middle / popular (lower is better) and "
    "popular minus rare; then, asked as trained, of facts that were trained on to be kept, of "
    "facts never trained on, and of other questions (higher is better). "
)
REAL_CHOICE_NOTE = (
    "One rule for all arms, on shares of what the original knew, asked as trained, on the "
    "validation split, at seed 0: the lowest rate that leaves at most {half:g} of the facts to "
    "forget, else the rate that leaves least. The cost in retained facts plays no part in the "
    "choice."
)

NAME = "real"
QUESTION = (
    "Is there a popularity gap in a real pretrained model, do scores close it, and what "
    "do neighbours pay? Each method runs at the rate at which half of the facts to forget "
    "are left. It is chosen on one half of the facts at seed 0; results are of the other half at "
    "other seeds, as shares of what the original knew."
)
CHOSEN_AT = 0  # the seed of the choice; other seeds are reported
ASKINGS = ("text-examples", "chat")
RATES = (5e-5, 1.5e-4, 5e-4)
# With α₀ = 2 SmolLM2 forgets the same whatever the scores; with 0.5 it loses three quarters of what
# it should keep.
ALPHA0 = 1.0
SETTINGS = {"batch": 16, "micro_batch": 16, "precision": "float32", "measure": "off"}
# of the studies that are no comparison of methods
AS_TEXT = {**SETTINGS, "asking": "text-examples", "alpha0": ALPHA0, "frames": 0}
CHOSEN = {"learning_rate", "alpha0", "asking", "measure", "seed", "frames", "arguments"}
_METHOD = {arm.method: arm for arm in METHOD_ARMS}
UNWATCHED = {"retain_signal": "ema"}  # no controller needs the loss of the whole retain set
ARMS = {
    "adapop": PAPER,
    "shuffled": CONTROL_ARMS["shuffled"],
    "wga": replace(CONTROL_ARMS["beta-1"], title="WGA (AdaPop, β = 1)"),
    **{name: replace(_METHOD[name], changes=UNWATCHED) for name in ("npo", "satimp", "redirect")},
    "altpo": replace(_METHOD["altpo"], changes={**UNWATCHED, "arguments": {"source": "second"}}),
    "as-given": replace(PAPER, title="AdaPop, answers as given", changes={"answers": "as-given"}),
    "sft": replace(PAPER, title="AdaPop, fine-tuned first", changes={"start": "sft"}),
}
# Arms for chat alone. As text, answers are scored as given anyway and nothing is fine-tuned.
IN_CHAT = ("as-given", "sft")
FORMS = (DIRECT, REWORDED, *FORM_OF_WAY.values(), ALL_ATTACKS)
OTHERS = ("retain", "holdout", "utility")
HALF = 0.5  # arms are compared where about this share of the facts to forget is left
SHARES = SHARES_NOTE.format(least_before=LEAST_BEFORE)


def placed(
    place: Place,
    facts: FactSet,
    model: str,
    asking: str,
    changes: Mapping[str, Any],
    names: Sequence[str] = (),
) -> Place:
    """The experiment's `Place` for these facts, with files named by model and asking. changes:
    settings of every run. names: the arms to run, by default all of this way of asking. Raises
    ConfigError: an unknown asking or arm, a setting that the experiment decides, or no
    rewording."""
    if asking not in ASKINGS:
        raise ConfigError(f"--asking is {asking!r}.", f"Use {' or '.join(ASKINGS)}.")
    if unknown := sorted({*names} - ARMS.keys()):
        raise ConfigError(f"There is no arm called {unknown[0]}.", f"Use {', '.join(ARMS)}.")
    check_own(facts, changes, CHOSEN)
    model = found_from_anywhere(model)
    custom = CustomData(facts, model, {**SETTINGS, **changes, "asking": asking})
    usual = [name for name in ARMS if asking == "chat" or name not in IN_CHAT]
    arms = [arm for name, arm in ARMS.items() if name in (names or usual)]

    def plan(seeds: Sequence[int], quick: bool, known: RowsByKey) -> list[Item]:
        searches = [_search(arm, custom, quick, known) for arm in arms]
        items = [item for tried, _ in searches for item in tried]
        for seed in seeds:
            items += [Item(arm, seed, quick, custom, split=TEST) for _, arm in searches if arm]
        return items

    title = f"A real language model: {name_of(model)}, {asking}, {facts.name}"
    tables = outcome_table, form_table, choice_table, before_table, trial_table, cost_table
    own = Experiment(title, QUESTION, plan, tables, ())
    return replace(place, name=f"{NAME}-{name_of(model)}-{asking}".replace("/", "-"), own=own)


def _search(
    arm: Arm, custom: CustomData, quick: bool, known: RowsByKey
) -> tuple[list[Item], Arm | None]:
    """The trials of an arm, one rate after the other until one forgets enough, and the arm at the
    chosen rate. The arm is None while a trial is missing, or if no trial has a result."""
    items: list[Item] = []
    rows: list[Row] = []
    for rate in RATES[:1] if quick else RATES:
        items.append(Item(_at(arm, rate), CHOSEN_AT, quick, custom, split=VALIDATION))
        if items[-1].key not in known:
            return items, None
        rows.append(known[items[-1].key])
        if forgets_enough(rows[-1]):
            break
    best = chosen_row(rows)
    chosen = [item.arm for item in items if best and item.key == best["key"]]
    return items, replace(chosen[0], title=arm.title) if chosen else None


def _at(arm: Arm, rate: float) -> Arm:
    changes = {**arm.changes, "learning_rate": rate, "alpha0": ALPHA0}
    title = f"{arm.title}{AT}{rate:g}, α₀ = {ALPHA0:g}"
    return replace(arm, title=title, changes=changes)


def share(group: str, form: str, tier: str = "all") -> Value:
    """Reads recall after unlearning as a share of that before; None if too few were known."""

    def value(row: Row) -> float | None:
        return share_of(row["shares"] or {}, group, form, tier)

    return value


_BY_TIER = {tier: share("forget", REWORDED, tier) for tier in TIERS}
OUTCOMES: dict[str, Value] = {
    **_BY_TIER,
    "popular − rare": minus(_BY_TIER["popular"], _BY_TIER["rare"]),
    **{group: share(group, DIRECT) for group in OTHERS},
}
LEFT, RETAINED = share("forget", DIRECT), share("retain", DIRECT)  # used to choose a rate


def forgets_enough(row: Row) -> bool:
    """Whether a trial left at most half of the known facts to forget, as trained; False if it
    failed."""
    return not row["failed"] and (left := LEFT(row)) is not None and left <= HALF


def chosen_row(rows: Sequence[Row]) -> Row | None:
    """The chosen trial of an arm: the first that forgets enough, or the one that leaves least."""
    done = [row for row in rows if not row["failed"] and LEFT(row) is not None]
    return next(filter(forgets_enough, done), min(done, key=LEFT, default=None))


def outcome_table(arms: Rows) -> Table:
    """Shares of recall left in each tier and in the other groups, a row per arm with its rate."""
    note = REAL_OUTCOME_NOTE + SHARES
    return mean_table("What is left", _reported(arms), OUTCOMES, note, rated=True)


def form_table(arms: Rows) -> Table:
    """Shares left in each form of the question, a row per arm and form."""
    rows = []
    for title, runs in _reported(arms).items():
        for form in FORMS:
            values = [share("forget", form, tier) for tier in (*TIERS, "all")]
            values += [share(group, form) for group in OTHERS[:2]]
            cells = [text(over(runs, value)) for value in values]
            if any(cells):
                rows.append((title, form, *cells, counted(runs)))
    head = ("", "form", *TIERS, "all", *OTHERS[:2], "seeds")
    note = f"Attacks and other ways of asking: a few facts a tier. {SHARES}"
    return Table("By form of the question", head, tuple(rows), note)


def choice_table(arms: Rows) -> Table:
    rows = []
    for title, trials in _trials(arms).items():
        cells = ("",) * 3
        if best := chosen_row(trials):
            cells = (f"{best['rate']:g}", f"{LEFT(best):.2f}", f"{RETAINED(best):.2f}")
        rows.append((title, *cells, counted(trials)))
    note = REAL_CHOICE_NOTE.format(half=HALF)
    return Table("What was chosen", ("", "rate", "forget", "retain", "trials"), tuple(rows), note)


def trial_table(arms: Rows) -> Table:
    """Every trial that the choices were made from."""
    values = {tier: share("forget", DIRECT, tier) for tier in TIERS}
    values |= {"forget": LEFT, "retain": RETAINED}
    rows = []
    for title, trials in _trials(arms).items():
        for row in trials:
            cells = (text(over([row], value)) for value in values.values())
            rows.append((title, f"{row['rate']:g}", *cells, row["failed"]))
    head = ("", "rate", *values, "failed because")
    return Table("Every trial", head, tuple(rows), "As above: on the validation split, at seed 0.")


def before_table(arms: Rows) -> Table:
    """Recall of the original model on the questions that shares are computed from."""
    runs = [row["shares"] for own in _reported(arms).values() for row in own if row["shares"]]
    lines = []
    for cell in dict.fromkeys(cell for shares in runs for cell in shares):
        own = [shares[cell] for shares in runs if cell in shares]
        facts = ", ".join(f"{count:g}" for count in sorted({count for count, *_ in own}))
        lines.append((*cell.split("/"), facts, text(summary([before for _, before, _ in own]))))
    note = "Recall of the original model, over the facts that it answers as trained."
    return Table("Before", ("", "form", "tier", "facts", "recall"), tuple(lines), note)


def cost_table(all_arms: Rows) -> Table:
    """Seconds of a run, for trials and reported runs."""
    rows = []
    for kind, arms in {"trials": _trials(all_arms), "reported": _reported(all_arms)}.items():
        runs = [row for rows_of_arm in arms.values() for row in rows_of_arm if not row["failed"]]
        if runs:
            peak = max(row["peak_mb"] for row in runs)
            seconds = summary([row["seconds"] for row in runs])
            rows.append((kind, f"{seconds.mean:.0f}", f"{peak:.0f}", str(len(runs))))
    note = "Wall-clock seconds of a run on one core, measurements included. MB: its memory."
    return Table("Cost", ("", "seconds", "MB", "runs"), tuple(rows), note)


def _reported(arms: Rows) -> Rows:
    """Rows of the arms without their trials."""
    return {title: rows for title, rows in arms.items() if AT not in title}


def _trials(arms: Rows) -> dict[str, list[Row]]:
    """The trials by the title of their arm, in order of rate."""
    trials: dict[str, list[Row]] = {}
    for title, rows in arms.items():
        if AT in title:
            trials.setdefault(title.partition(AT)[0], []).extend(rows)
    return {title: sorted(rows, key=itemgetter("rate")) for title, rows in trials.items()}
