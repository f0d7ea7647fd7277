"""What a run says while it runs: frozen dataclasses, JSON both ways, one event a line.

The log is append-only and is the truth about a run. A resumed run starts with `RunStarted(resumed_from=k)`;
`current` then drops what an interrupted epoch had said, so that a reader sees one uninterrupted run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

from adapop.errors import RunError
from adapop.training.controller import Drift


@dataclass(frozen=True, kw_only=True)
class Event:
    """Anything a run says. time: seconds since 1970, stamped when the event is written."""

    kind: ClassVar[str]
    run: str
    time: float = 0.0

    def __init_subclass__(cls) -> None:
        cls.kind = re.sub(r"(?<!^)([A-Z])", r"_\1", cls.__name__).lower()


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event):
    """A run began or went on. steps: optimiser steps in an epoch. resumed_from: the epoch it continues after."""

    model: str
    method: str
    facts: str
    forget: int
    retain: int
    holdout: int
    epochs: int
    steps: int
    resumed_from: int = 0


@dataclass(frozen=True, kw_only=True)
class StepDone(Event):
    """One optimiser step. forget_loss: the objective's. nll_*: mean nats per answer token before the step;
    a tier that the step did not see is absent from `nll_by_tier`."""

    epoch: int
    step: int
    forget_loss: float
    nll_forget: float
    nll_by_tier: dict[str, float]
    nll_retain: float | None
    gradient_norm: float
    learning_rate: float


@dataclass(frozen=True, kw_only=True)
class EpochDone(Event):
    """The controller's row of an epoch; epoch 0 is before training. Fields as in `Drift`."""

    epoch: int
    retain_loss: float
    reference: float | None
    drift: float
    lam: float
    alpha: float
    start_loss: float
    drift_from_start: float

    @property
    def row(self) -> Drift:
        """The controller's state after this epoch."""
        return Drift(**{item.name: getattr(self, item.name) for item in fields(Drift)})


@dataclass(frozen=True, kw_only=True)
class Measured(Event):
    """What was measured after an epoch; epoch 0 is the original model. rows: `Measurement`s as dicts.
    full: the whole table, made once at the end for the original and the unlearned model."""

    epoch: int
    rows: tuple[dict[str, Any], ...]
    full: bool = False

    def recall(self, group: str, form: str = "direct", tier: str = "all") -> float | None:
        """Recall of a group and tier asked in one form, None where that was not measured."""
        key = (group, form, tier)
        return next((row["recall"] for row in self.rows if (row["group"], row["form"], row["tier"]) == key), None)


@dataclass(frozen=True, kw_only=True)
class Saved(Event):
    """A checkpoint is complete on disk: the run can be resumed or probed from here."""

    epoch: int


@dataclass(frozen=True, kw_only=True)
class RunStopped(Event):
    """The user stopped the run; the adapter of `epoch` is kept."""

    epoch: int


@dataclass(frozen=True, kw_only=True)
class RunFailed(Event):
    """The run cannot go on. The adapter of the last saved epoch is kept."""

    message: str
    fix: str = ""


@dataclass(frozen=True, kw_only=True)
class RunDone(Event):
    """The run is complete. seconds: since the last start, without loading. notes: what to know about it."""

    epoch: int
    seconds: float
    notes: tuple[str, ...] = field(default=())


EVENTS: dict[str, type[Event]] = {
    event.kind: event for event in (RunStarted, StepDone, EpochDone, Measured, Saved, RunStopped, RunFailed, RunDone)
}
TERMINAL = (RunStopped, RunFailed, RunDone)


def to_json(event: Event) -> str:
    """One line of JSON with the event's `kind` in snake case. NaN is refused: it is not JSON and never a result."""
    return json.dumps({"kind": event.kind, **asdict(event)}, ensure_ascii=False, allow_nan=False)


def from_json(line: str) -> Event:
    """The event of a line that `to_json` wrote."""
    content = json.loads(line)
    kind = content.pop("kind", None)
    if kind not in EVENTS:
        raise RunError(f"Unknown event kind {kind!r}.", "The run was written by another version; start it again.")
    content = {key: tuple(value) if isinstance(value, list) else value for key, value in content.items()}
    try:
        return EVENTS[kind](**content)
    except TypeError as error:
        raise RunError(
            f"A {kind} event does not read ({error}).", "The run is of another version; start it again."
        ) from None


def current(events: Iterable[Event]) -> list[Event]:
    """The events as one uninterrupted run would have said them, all starts kept."""
    kept: list[Event] = []
    for event in events:
        if isinstance(event, RunStarted):
            kept = [old for old in kept if _survives(old, event.resumed_from)]
        kept.append(event)
    return kept


def _survives(event: Event, epoch: int) -> bool:
    """Whether what an earlier attempt said still holds when a run goes on after an epoch (0: from the beginning)."""
    if isinstance(event, RunStarted):
        return True
    if isinstance(event, TERMINAL) or (isinstance(event, Measured) and event.full):
        return False
    return 0 < epoch >= event.epoch
