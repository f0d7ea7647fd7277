"""A run from start to end: prepare the scores, train, measure, keep. The only module that joins disk and training.

`execute` is a generator: it writes each event before it yields it, and checks for a stop between any two. Every
finished epoch leaves a complete checkpoint, so a stop, a crash and a resume all meet there.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from functools import partial
from importlib.metadata import version
from math import ceil
from pathlib import Path
from statistics import fmean

from safetensors.torch import load_file, save_file

from adapop import alternates
from adapop.beta import BetaMap
from adapop.config import RunConfig
from adapop.controller import Drift
from adapop.errors import AdaPopError, DataError, RunError
from adapop.events import (
    EpochDone,
    Event,
    Measured,
    RunDone,
    RunFailed,
    RunStarted,
    RunStopped,
    Saved,
)
from adapop.facts import Fact, FactSet
from adapop.model import AdaptedModel
from adapop.objectives import make_objective
from adapop.popularity.controls import inverted, shuffled
from adapop.probes import measure
from adapop.runs import Run, create_run
from adapop.trainer import Trainer, TrainerState

LIBRARIES = ("torch", "transformers", "peft", "safetensors", "rouge-score")


def prepare(config: RunConfig, facts: FactSet, root: Path | None = None) -> Run:
    """A run folder ready to execute: scores settled, betas fixed. Loads no model.

    Raises:
        DataError: a score or a wrong answer is missing and the method needs it; or there is nothing to forget or
            retain.
        ConfigError: an unknown method or argument.
    """
    objective = make_objective(config.method, config.arguments)
    betas = None
    if config.missing_score == "drop":  # for every method alike, so that methods are compared on the same facts
        facts = replace(facts, forget=tuple(fact for fact in facts.forget if fact.score is not None))
        if not facts.forget:
            raise DataError("No fact has a score.", "Add a score column, or keep facts without one.")
    if "beta" in objective.uses:
        betas, config = _scored(config, facts)
    if "alternates" in objective.uses:
        found = [fact for fact in facts.forget if fact.alternates]
        if objective.source == "relation":
            found = alternates.by_relation(facts.forget, facts.retain, config.seed)
        alternates.check_alternates(found)
    if not facts.retain:
        raise DataError(f"{facts.name} has no retain rows.", "Add rows with 'retain' in a column called group.")
    versions = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    return create_run(config, facts, betas, root, versions)


def execute(run: Run, model: AdaptedModel | None = None, before: Measured | None = None) -> Iterator[Event]:
    """Runs a prepared, stopped or interrupted run to its end. Each event is on disk before it is yielded.

    before: the full measurement of the original model, where another run of the same model and facts has made it.
    A failure we know becomes a `RunFailed` event; anything else is logged as one and raised.
    """
    try:
        yield from _executed(run, model, before)
    except AdaPopError as error:
        yield run.append(RunFailed(run=run.id, message=error.message, fix=error.fix))
    except Exception as error:
        run.append(RunFailed(run=run.id, message=f"{type(error).__name__}: {error}", fix="Please report this."))
        raise


def load_model(run: Run, epoch: int | None = None) -> AdaptedModel:
    """The run's model with the adapter of an epoch, the last by default.

    Raises:
        RunError: the run has saved no epoch yet.
    """
    epoch = run.last_epoch if epoch is None else epoch
    if epoch is None or not run.checkpoint(epoch).exists():
        raise RunError(
            f"Run {run.id} has no checkpoint{'' if epoch is None else f' of epoch {epoch}'}.", "Let it run on."
        )
    return AdaptedModel.load(run.config, run.checkpoint(epoch))


def _executed(run: Run, model: AdaptedModel | None, before: Measured | None) -> Iterator[Event]:
    config, facts, epoch = run.config, run.facts, run.last_epoch or 0
    if run.stop_requested:
        yield run.append(RunStopped(run=run.id, epoch=epoch))
        return
    if model is None:
        model = load_model(run) if epoch else AdaptedModel.load(config)
    elif epoch:
        model.set_adapter_state(load_file(run.checkpoint(epoch) / "adapter_model.safetensors"))
    used = run.betas
    betas = None if used is None else [used[fact.id] for fact in facts.forget]
    state = _load_state(run.checkpoint(epoch)) if epoch else None
    started = time.monotonic()
    yield run.append(_started(run, facts, epoch))
    if epoch and not any(isinstance(event, Saved) and event.epoch == epoch for event in run.events()):
        yield run.append(Saved(run=run.id, epoch=epoch))  # the process died between the checkpoint and its event
    forget, notes = _with_alternates(run, model, facts)
    if run.stop_requested:
        yield run.append(RunStopped(run=run.id, epoch=epoch))
        return
    trainer = Trainer(run.id, config, model, forget, facts.retain, betas, state)
    yield from _trained(run, trainer, facts)
    if run.stop_requested:
        yield run.append(RunStopped(run=run.id, epoch=run.last_epoch or 0))
        return
    if before is None:
        with model.original():
            yield _measured_in_full(run, 0, model, facts, config)
    else:
        yield run.append(replace(before, run=run.id))
    yield _measured_in_full(run, config.epochs, model, facts, config)
    seconds = time.monotonic() - started
    yield run.append(
        RunDone(run=run.id, epoch=config.epochs, seconds=seconds, notes=(*notes, *trainer.notes, *remarks(run)))
    )


def _trained(run: Run, trainer: Trainer, facts: FactSet) -> Iterator[Event]:
    """The trainer's events, each finished epoch measured and saved, until the last epoch or a stop."""
    for event in trainer.train():
        yield run.append(event)
        if isinstance(event, EpochDone):
            rows = measure.quick(trainer.model, facts, trainer.config.max_new_tokens)
            yield run.append(Measured(run=run.id, epoch=event.epoch, rows=tuple(map(asdict, rows))))
            if event.epoch:
                _save_checkpoint(run, event.epoch, trainer.model, trainer.state())
                yield run.append(Saved(run=run.id, epoch=event.epoch))
        if run.stop_requested:
            return


