"""How long runs take, by what one that came to its end has shown. In three parts, because sets differ in size: a step,
what follows the steps of an epoch, and the measurement at the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from statistics import fmean

from adapop.runs.run import Run
from adapop.training.events import Event, RunDone, RunStarted, Saved, StepDone


@dataclass(frozen=True)
class Pace:
    """Seconds. step: of one optimiser step. epoch: of an epoch's evaluation and checkpoint. end: of the full tables."""

    step: float
    epoch: float
    end: float

    def seconds(self, epochs: int, steps: int) -> float:
        """How long so many epochs of so many steps will take, with what follows."""
        return epochs * (steps * self.step + self.epoch) + self.end

    def left(self, run: Run) -> float:
        """How long a run will take from its last saved epoch on."""
        return self.seconds(run.config.epochs - (run.last_epoch or 0), _steps_an_epoch(run))


def pace_of(events: Sequence[Event]) -> Pace | None:
    """What a run's events show; None if it is not done, or too small to tell a step from the rest of an epoch."""
    steps: dict[int, list[float]] = defaultdict(list)
    for event in events:
        if isinstance(event, StepDone):
            steps[event.epoch].append(event.time)
    saved = {event.epoch: event.time for event in events if isinstance(event, Saved)}
    counted = sum(len(times) - 1 for times in steps.values())
    if not counted or not isinstance(events[-1], RunDone):
        return None
    step = sum(times[-1] - times[0] for times in steps.values()) / counted
    epoch = fmean(time - steps[number][-1] for number, time in saved.items() if number in steps)
    return Pace(step, epoch, events[-1].time - max(saved.values()))


def worked_before(events: Iterable[Event]) -> float:
    """Seconds of work before the last start, pauses left out: of a run that was resumed, or is done in slices."""
    seconds, began, last = 0.0, 0.0, 0.0
    for event in events:
        if isinstance(event, RunStarted):
            seconds, began = seconds + last - began, event.time
        last = event.time
    return seconds


@lru_cache(maxsize=256)
def _steps_an_epoch(run: Run) -> int:
    return ceil(len(run.facts.forget) / run.config.batch)
