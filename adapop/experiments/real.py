"""`bench real`: plans the runs on a real language model and chooses each arm's rate.

Each arm's rate is chosen at one seed on the validation split of the facts, so that all arms forget
about as much. Results are reported at other seeds on the test split.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapop.errors import ConfigError
from adapop.experiments import real_tables
from adapop.experiments.item import Arm, CustomData, Item
from adapop.experiments.plans import CONTROL_ARMS, METHOD_ARMS, PAPER, RowsByKey
from adapop.experiments.results import Row
from adapop.experiments.run import TEXTS, Experiment, Place
from adapop.experiments.validation import TEST, VALIDATION
from adapop.facts.fact import FactSet
from adapop.paths import found_from_anywhere
from adapop.report.record import name_of

NAME = "real"
CHOSEN_AT = 0  # the seed of the choice; other seeds are reported
ASKINGS = ("text-examples", "chat")
RATES = (5e-5, 1.5e-4, 5e-4)
# With α₀ = 2 SmolLM2 forgets the same whatever the scores; with 0.5 it loses three quarters of what
# it should keep.
ALPHA0 = 1.0
SETTINGS = {"batch": 16, "micro_batch": 16, "precision": "float32", "measure": "off"}
CHOSEN = ("learning_rate", "alpha0", "asking", "measure", "seed", "frames", "arguments")
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
        raise ConfigError(f"No arm is called {unknown[0]}.", f"Use {', '.join(ARMS)}.")
    if taken := sorted(changes.keys() & CHOSEN):
        raise ConfigError(f"{taken[0]} is decided by the experiment.", "Leave it out.")
    if not any(fact.paraphrases for fact in facts.forget):
        message = f"No fact of {facts.name} has a rewording."
        raise ConfigError(message, "Add a column called paraphrases.")
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

    title, question = TEXTS[NAME]
    title = f"{title}: {name_of(model)}, {asking}, {facts.name}"
    own = Experiment(title, question, plan, real_tables.TABLES, ())
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
        if real_tables.forgets_enough(rows[-1]):
            break
    best = real_tables.chosen_row(rows)
    chosen = [item.arm for item in items if best and item.key == best["key"]]
    return items, replace(chosen[0], title=arm.title) if chosen else None


def _at(arm: Arm, rate: float) -> Arm:
    changes = {**arm.changes, "learning_rate": rate, "alpha0": ALPHA0}
    title = f"{arm.title}{real_tables.AT}{rate:g}, α₀ = {ALPHA0:g}"
    return replace(arm, title=title, changes=changes)
