"""Measures the model of a run as its settings say, and reports progress."""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from typing import TypeVar

from adapop.errors import Stopped
from adapop.facts.fact import Fact, FactSet
from adapop.model.adapted import AdaptedModel
from adapop.probes import measure
from adapop.probes.oracle import compared
from adapop.remark import Remark
from adapop.runs.recording import Recording
from adapop.runs.run import Run
from adapop.training.events import ComparedToOracle, EpochDone, Event, Measured, Measuring, Saved
from adapop.training.processes import ALONE, Ranks, shared
from adapop.training.trainer import Trainer

LOG_EVERY = 5.0  # seconds between progress events
DECIMALS = 4  # of a fact's recall in the log
CHECK_EVERY = 0.5  # seconds between checks for a request to stop
Heard = Callable[[Event], object]
Logged = TypeVar("Logged", bound=Event)


def closed(
    run: Run, event: EpochDone, trainer: Trainer, facts: FactSet, recording: Recording, heard: Heard
) -> Iterator[Event]:
    """The events after an epoch's checkpoint: its quick measurement, unless the settings skip it,
    and `Saved`, which says that all is written. Records the frame of the epoch's end even without a
    measurement, if the run has frames. All processes of the run must call it. heard: called with
    each `Measuring`. Raises Stopped."""
    config, model, results = run.config, trainer.model, None
    sample = measure.thinned(facts, config.measure_per_tier)
    # Earlier runs may have cached the replies of the original model.
    unchanged = nullcontext() if event.epoch else model.original()
    with interruptible(run, model), unchanged:
        if config.measure == "every-epoch":
            retained = config.keep == "best"
            of = measure.questions_of(sample, whole=False, retained=retained)
            with progress_logged(run, event.epoch, model, of, heard), shared(trainer.ranks, model):
                results = measure.quick(model, sample, run.reply_tokens, retained)
        recording.after_epoch(event, results)
    if results:
        measured = Measured(run=run.id, epoch=event.epoch, rows=_rows(results.rows))
        yield _append(run, trainer.ranks, measured)
    if event.epoch:
        yield run.append(Saved(run=run.id, epoch=event.epoch))


def to_measure(run: Run, epoch: int) -> EpochDone | None:
    """The end of the epoch that a run resumes from, if the run was stopped before measuring it."""
    if not epoch or events_of(run, Saved, epoch) or events_of(run, Measured, epoch):
        return None
    return next((event for event in run.epochs() if event.epoch == epoch), None)


def events_of(run: Run, kind: type[Event], epoch: int) -> list[Event]:
    return [event for event in run.events() if isinstance(event, kind) and event.epoch == epoch]


def in_full(
    run: Run,
    epoch: int,
    model: AdaptedModel,
    facts: FactSet,
    before: Measured | None,
    heard: Heard,
    ranks: Ranks = ALONE,
) -> Generator[Event, None, tuple[Remark, ...]]:
    """The full tables of both models, except those made before a stop. Returns remarks on them.
    epoch: of the model's adapter. before: as for `execute`."""
    there = ranks.led(lambda: {e.epoch for e in run.events() if isinstance(e, Measured) and e.full})
    if before is not None and 0 not in there:
        yield run.append(replace(before, run=run.id))
    elif 0 not in there:
        with model.original():
            yield _in_full(run, 0, model, facts, heard, ranks)
    if epoch not in there:
        yield _in_full(run, epoch, model, facts, heard, ranks)
    if ranks.led(lambda: events_of(run, ComparedToOracle, epoch)):
        return ()
    with interruptible(run, model):
        to_oracle, remarks = compared(model, run.config, facts)
    if to_oracle:
        yield _append(run, ranks, ComparedToOracle(run=run.id, epoch=epoch, distance=to_oracle))
    return remarks


def _in_full(
    run: Run, epoch: int, model: AdaptedModel, facts: FactSet, heard: Heard, ranks: Ranks
) -> Measured:
    """The full tables of the current model. Parameters and exceptions as `closed`."""
    of = full_questions(run, model, facts)
    logged = progress_logged(run, epoch, model, of, heard)
    with interruptible(run, model), logged, shared(ranks, model):
        results = full_results(run, model, facts)
    of_facts = {
        "by_fact": _of_facts(results.by_fact, facts.forget),
        "direct_by_fact": _of_facts(results.direct_by_fact, facts.forget),
        "most_by_fact": _of_facts(results.most_by_fact, facts.forget),
        "held_out_by_fact": _of_facts(results.held_out_by_fact, facts.holdout),
    }
    event = Measured(run=run.id, epoch=epoch, rows=_rows(results.rows), full=True, **of_facts)
    return _append(run, ranks, event)


def full_results(run: Run, model: AdaptedModel, facts: FactSet) -> measure.Full:
    """The full tables of a model, over as many of the run's facts as its settings say."""
    sample = measure.thinned(facts, run.config.measure_per_tier)
    return measure.full(model, sample, run.reply_tokens, run.config.cosine)


def full_questions(run: Run, model: AdaptedModel, facts: FactSet) -> int:
    """Number of questions that `full_results` asks."""
    sample = measure.thinned(facts, run.config.measure_per_tier)
    return measure.questions_of(sample, whole=True, ways=len(model.ways))


def _of_facts(recalls: Mapping[str, float], facts: Sequence[Fact]) -> tuple[float | None, ...]:
    """The recall of each fact, in their order; () if there is none."""
    values = (recalls.get(fact.id) for fact in facts)
    return tuple(None if one is None else round(one, DECIMALS) for one in values) if recalls else ()


def _rows(measured: Sequence[measure.Measurement]) -> tuple[dict, ...]:
    return tuple(map(asdict, measured))


def _append(run: Run, ranks: Ranks, event: Logged) -> Logged:
    return ranks.led(lambda: run.append(event))


@contextmanager
def progress_logged(
    run: Run, epoch: int, model: AdaptedModel, of: int, heard: Heard
) -> Iterator[None]:
    """A context in which the log reports how many of `of` questions were answered so far."""
    answered, last = 0, time.monotonic()

    def count(rows: int) -> None:
        nonlocal answered, last
        answered += rows
        if rows and time.monotonic() - last >= LOG_EVERY:
            last = time.monotonic()
            heard(run.append(Measuring(run=run.id, epoch=epoch, asked=answered, of=of)))

    silent, model.on_replies = model.on_replies, count
    try:
        yield
    finally:
        model.on_replies = silent


@contextmanager
def interruptible(run: Run, model: AdaptedModel) -> Iterator[None]:
    """A context in which a request to stop interrupts the model's pass before its next block,
    because a pass may take minutes. Then raises Stopped."""
    looked = time.monotonic()

    def look(*_) -> None:
        nonlocal looked
        if time.monotonic() - looked >= CHECK_EVERY:
            looked = time.monotonic()
            if run.stop_requested:
                fix = "Resume the run: it goes on with this measurement."
                raise Stopped("The run was stopped while it was measured.", fix)

    hooks = [block.register_forward_pre_hook(look) for block in model.blocks or [model.network]]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
