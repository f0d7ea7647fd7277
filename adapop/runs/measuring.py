"""Measures the model of a run as its settings say, and tells how far that is: a measurement may take minutes."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from adapop.facts.fact import FactSet
from adapop.model.adapted import AdaptedModel
from adapop.probes import measure
from adapop.runs.recording import Recording
from adapop.runs.run import Run
from adapop.training.events import EpochDone, Event, Measured, Measuring
from adapop.training.processes import Ranks, shared
from adapop.training.trainer import Trainer

SAID_EVERY = 5.0  # seconds
Heard = Callable[[Event], object]


def after_epoch(
    run: Run, event: EpochDone, trainer: Trainer, facts: FactSet, recording: Recording, heard: Heard
) -> Measured | None:
    """What the facts to forget are answered with after an epoch; None where that is not to be measured. Records the
    frame of the epoch's end in any case. All processes of the run must call it. heard: called with each `Measuring`."""
    config, model, found = run.config, trainer.model, None
    asked = measure.thinned(facts, config.measure_per_tier)
    if config.measure == "every-epoch":
        of = measure.questions_of(asked, whole=False)
        with _told(run, event.epoch, model, of, heard), shared(trainer.ranks, model):
            found = measure.quick(model, asked, config.max_new_tokens)
    recording.after_epoch(event, found if asked.forget == facts.forget else None)
    return found and _written(run, trainer.ranks, Measured(run=run.id, epoch=event.epoch, rows=_rows(found.rows)))


def in_full(run: Run, epoch: int, model: AdaptedModel, facts: FactSet, ranks: Ranks, heard: Heard) -> Measured:
    """The full tables of the model as it is now. Called as `after_epoch`."""
    config = run.config
    asked = measure.thinned(facts, config.measure_per_tier)
    with _told(run, epoch, model, measure.questions_of(asked, whole=True), heard), shared(ranks, model):
        rows = measure.full(model, asked, config.max_new_tokens, config.cosine)
    return _written(run, ranks, Measured(run=run.id, epoch=epoch, rows=_rows(rows), full=True))


def _rows(measured: Sequence[measure.Measurement]) -> tuple[dict, ...]:
    return tuple(map(asdict, measured))


def _written(run: Run, ranks: Ranks, event: Measured) -> Measured:
    return ranks.led(lambda: run.append(event))


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