def _started(run: Run, facts: FactSet, epoch: int) -> RunStarted:
    return RunStarted(
        run=run.id,
        model=run.config.model,
        method=run.config.method,
        facts=facts.name,
        forget=len(facts.forget),
        retain=len(facts.retain),
        holdout=len(facts.holdout),
        epochs=run.config.epochs,
        steps=ceil(len(facts.forget) / run.config.batch),
        resumed_from=epoch,
    )


def _measured_in_full(run: Run, epoch: int, model: AdaptedModel, facts: FactSet, config: RunConfig) -> Event:
    rows = measure.full(model, facts, config.max_new_tokens, config.cosine)
    return run.append(Measured(run=run.id, epoch=epoch, rows=tuple(map(asdict, rows)), full=True))


def remarks(run: Run) -> tuple[str, ...]:
    """What one should know about a finished run's controller and health, in sentences."""
    config, epochs = run.config, run.epochs()
    said = []
    if config.controller == "dual" and all(row.lam == 0 for row in epochs):
        said.append("The controller was never activated: drift stayed within tolerance, so lambda is 0 throughout.")
        worst = max(row.drift_from_start for row in epochs)
        if worst > config.tolerance:
            said.append(
                f"Against the loss before training, though, the retain loss rose by up to {worst:.0%}: the reference "
                "is taken after epoch 1, so what was damaged before is not seen."
            )
    known = run.measured(before=True).recall("forget")
    if known < 0.5:
        said.append(
            f"The original model answers only {known:.0%} of these facts: what was never known cannot be forgotten."
        )
    utility = run.measured().recall("utility")
    if utility is not None and utility < 0.5:
        said.append(f"The model is badly damaged: only {utility:.0%} of the non-fact questions still work.")
    return tuple(said)


def _scored(config: RunConfig, facts: FactSet) -> tuple[dict[str, float], RunConfig]:
    """Beta by fact id, and the configuration with its map settled. A constant map needs no scores."""
    known = {fact.id: fact.score for fact in facts.forget if fact.score is not None}
    if config.preset == "beta-mean":
        if not known:
            raise DataError("No fact has a score, so there is no mean beta.", "Add scores, or use another preset.")
        config = replace(config, beta=BetaMap.constant(fmean(config.beta(score) for score in known.values())))
    if config.beta.b == 0:
        return dict.fromkeys((fact.id for fact in facts.forget), config.beta(1.0)), config
    if config.missing_score == "error" and (missing := facts.unknown_scores):
        raise DataError(
            f"{len(missing)} of {len(facts.forget)} facts have no score, for example {missing[0].id!r}.",
            "Add scores, or choose what to do: drop these facts, or give them beta = 1 (uniform).",
        )
    if config.scores == "shuffled":
        known = shuffled(known, config.seed)
    elif config.scores == "inverted":
        known = inverted(known)
    betas = {fact.id: config.beta(known[fact.id]) if fact.id in known else 1.0 for fact in facts.forget}
    return betas, config


def _with_alternates(run: Run, model: AdaptedModel, facts: FactSet) -> tuple[tuple[Fact, ...], tuple[str, ...]]:
    """The forget facts, with a plausible wrong answer each if the method needs one, and what to say about those.

    They are found once and kept in the run's folder: a resumed run teaches the same. After a stop, the facts as they
    were: the model may not have been asked for all.

    Raises:
        DataError: a fact is still without one, or has its right answer for one.
    """
    config = run.config
    objective, path = make_objective(config.method, config.arguments), run.folder / "alternates.json"
    if "alternates" not in objective.uses:
        return facts.forget, ()
    if path.exists():
        kept = json.loads(path.read_text(encoding="utf-8"))
        found = [replace(fact, alternates=tuple(kept["alternates"][fact.id])) for fact in facts.forget]
        return tuple(found), tuple(kept["notes"])
    found, notes = list(facts.forget), []
    if objective.source == "model":
        with model.original():
            draw = partial(model.sample, **alternates.DRAWN)
            found = alternates.by_model(found, draw, config.seed, lambda: run.stop_requested)
        if run.stop_requested:
            return facts.forget, ()
        if silent := sum(not fact.alternates for fact in found):
            notes.append(f"For {silent} of {len(found)} facts the model wrote no usable wrong answer; others' serve.")
    found = alternates.by_relation(found, facts.retain, config.seed)
    alternates.check_alternates(found)
    content = {"alternates": {fact.id: fact.alternates for fact in found}, "notes": notes}
    aside = run.folder / "writing-alternates"
    aside.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    os.replace(aside, path)
    return tuple(found), tuple(notes)


def _save_checkpoint(run: Run, epoch: int, model: AdaptedModel, state: TrainerState) -> None:
    """Writes the checkpoint aside and renames it: it is there whole or not at all."""
    aside = run.folder / f"writing-{epoch}"
    shutil.rmtree(aside, ignore_errors=True)
    model.save_adapter(aside)
    save_file(state.optimizer, aside / "optimizer.safetensors")
    content = {"drift": asdict(state.drift), "ema": state.ema}
    (aside / "state.json").write_text(json.dumps(content), encoding="utf-8")
    shutil.rmtree(run.checkpoint(epoch), ignore_errors=True)
    os.replace(aside, run.checkpoint(epoch))


def _load_state(folder: Path) -> TrainerState:
    content = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    drift = Drift(**{item.name: content["drift"][item.name] for item in fields(Drift)})
    return TrainerState(drift, content["ema"], load_file(folder / "optimizer.safetensors"))
