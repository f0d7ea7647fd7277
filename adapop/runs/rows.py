"""A run's results as DataFrames, one row a thing that was measured. Imports no torch.

Steps of a run are counted on over its epochs: the first step of epoch 2 follows the last of 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pandas as pd

from adapop.errors import RunError, did_you_mean
from adapop.facts.fact import GROUPS, TIERS, Fact
from adapop.probes.prompts import NotApplicable, ProbeRow
from adapop.training.events import EpochDone, Event, Measured, RunStarted, StepDone

if TYPE_CHECKING:
    from adapop.runs.run import Run

Rows = Iterator[dict[str, Any]]


def table_of(run: Run, name: str) -> pd.DataFrame:
    """The table of a run by its name, see `TABLES`. Raises RunError: no such table."""
    if name not in TABLES:
        fix = f"{did_you_mean(name, TABLES)}Use one of {', '.join(TABLES)}."
        raise RunError(f"A run has no rows called {name!r}.", fix)
    return pd.DataFrame(list(TABLES[name](run)))


def _steps(run: Run) -> Rows:
    before = 0
    for event in run.events():
        if isinstance(event, RunStarted):
            before = event.steps
        elif isinstance(event, StepDone):
            yield step_row(event, before)


def step_row(event: StepDone, steps: int) -> dict[str, Any]:
    """The row of a step. steps: number in an epoch."""
    names = ("forget_loss", "nll_forget", "nll_retain", "gradient_norm", "learning_rate")
    by_tier = {f"nll_{tier}": event.nll_by_tier.get(tier) for tier in TIERS}
    row = {"step": (event.epoch - 1) * steps + event.step, "epoch": event.epoch}
    return row | {name: getattr(event, name) for name in names} | by_tier


def epoch_row(event: EpochDone) -> dict[str, Any]:
    """The controller's row of an epoch."""
    return asdict(event.row) | {"drift_from_start": event.drift_from_start}


def measured_rows(events: Iterable[Event]) -> Rows:
    """The rows of all measurements, each with its epoch and whether it was a full one."""
    for event in events:
        if isinstance(event, Measured):
            yield from ({"epoch": event.epoch, "full": event.full, **row} for row in event.rows)


def _frames(run: Run) -> Rows:
    facts = run.facts
    members = {group: [fact.id for fact in getattr(facts, group)] for group in GROUPS}
    members["reworded"] = members["forget"]
    for frame in run.frames():
        for group, scores in frame.scores.items():
            answers = frame.answers if group == "forget" else ()
            for place, (fact, p, rank) in enumerate(zip(members[group], scores.p, scores.rank)):
                row = {"step": frame.step, "epoch": frame.epoch, "group": group, "fact": fact}
                yield row | {"p": p, "rank": rank, "answer": answers[place] if answers else None}


def _facts(run: Run) -> Rows:
    facts, betas = run.facts, run.betas or {}
    recalls = _recalls(run, facts.forget)
    for group in GROUPS:
        for fact in getattr(facts, group):
            row = {"fact": fact.id, "group": group, "tier": fact.tier, "score": fact.score}
            row |= {"beta": betas.get(fact.id), "question": fact.question, "answer": fact.answer}
            yield row | {name: own.get(fact.id) for name, own in recalls.items()}


def _recalls(run: Run, forget: tuple[Fact, ...]) -> dict[str, dict[str, float | None]]:
    """Column -> fact id -> recall, for the facts to forget."""
    columns = recall_columns(run.measured(before=True), run.measured())
    return {name: dict(zip((fact.id for fact in forget), own)) for name, own in columns.items()}


def recall_columns(
    before: Measured | None, after: Measured | None
) -> dict[str, tuple[float | None, ...]]:
    """Column -> recall of each fact to forget, in their order; () where it was not measured."""
    columns = {}
    for when, event in (("before", before), ("after", after)):
        for name, field in (("", "direct_by_fact"), ("_reworded", "by_fact")):
            columns[f"{when}{name}"] = getattr(event, field) if event else ()
    return columns


def probe_row(probe: ProbeRow | NotApplicable) -> dict[str, Any]:
    """A prompt with both models' replies, or why it was not asked."""
    row = asdict(probe)
    for model in ("original", "unlearned"):
        reply = row.pop(model, {})
        row |= {f"{model}_{name}": value for name, value in reply.items()}
    return row


# steps: losses of each optimiser step, in nats per answer token. epochs: the controller. frames:
# each fact's p and rank over time, and the reply where an epoch ends. measured: means by epoch,
# group, tier and form; epoch 0 is the original. facts: each with its exponent and its recall before
# and after. probes: each prompt of the last probing, with both models' replies.
TABLES: dict[str, Callable[[Run], Rows]] = {
    "steps": _steps,
    "epochs": lambda run: map(epoch_row, run.epochs()),
    "frames": _frames,
    "measured": lambda run: measured_rows(run.events()),
    "facts": _facts,
    "probes": lambda run: map(probe_row, run.probes() or ()),
}
