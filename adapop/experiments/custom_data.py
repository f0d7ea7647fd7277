"""An experiment on a user's own facts and model: same arms, seeds and tables."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapop.config.presets import PAPER_RATES, RATES
from adapop.errors import ConfigError
from adapop.experiments.item import CustomData, Item
from adapop.experiments.plans import METHOD_ARMS, SWEPT, RowsByKey, ablated, swept
from adapop.experiments.run import EXPERIMENTS, Experiment, Place
from adapop.experiments.tables import published_table
from adapop.facts.fact import FactSet
from adapop.paths import SHIPPED, found_from_anywhere
from adapop.report.record import name_of

# Experiments that do not need the sandbox.
OWN = ("main", "rates", "forgetting", "ablation", "coefficients", "scores", "epochs", "alpha")
DECADE = (-0.5, -0.25, 0.0, 0.25, 0.5)  # exponents of ten by which a given rate is multiplied
DECIDED = ("arguments", "seed", "frames", "measure")  # settings that the experiment sets itself


def rates_for(model: str, changes: Mapping[str, Any]) -> tuple[float, ...]:
    """Learning rates of a sweep: a decade around a given one, the sandbox's, or the paper's."""
    if rate := changes.get("learning_rate"):
        return tuple(rate if power == 0 else float(f"{rate * 10**power:.3g}") for power in DECADE)
    return RATES if model in SHIPPED else PAPER_RATES


def placed(place: Place, facts: FactSet, model: str, changes: Mapping[str, Any]) -> Place:
    """The experiment's `Place` for these facts and this model, with its own files. changes:
    settings of every run; arms override them. Raises ConfigError: the experiment needs the sandbox
    or sets one of these settings itself, or no fact has a rewording."""
    if place.name not in OWN:
        message = f"bench {place.name} is about the sandbox alone."
        raise ConfigError(message, f"With --facts or --model: {', '.join(OWN)}.")
    if taken := sorted(changes.keys() & DECIDED):
        raise ConfigError(f"{taken[0]} is decided by the experiment.", "Leave it out.")
    if not any(fact.paraphrases for fact in facts.forget):
        message = f"No fact of {facts.name} has a rewording"
        fix = "Add a column called paraphrases, or let `adapop reword` write them."
        raise ConfigError(f"{message}, and the tables are of answers in other words.", fix)
    model = found_from_anywhere(model)
    custom, base = CustomData(facts, model, changes), EXPERIMENTS[place.name]
    rates, given = rates_for(model, changes), "learning_rate" in changes
    planners = dict.fromkeys(SWEPT, swept(METHOD_ARMS, rates))
    planners["ablation"] = ablated(rates=() if given else rates)
    planner = planners.get(place.name, base.plan)

    def plan(seeds: Sequence[int], quick: bool, known: RowsByKey) -> list[Item]:
        here = {item.key: replace(item, custom=custom).key for item in planner(seeds, quick, {})}
        # Rows by the keys that the planner uses.
        own_rows = {key: known[own] for key, own in here.items() if own in known}
        return [replace(item, custom=custom) for item in planner(seeds, quick, own_rows)]

    title = f"{base.title}: {facts.name}, {name_of(model)}"
    tables = tuple(table for table in base.tables if table is not published_table)
    own = Experiment(title, base.question, plan, tables, base.figures)
    identity = f"{facts.sha256} {model} {sorted(changes.items())}"
    name = f"{place.name}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"
    return replace(place, name=name, own=own)
