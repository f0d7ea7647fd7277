"""Estimates how long runs take: an active run by its own steps, others by a finished run. Three
parts are timed, because sets differ in size: a step, the work after the steps of an epoch, and the
measurement at the end.

A queued run waits for the runs before it: the active one is judged by its own steps, the rest by
the pace of finished runs.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

from adapop.config.run import RunConfig
from adapop.errors import AdaPopError
from adapop.facts.fact import FactSet
from adapop.remark import duration
from adapop.runs.amount import questions_taught
from adapop.runs.best import epochs_left
from adapop.runs.run import Run
from adapop.training.events import TERMINAL, Event, RunDone, RunStarted, Saved, StepDone
from adapop.training.steps import count

LEAST_STEPS = 3  # steps: the first includes the warm-up, and a mean takes at least two more
WORDS = {"steps": "of training left", "epochs": "left until the final measurement", "all": "left"}


@dataclass(frozen=True)
class Pace:
    """Durations of the parts of a run, in seconds."""

    step: float
    """One optimiser step."""
    epoch: float
    """An epoch's evaluation and checkpoint."""
    end: float
    """The full tables of both models, once the last epoch is over."""

    def seconds(self, epochs: int, steps: int) -> float:
        """Seconds for this many epochs of this many steps, with all other work."""
        return epochs * (steps * self.step + self.epoch) + self.end

    def teaching(self, config: RunConfig, facts: FactSet) -> float:
        """Seconds that start "sft" takes before the first epoch, without its questions; 0 for a run
        that starts as given. A step of teaching has half the rows of a run's step."""
        if config.start == "as-given":
            return 0.0
        steps = count(len(questions_taught(facts)), config.batch, "short")
        return config.start_epochs * steps * self.step / 2

    def left(self, run: Run) -> float:
        """Seconds that a run needs from its last saved epoch on."""
        first = 0.0 if run.last_epoch else self.teaching(run.config, run.facts)
        return first + self.seconds(epochs_left(run), _steps_an_epoch(run))


@dataclass(frozen=True)
class Left:
    """The time that a run still needs. seconds: at least 0, counted from its last event. covers: a
    key of `WORDS`: the optimiser steps; epochs with the work after their steps; or all."""

    seconds: float
    covers: str

    @property
    def text(self) -> str:
        return f"about {duration(self.seconds)} {WORDS[self.covers]}"


def left_of(events: Sequence[Event], usual: Pace | None = None, now: float = 0.0) -> Left | None:
    """The time that an active run still needs, by its steps since it last started, so that neither
    a pause nor another machine's speed counts. None before the third step, once the run is over,
    and if none of the remaining parts was timed.

    The work after an epoch's steps counts once it was timed, even before a resume. A run in slices
    starts anew with each epoch; its waits between slices are unknown. usual: the pace of finished
    runs, for parts not reached yet. now: seconds since 1970; by default that of its last event."""
    session = _session(events)
    steps = [event for event in session if isinstance(event, StepDone)]
    gaps = _step_seconds(session)
    if len(steps) < LEAST_STEPS or not gaps or isinstance(session[-1], TERMINAL):
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
    """The pace of a run's events; None if it is not done, or too short to tell the parts apart."""
    gaps, ends = _step_seconds(events), _epoch_ends(events)
    if not gaps or not ends or not isinstance(events[-1], RunDone):
        return None
    began = max(event.time for event in events if isinstance(event, RunStarted | Saved))
    return Pace(fmean(gaps), fmean(ends), events[-1].time - began)


def worked_before(events: Iterable[Event]) -> float:
    """Seconds of work before the last start of a resumed run, without pauses."""
    seconds, began, last = 0.0, 0.0, 0.0
    for event in events:
        if isinstance(event, RunStarted):
            seconds, began = seconds + last - began, event.time
        last = event.time
    return seconds


def _session(events: Sequence[Event]) -> Sequence[Event]:
    """The events since the run last began, from its `RunStarted` on."""
    begun = [place for place, event in enumerate(events) if isinstance(event, RunStarted)]
    return events[begun[-1] :] if begun else ()


def _step_seconds(events: Iterable[Event]) -> list[float]:
    """Seconds of each step that directly follows a step or a saved epoch: no start-up."""
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
    """Seconds from the last step of each epoch until the epoch was saved."""
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
    return count(len(run.facts.forget), run.config.batch, run.config.last_step)


@dataclass(frozen=True)
class Wait:
    """A run's waiting time until its turn."""

    ahead: int
    """How many runs are before this one; 0: this one is at work."""
    seconds: float | None
    """Seconds that they will take, None if unknown."""
    at_least: bool = False
    """Whether part of the wait was never timed here and is missing from the seconds."""
    worked: float = 0.0
    """Seconds that this run has been at work."""
    left: Left | None = None
    """What this run, at work, still needs by finished runs of its model; None if none is known."""


def wait_behind(runs: Sequence[Run], paces: Mapping[str, Pace], began: float) -> Wait:
    """The wait behind runs, the first of which is next or active. paces: model -> pace of finished
    runs. began: when the first began, seconds since 1970; 0 if none is active."""
    left = [_left_in_queue(run, paces, began if run is runs[0] else 0.0) for run in runs]
    if None in left:
        return Wait(len(runs), None)
    at_least = any(one.covers != "all" for one in left)
    return Wait(len(runs), sum(one.seconds for one in left), at_least)


def at_work(run: Run, paces: Mapping[str, Pace], began: float) -> Wait:
    """The place of the run at work. began: when it began, as in `wait_behind`."""
    return Wait(0, 0.0, worked=time.time() - began, left=_left_in_queue(run, paces, began))


def _left_in_queue(run: Run, paces: Mapping[str, Pace], began: float) -> Left | None:
    """Time that a run still needs, by its own steps or its model's pace; None if unknown."""
    now = time.time()
    try:
        pace, events = paces.get(run.config.model), run.events()
        if not began:
            return Left(pace.left(run), "all") if pace else None
        if events and events[-1].time >= began and (left := left_of(events, pace, now)):
            return left
        if pace is None:
            return None
        last = run.checkpoint(run.last_epoch or 0)  # saved epochs are done
        since = max(began, last.stat().st_mtime if last.exists() else 0.0)
        return Left(max(0.0, pace.left(run) - (now - since)), "all")
    except AdaPopError:  # one damaged run must not hide the wait of all behind it
        return None
