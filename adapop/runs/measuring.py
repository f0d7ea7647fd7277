"""Measures the model of a run as its settings say, and tells how far that is: a measurement may take minutes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

from adapop.facts.fact import FactSet
from adapop.model.adapted import AdaptedModel
from adapop.probes import measure
from adapop.runs.recording import Recording
from adapop.runs.run import Run
from adapop.training.events import EpochDone, Event, Measured, Measuring
from adapop.training.trainer import Trainer

SAID_EVERY = 5.0  # seconds
Heard = Callable[[Event], object]


def after_epoch(
    run: Run, event: EpochDone, trainer: Trainer, facts: FactSet, recording: Recording, heard: Heard
) -> Measured | None:
    """What the facts to forget are answered with after an epoch; None where that is not to be measured. Records the
    frame of the epoch's end in any case. heard: called with each `Measuring`."""
    config, found = run.config, None
    asked = measure.thinned(facts, config.measure_per_tier)
    if config.measure == "every-epoch":
        with _told(run, event.epoch, trainer.model, measure.questions_of(asked, whole=False), heard):
            found = measure.quick(trainer.model, asked, config.max_new_tokens)
    recording.after_epoch(event, found if asked.forget == facts.forget else None)
    return found and run.append(Measured(run=run.id, epoch=event.epoch, rows=tuple(map(asdict, found.rows))))


def in_full(run: Run, epoch: int, model: AdaptedModel, facts: FactSet, heard: Heard) -> Event:
    """The full tables of the model as it is now. heard: see `after_epoch`."""
    config = run.config
    asked = measure.thinned(facts, config.measure_per_tier)
    with _told(run, epoch, model, measure.questions_of(asked, whole=True), heard):
        rows = measure.full(model, asked, config.max_new_tokens, config.cosine)
    return run.append(Measured(run=run.id, epoch=epoch, rows=tuple(map(asdict, rows)), full=True))


@contextmanager
def _told(run: Run, epoch: int, model: AdaptedModel, of: int, heard: Heard) -> Iterator[None]:
    """Inside, the log says now and then how many of so many questions the model has answered."""
    asked, said = 0, time.monotonic()

    def count(rows: int) -> None:
        nonlocal asked, said
        asked += rows
        if time.monotonic() - said >= SAID_EVERY:
            said = time.monotonic()
            heard(run.append(Measuring(run=run.id, epoch=epoch, asked=asked, of=of)))

    silent, model.told = model.told, count
    try:
        yield
    finally:
        model.told = silent
