"""What the worker does on the accelerator, as functions that may run in any process: they get a run's folder and plain
data, return plain data, and find everything else on disk. No torch until one of them is called.

Where an accelerator is lent for a minute at a time, a run is done in slices of whole epochs: each slice loads the last
checkpoint and ends with the next, as a resumed run does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from adapop.config import make_config
from adapop.errors import RunError
from adapop.events import Saved
from adapop.facts import Fact
from adapop.progress import Progress
from adapop.runs import Run

if TYPE_CHECKING:
    from adapop.model import AdaptedModel
    from adapop.probes.ask import Asked
    from adapop.probes.plan import Plan
    from adapop.probes.prompts import NotApplicable
    from adapop.probes.rows import ProbeRow

# by the title of the error with which ZeroGPU refuses: what happened, and what to do next
REFUSALS = {
    "ZeroGPU quota exceeded": (
        "Today's GPU time is used up.",
        "Log in to Hugging Face for more, or come back tomorrow. What was saved is kept.",
    ),
    "ZeroGPU pending credits exceeded": (
        "Other GPU work of this account is still under way.",
        "Try again when it is done.",
    ),
    "ZeroGPU illegal duration": (
        "One step of this work asks for more GPU time at once than this account may have.",
        "Use fewer facts, or run the app on a machine of your own.",
    ),
    "ZeroGPU queue timeout": ("No GPU was free for a minute.", "Try again in a moment. What was saved is kept."),
    "ZeroGPU client error": ("No GPU could be had.", "Try again in a moment. What was saved is kept."),
    "ZeroGPU worker error": (
        "The GPU was taken away in the middle of the work.",
        "What the last finished epoch saved is kept: try again, with fewer facts if it happens twice.",
    ),
}


def whole_run(folder: Path) -> bool:
    """Does all that is left of a run. Returns that nothing is."""
    from adapop.execution import execute

    for _ in execute(Run(folder)):
        pass
    return False


def next_epoch(folder: Path) -> bool:
    """Does a run until its next epoch is saved, or to its end. Returns whether something is left to do."""
    from adapop.execution import execute

    run = Run(folder)
    before = run.last_epoch or 0
    with closing(execute(run)) as events:
        return any(isinstance(event, Saved) and event.epoch > before for event in events)


def asked(folder: Path, prompts: list[str], golds: list[str]) -> list[Asked]:
    """Both models' answers to prompts."""
    from adapop.probes.ask import ask

    run = Run(folder)
    model = _model(run)
    return ask(model, prompts, golds, run.config.max_new_tokens)


def found(folder: Path, plan: Plan, progress: Progress | None = None) -> list[ProbeRow | NotApplicable]:
    """Everything the plan asks of both models. It is kept in the run's folder, also if it ends early."""
    from adapop.probes.battery import battery

    run, rows = Run(folder), []
    model = _model(run)
    try:
        for row in battery(model, run.facts, plan, progress or Progress()):
            rows.append(row)
    finally:
        if rows:  # else what an earlier probing found is worth more
            run.save_probes(rows)
    return rows


def recovered(folder: Path, name: str, progress: Progress | None = None) -> dict:
    """What one of `RECOVERY` brings back. It is kept in the run's folder."""
    from adapop.probes.recovery.choice import recover

    run = Run(folder)
    model = _model(run)
    result = recover(name, model, run.facts, run.config.max_new_tokens, progress or Progress())
    run.save_recovery(name, result)
    return result


def recalled(facts: Sequence[Fact], progress: Progress | None = None) -> dict[str, float]:
    """What the original sandbox model can answer, by fact id."""
    from adapop.loading import adapted_model
    from adapop.probes.measure import recall_by_fact

    config = make_config()
    return recall_by_fact(adapted_model(config), facts, config.max_new_tokens, progress or Progress())


def in_words(error: Exception) -> RunError:
    """An accelerator's refusal or death as something to say and to do."""
    refusal = REFUSALS.get(getattr(error, "title", ""))
    if refusal is None:
        refusal = f"The work on the accelerator ended early ({type(error).__name__}).", "What was saved is kept."
    return RunError(*refusal)


def _model(run: Run) -> AdaptedModel:
    """The run's model at its last checkpoint. A run that is asked is young again: see `janitor`."""
    try:
        os.utime(run.folder / "facts.jsonl")
    except FileNotFoundError:
        raise RunError("This run was deleted.", "Start it again.") from None
    return _loaded(run.checkpoint(run.last_epoch or 0))


@lru_cache(maxsize=1)
def _loaded(checkpoint: Path) -> AdaptedModel:
    """The model asked last is kept, for as long as this process lives."""
    from adapop.execution import load_model

    return load_model(Run(checkpoint.parent))
