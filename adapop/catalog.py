"""The sets one can pick: the sandbox's own, or a file of one's own."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from adapop.config import SANDBOX
from adapop.errors import DataError
from adapop.factfile import read_facts
from adapop.facts import FactSet, split_holdout
from adapop.sandbox import sandbox_facts


def load_facts(source: str, model: str = SANDBOX) -> FactSet:
    """The named set, or the facts of a file, made complete: with retain rows and with a holdout.

    Raises:
        DataError: no such set or file, an unusable file, or no retain rows for a model that is not the sandbox.
    """
    if source == SANDBOX:
        return sandbox_facts()
    path = Path(source)
    if not os.path.isfile(path):  # unlike Path.is_file, false for a name no file can have
        raise DataError(f"There is no set and no file called {source!r}.", f"Use {SANDBOX!r} or the path of a file.")
    return completed(read_facts(path), model)


def completed(facts: FactSet, model: str) -> FactSet:
    """The set with retain and holdout rows. On the sandbox model a set without them borrows the sandbox's."""
    if facts.retain:
        return split_holdout(facts)
    if model != SANDBOX:
        raise DataError(
            f"{facts.name} has no retain rows, so nothing would hold the rest of the model in place.",
            "Add rows with 'retain' in a column called group: facts like these that must survive.",
        )
    taken = {key for fact in (*facts.forget, *facts.holdout) for key in (fact.id, fact.question)}
    world = sandbox_facts()
    retain, holdout = (
        tuple(fact for fact in group if not {fact.id, fact.question} & taken) for group in (world.retain, world.holdout)
    )
    borrowed = f"{len(retain)} to retain" + ("" if facts.holdout else f" and {len(holdout)} held out")
    note = f"The set has no retain rows; {borrowed} come from the sandbox world."
    return replace(
        facts, retain=retain, holdout=facts.holdout or holdout, utility=world.utility, notes=(*facts.notes, note)
    )
