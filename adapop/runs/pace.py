"""How long runs take, by the clock alone: a run's own steps while it is at work, and for those that
have not begun, a run that came to its end. In three parts, because sets differ in size: a step,
what follows the steps of an epoch, and the measurement at the end.

A queued run waits for those before it: by the steps of the one at work, and the pace of the others.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from statistics import fmean

from adapop.errors import AdaPopError
from adapop.remark import duration
from adapop.runs.best import epochs_left
from adapop.runs.run import Run
from adapop.training.events import TERMINAL, Event, RunDone, RunStarted, Saved, StepDone

FIRST_SAID = 3  # steps: the first includes the warm-up, and a mean takes at least two more
WORDS = {"steps": "of training left", "epochs": "left until the final measurement", "all": "left"}


@dataclass(frozen=True)
class Pace:
    """How long the parts of a run take, in seconds."""

    step: float
    """One optimiser step."""
    epoch: float
    """An epoch's evaluation and checkpoint."""
    end: float
    """The full tables of both models, once the last epoch is over."""

    def seconds(self, epochs: int, steps: int) -> float:
        """How long so many epochs of so many steps will take, with what follows."""
        return epochs * (steps * self.step + self.epoch) + self.end

    def left(self, run: Run) -> float:
        """How long a run will take from its last saved epoch on."""
        return self.seconds(epochs_left(run), _steps_an_epoch(run))


@dataclass(frozen=True)
class Left:
    """What a run still takes. seconds: at least 0, counted from its last event. covers: a key of
    `WORDS`: optimiser steps; epochs, with what follows their steps; or the last tables too."""

    seconds: float
    covers: str

    @property
    def text(self) -> str:
        """In words, with what is left out."""
        return f"about {duration(self.seconds)} {WORDS[self.covers]}"


def left_of(events: Sequence[Event], usual: Pace | None = None, now: float = 0.0) -> Left | None:
    """What a run at work still takes, by the steps that it did since it last began: neither a pause
    nor the speed of another machine is in it. None before the third of them, where the run is over,
    and where nothing of what is left to do was timed.

    What follows an epoch's steps counts once it was seen, be it before the run was resumed: one
    done in slices begins anew with each epoch, and nobody knows how long it waits between them.
    usual: the pace of runs that came to their end, for the parts that this one has not come to yet.
    now: seconds since 1970; its last event's by default."""
    session = _session(events)
    steps = [event for event in session if isinstance(event, StepDone)]
    gaps = _step_seconds(session)
    if len(steps) < FIRST_SAID or not gaps or isinstance(session[-1], TERMINAL):
        return None
    start, last = session[0], steps[-1]
    saves = (event.epoch for event in session if isinstance(event, Saved))
    saved = max(saves, default=start.resumed_from)
    undone, epochs = (start.epochs - last.epoch + 1) * start.steps - last.step, start.epochs - saved
    ends = _epoch_ends(session) or _epoch_ends(events) or ([usual.epoch] if usual else [])
    timed = [event.time for event in session if isinstance(event, StepDone | Saved)]
    spent = max(now, session[-1].time) - timed[-1]
    parts = [undone * fmean(gaps)] if undone else []
    if epochs and ends:
        begun = saved < last.epoch and last.step == start.steps
        parts += [(epochs - 1) * fmean(ends), max(0.0, fmean(ends) - spent * begun)]
    if usual:
        parts.append(usual.end if epochs else max(0.0, usual.end - spent))
    return Left(sum(parts), "all" if usual else "epochs" if ends else "steps") if parts else None


def pace_of(events: Sequence[Event]) -> Pace | None:
    """The pace of a run's events; None if it is not done, or too small to tell its parts apart."""
    gaps = _step_seconds(events)
    if not gaps or not isinstance(events[-1], RunDone):
        return None
    began = max(event.time for event in events if isinstance(event, RunStarted | Saved))
    return Pace(fmean(gaps), fmean(_epoch_ends(events)), events[-1].time - began)


def worked_before(events: Iterable[Event]) -> float:
    """Seconds of work before the last start, without pauses, of a run that was resumed."""
    seconds, began, last = 0.0, 0.0, 0.0
    for event in events:
        if isinstance(event, RunStarted):
            seconds, began = seconds + last - began, event.time
        last = event.time
    return seconds


def _session(events: Sequence[Event]) -> Sequence[Event]:
    """The events since the run last began, its `RunStarted` included."""
    begun = [place for place, event in enumerate(events) if isinstance(event, RunStarted)]
    return events[begun[-1] :] if begun else ()


def _step_seconds(events: Iterable[Event]) -> list[float]:
    """Seconds of each step right after another or a saved epoch: without a start's own work."""
    seconds, before, trained = [], None, False
    for event in events:
        if isinstance(event, StepDone):
            seconds += [] if before is None else [event.time - before]
            trained = True
        elif isinstance(event, RunStarted):
            trained = False
        before = event.time if trained and isinstance(event, StepDone | Saved) else None
    return seconds


def _epoch_ends(events: Iterable[Event]) -> list[float]:
    """Seconds from the last step of each epoch until it was saved."""
    seconds, step = [], None
    for event in events:
        if isinstance(event, RunStarted):
            step = None
        elif isinstance(event, StepDone):
            step = event
        elif isinstance(event, Saved) and step and step.epoch == event.epoch:
            seconds.append(event.time - step.time)
    return seconds


@lru_cache(maxsize=256)
def _steps_an_epoch(run: Run) -> int:
    return ceil(len(run.facts.forget) / run.config.batch)


@dataclass(frozen=True)
class Wait:
    """How long a run waits for its turn."""

    ahead: int
    """How many runs are before this one; 0: it is being worked on."""
    seconds: float | None
    """How long those will take, None if unknown."""
    at_least: bool = False
    """Whether a part of it was never timed here, and is not in the seconds."""


def wait_behind(runs: Sequence[Run], paces: Mapping[str, Pace], began: float) -> Wait:
    """The wait behind runs, the first of which is next or worked on. paces: by model, of runs that
    came to their end. began: when the first was begun, seconds since 1970; 0 if none is at work."""
    left = [_left_in_line(run, paces, began if run is runs[0] else 0.0) for run in runs]
    if None in left:
        return Wait(len(runs), None)
    at_least = any(one.covers != "all" for one in left)
    return Wait(len(runs), sum(one.seconds for one in left), at_least)


def _left_in_line(run: Run, paces: Mapping[str, Pace], began: float) -> Left | None:
    """What a run will take from now on by its own steps or its model's pace, None if unknown."""
    now = time.time()
    try:
        pace, events = paces.get(run.config.model), run.events()
    except AdaPopError:  # one damaged run must not keep all behind it from knowing where they stand
        return None
    if not began:
        return Left(pace.left(run), "all") if pace else None
    if events and events[-1].time >= began and (left := left_of(events, pace, now)):
        return left
    if pace is None:
        return None
    last = run.checkpoint(run.last_epoch or 0)  # what it has saved does not count as left
    since = max(began, last.stat().st_mtime if last.exists() else 0.0)
    return Left(max(0.0, pace.left(run) - (now - since)), "all")
