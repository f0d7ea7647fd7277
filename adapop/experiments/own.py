"""An experiment on facts and a model of one's own: the same arms, seeds and tables, on another ground."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapop.errors import ConfigError
from adapop.experiments.item import Ground, Item
from adapop.experiments.plans import RowsByKey
from adapop.experiments.run import EXPERIMENTS, Experiment, Place
from adapop.experiments.tables import published_table
from adapop.facts.fact import FactSet
from adapop.paths import found_from_anywhere
from adapop.report.record import name_of

OWN = ("main", "rates", "ablation", "coefficients", "epochs", "alpha")  # those that ask nothing of the sandbox alone
DECIDED = ("arguments", "seed", "frames", "measure")  # by an experiment itself


def placed(place: Place, facts: FactSet, model: str, changes: Mapping[str, Any]) -> Place:
    """The place of the same experiment on these facts and this model, with files of its own. changes: settings of every
    run, but where an arm says otherwise.

    Raises:
        ConfigError: the experiment needs the sandbox, a setting is decided by it, or no fact has a rewording.
    """
    if place.name not in OWN:
        raise ConfigError(
            f"bench {place.name} is about the sandbox alone.", f"With --facts or --model: {', '.join(OWN)}."
        )
    if taken := sorted(changes.keys() & DECIDED):
        raise ConfigError(f"{taken[0]} is decided by the experiment.", "Leave it out.")
    if not any(fact.paraphrases for fact in facts.forget):
        raise ConfigError(
            f"No fact of {facts.name} has a rewording, and the tables are of answers in other words.",
            "Add a column called paraphrases, or let `adapop reword` write them.",
        )
    model = found_from_anywhere(model)
    ground, base = Ground(facts, model, changes), EXPERIMENTS[place.name]

    def plan(seeds: Sequence[int], quick: bool, known: RowsByKey) -> list[Item]:
        here = {item.key: replace(item, ground=ground).key for item in base.plan(seeds, quick, {})}
        found = {key: known[own] for key, own in here.items() if own in known}  # as the plan looks for it
        return [replace(item, ground=ground) for item in base.plan(seeds, quick, found)]

    own = Experiment(
        f"{base.title}: {facts.name}, {name_of(model)}",
        base.question,
        plan,
        tuple(table for table in base.tables if table is not published_table),
        base.figures,
    )
    said = f"{facts.sha256} {model} {sorted(changes.items())}"
    return replace(place, name=f"{place.name}-{hashlib.sha256(said.encode()).hexdigest()[:8]}", own=own)
