"""A run from start to end: prepare the scores, train, measure, save.

`execute` is a generator: it writes each event before yielding it, and checks for a stop between
events. Every finished epoch leaves a complete checkpoint, from which a stopped or crashed run
resumes.
"""

import json
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from statistics import fmean

from adapop import paths
from adapop.config.run import RunConfig
from adapop.errors import AdaPopError, DataError, Diverged, Stopped
from adapop.facts.fact import FACT_GROUPS, Fact, FactSet
from adapop.facts.retain import fitted
from adapop.model.adapted import AdaptedModel
from adapop.model.asking import Prompted
from adapop.model.loading import Place, adapted_model, load_tokenizer
from adapop.model.out_of_memory import is_out_of_memory, too_large
from adapop.model.precision import has_gpu
from adapop.model.tokens import check_lengths
from adapop.objectives import alternates, make_objective
from adapop.objectives.alternates import by_second_choice
from adapop.popularity.beta import BetaMap, exponents
from adapop.popularity.calibration import auto_anchors
from adapop.probes.prompting import remarks_of
from adapop.probes.ways import OWN_WORDS, longest_answer, questions_to_settle
from adapop.remark import Remark
from adapop.runs import checkpoints, files, lock, measuring
from adapop.runs.adopted import EPOCH, keep_unlearned, load_adopted
from adapop.runs.best import best_epoch, ends_early
from adapop.runs.finetuning import settle_start
from adapop.runs.inputs import check_inputs
from adapop.runs.known import ready_to_ask, settle
from adapop.runs.model import load_model, prompt_as_settled
from adapop.runs.preflight import lacks, without_unscored
from adapop.runs.recording import Recording
from adapop.runs.result import remarks
from adapop.runs.run import PROMPTING, Run, create_run
from adapop.runs.weights import check_weights, keep_weights
from adapop.training import events
from adapop.training.processes import ALONE, Ranks
from adapop.training.sharded import check_divisible
from adapop.training.steps import count
from adapop.training.trainer import Trainer

# Facts measured per group and tier on a CPU; all on a GPU. Without scores, all are one tier.
PER_TIER, WITHOUT_TIERS = 24, 72
Settled = tuple[RunConfig, FactSet, dict[str, float] | None]
LIBRARIES = ("torch", "transformers", "peft", "safetensors", "rouge-score")


def prepare(config: RunConfig, facts: FactSet, root: Path | None = None) -> Run:
    """A run folder ready to execute: system prompt and scores settled, betas fixed. Loads no model.
    Raises DataError: a score or a wrong answer is missing and the method needs it; or there is
    nothing to forget or retain. ConfigError."""
    config, facts, betas = settled(config, facts)
    libraries = {name: version(name) for name in LIBRARIES}
    versions = {"adapop": paths.version(), "python": platform.python_version(), **libraries}
    return create_run(config, facts, betas, root, versions)


def settled(config: RunConfig, facts: FactSet) -> Settled:
    """The final configuration, facts and exponents of a run; no exponents if the method has none.
    Raises DataError, ConfigError: as `prepare`."""
    objective = None if config.unlearned else make_objective(config.method, config.arguments)
    needs = objective.needs if objective else ()
    config, facts = ready_to_ask(config, fitted(facts, paths.found_from_anywhere(config.model)))
    if config.measure_per_tier is None:
        scored = any(fact.score is not None for fact in facts.forget)
        most = PER_TIER if scored else WITHOUT_TIERS
        config = replace(config, measure_per_tier=0 if has_gpu(config) else most)
    betas = None
    # Done for every method, so that methods are compared on the same facts.
    if config.missing_score == "drop":
        facts = without_unscored(facts)
    if (lacking := lacks(facts)) and (objective or not facts.forget):
        raise DataError(lacking.text("program"))
    if config.beta is None:
        config = replace(config, beta=auto_anchors(facts).beta)
    config = _with_room_for_answers(config, facts)
    if "beta" in needs:
        betas, config = _scored(config, facts)
    if "alternates" in needs:
        completed = [fact for fact in facts.forget if fact.alternates]
        if objective.source == "relation":
            several = getattr(objective, "count", 1)
            completed = alternates.by_relation(facts.forget, facts.retain, config.seed, several)
        alternates.check_alternates(completed)
    return config, facts, betas


def _with_room_for_answers(config: RunConfig, facts: FactSet) -> RunConfig:
    """The configuration with replies of a shipped model that are long enough for every answer and
    an end, up to `OWN_WORDS` tokens: its own answers have few tokens, others none of its words.
    Those of a real model follow from its own replies (`probes.ways`)."""
    if config.model not in paths.SHIPPED:
        return config
    needed = min(longest_answer(Prompted(load_tokenizer(config), ""), facts) + 1, OWN_WORDS)
    return replace(config, max_new_tokens=max(config.max_new_tokens, needed))


@dataclass(frozen=True)
class _Bounded(Run):
    """The run with a time limit: when it is reached, the run stops as if it had been asked to."""

    deadline: float
    """By `time.monotonic`."""

    @property
    def out_of_time(self) -> bool:
        return time.monotonic() >= self.deadline

    @property
    def stop_requested(self) -> bool:
        return self.out_of_time or super().stop_requested


class _Reader(Run):
    """The run in processes other than the first: events are not written."""

    def append(self, event: events.Event) -> events.Event:
        return event


def execute(
    run: Run,
    model: AdaptedModel | None = None,
    before: events.Measured | None = None,
    ranks: Ranks = ALONE,
    heard: measuring.Heard = lambda event: None,
    seconds: float | None = None,
) -> Iterator[events.Event]:
    """Runs a prepared, stopped or interrupted run to its end. Each event is on disk before it is
    yielded.

    before: the original model's full measurement, from another run of the same model and facts.
    ranks: the processes that work on the run; each iterates its own events, and only the first
    writes. heard: called every few seconds with the progress of a measurement (`Measuring`) or
    fine-tuning (`Teaching`). seconds: after so many the run stops within a step, and its last
    finished epoch is kept; None for no limit, as with several processes. An `AdaPopError` becomes a
    `RunFailed` event; any other exception is also logged as `RunFailed`, then raised. Raises
    RunError: another process works on the run (nothing is written then), or the log cannot be
    written."""
    run = run if ranks.first else _Reader(run.folder)
    if seconds is not None:
        run = _Bounded(run.folder, time.monotonic() + seconds)
    with ExitStack() as held:
        ranks.led(lambda: held.enter_context(lock.held(run.folder)))
        try:
            steps = _adopted if run.config.unlearned else _executed
            yield from steps(run, model, before, ranks, heard)
        except Stopped:
            late = isinstance(run, _Bounded) and run.out_of_time
            stopped = events.RunStopped(run=run.id, epoch=run.last_epoch or 0, out_of_time=late)
            yield run.append(stopped)
        except AdaPopError as error:
            yield _failed(run, error.message, error.fix, isinstance(error, Diverged))
        except Exception as error:
            if is_out_of_memory(error):  # no pass could be made smaller
                full = too_large("the weights, the optimiser's moments or a measurement")
                yield _failed(run, full.message, full.fix)
                return
            _failed(run, f"{type(error).__name__}: {error}", "Please report this.")
            raise


def _failed(run: Run, message: str, fix: str, diverged: bool = False) -> events.Event:
    return run.append(events.RunFailed(run=run.id, message=message, fix=fix, diverged=diverged))


def _check_stop(run: Run, ranks: Ranks) -> None:
    if ranks.led(lambda: run.stop_requested):
        raise Stopped("Stopped.")


def _executed(
    run: Run,
    model: AdaptedModel | None,
    before: events.Measured | None,
    ranks: Ranks,
    heard: measuring.Heard,
) -> Iterator[events.Event]:
    config, epoch = run.config, run.last_epoch or 0
    _check_stop(run, ranks)
    model = _loaded(run, model, epoch, ranks)
    ranks.led(lambda: keep_weights(run))
    taught = None if epoch else settle_start(run, model, ranks, heard)
    ranks.led(lambda: _settle_prompting(run, model, heard))
    ranks.together(lambda: prompt_as_settled(run, model))
    facts = run.facts
    ranks.align(model.parameters)
    used = run.betas
    betas = None if used is None else [used[fact.id] for fact in facts.forget]
    state = checkpoints.trainer_state(run, epoch) if epoch else None
    started = time.monotonic()
    yield run.append(_started(run, facts, epoch))
    if taught:
        yield run.append(events.Taught(run=run.id, notes=taught.remarks))
    if not epoch:  # a resumed run was checked at its start
        check_lengths(model.tokenizer, facts, model.context, model.system, run.reply_tokens)
    forget, notes = _with_alternates(run, model, facts, ranks)
    _check_stop(run, ranks)
    trainer = ranks.together(
        lambda: Trainer(run.id, config, model, forget, facts.retain, betas, state, ranks)
    )
    ended = ranks.led(lambda: measuring.to_measure(run, epoch))
    recording = ranks.together(lambda: Recording(run, trainer, facts, epoch, ended is None))
    if ended:
        trainer.look_again()
        yield from measuring.closed(run, ended, trainer, facts, recording, heard)
    elif epoch and not ranks.led(lambda: measuring.events_of(run, events.Saved, epoch)):
        yield run.append(events.Saved(run=run.id, epoch=epoch))
    yield from _trained(run, trainer, facts, recording, heard)
    _check_stop(run, ranks)
    if config.measure != "off":
        if chosen := ranks.led(lambda: best_epoch(run.events()) if config.keep == "best" else None):
            ranks.together(lambda: model.set_adapter_state(checkpoints.adapter(run, chosen)))
        epoch = chosen or config.epochs
        measured = measuring.in_full(run, epoch, model, facts, before, heard, ranks)
        notes = (*notes, *(yield from measured))
    seconds = time.monotonic() - started
    own = dict.fromkeys(chain.from_iterable(ranks.gathered(lambda: trainer.notes)))
    notes = (*remarks_of(run.prompting), *model.notes, *notes, *own)
    notes += ranks.led(lambda: remarks(run))
    done = {"epoch": trainer.drift.epoch, "seconds": seconds, "notes": notes}
    yield run.append(events.RunDone(run=run.id, **done))


def _adopted(
    run: Run,
    model: AdaptedModel | None,
    before: events.Measured | None,
    ranks: Ranks,
    heard: measuring.Heard,
) -> Iterator[events.Event]:
    """The events of a run whose model was unlearned elsewhere: both models are measured."""
    _check_stop(run, ranks)
    if ranks.shards:
        check_divisible(run.config)
    model = ranks.together(lambda: model or load_adopted(run))
    ranks.led(lambda: keep_weights(run))
    with model.original():
        ranks.led(lambda: _settle_prompting(run, model, heard))
    ranks.together(lambda: prompt_as_settled(run, model))
    ranks.led(lambda: keep_unlearned(run))
    facts, started = run.facts, time.monotonic()
    yield run.append(replace(_started(run, facts, 0), steps=0))
    check_lengths(model.tokenizer, facts, model.context, model.system, run.reply_tokens)
    notes = ()
    if run.config.measure != "off":
        notes = yield from measuring.in_full(run, EPOCH, model, facts, before, heard, ranks)
    notes = (*remarks_of(run.prompting), *model.notes, *notes, *ranks.led(lambda: remarks(run)))
    seconds = time.monotonic() - started
    yield run.append(events.RunDone(run=run.id, epoch=EPOCH, seconds=seconds, notes=notes))


def _settle_prompting(run: Run, model: AdaptedModel, heard: measuring.Heard) -> None:
    """Decides once how to ask the run's model. heard: called with each `Measuring`. Raises Stopped:
    a stop was requested."""
    if run.prompting or run.last_epoch:  # older runs asked in chat
        return
    of = questions_to_settle(model, run.facts, run.config)
    logged = measuring.progress_logged(run, 0, model, of, heard)
    with measuring.interruptible(run, model), logged:
        prompting = settle(model, run.facts, run.config)
    if prompting:
        files.keep(run.folder / PROMPTING, prompting.to_json())


def _loaded(run: Run, model: AdaptedModel | None, epoch: int, ranks: Ranks) -> AdaptedModel:
    """The model as `_with_weights` in each process. Where they divide its weights, one after the
    other has them whole, in the CPU's memory. Raises ConfigError: this run needs them whole."""
    if not ranks.shards:
        return ranks.together(lambda: _with_weights(run, model, epoch))
    check_divisible(run.config)
    place = ranks.shards.place
    return ranks.in_turn(lambda: _with_weights(run, model, epoch, place))


def _with_weights(
    run: Run, model: AdaptedModel | None, epoch: int, place: Place | None = None
) -> AdaptedModel:
    """The model with the adapter of the epoch, or a fresh one for 0. Loaded unless it is given.
    place: as for `adapted_model`."""
    check_inputs(run)
    check_weights(run)
    if model is None or run.config.start == "sft":  # fine-tuning merged into a model stays in it
        return load_model(run, epoch, place) if epoch else adapted_model(run.config, place=place)
    if epoch:
        model.set_adapter_state(checkpoints.adapter(run, epoch))
    return model


def _trained(
    run: Run, trainer: Trainer, facts: FactSet, recording: Recording, heard: measuring.Heard
) -> Iterator[events.Event]:
    """The trainer's events, each finished epoch measured and saved, until it ends or is stopped."""
    if trainer.ranks.led(lambda: ends_early(run)):
        return
    for event in trainer.train():
        yield run.append(event)
        if isinstance(event, events.StepDone):
            recording.after_step(event)
        if isinstance(event, events.EpochDone):
            if event.epoch:  # before the measurement, which may take long and be stopped
                saved = run, event.epoch, trainer.model, trainer.state()
                trainer.ranks.led(partial(checkpoints.save, *saved))
            yield from measuring.closed(run, event, trainer, facts, recording, heard)
            if trainer.ranks.led(lambda: ends_early(run)):
                return
        if trainer.ranks.led(lambda: run.stop_requested):
            return


def _started(run: Run, facts: FactSet, epoch: int) -> events.RunStarted:
    config = run.config
    return events.RunStarted(
        run=run.id,
        model=config.model,
        method=config.method,
        facts=facts.name,
        epochs=config.epochs,
        steps=count(len(facts.forget), config.batch, config.last_step),
        resumed_from=epoch,
        **{group: len(getattr(facts, group)) for group in FACT_GROUPS},
    )


def _scored(config: RunConfig, facts: FactSet) -> tuple[dict[str, float], RunConfig]:
    """Beta by fact id, and the configuration with its beta map. Raises DataError: no score."""
    if config.preset == "beta-mean" and config.beta.b:  # without b, an earlier run has settled it
        known = [config.beta(fact.score) for fact in facts.forget if fact.score is not None]
        if not known:
            fix = "Add scores, or use another preset."
            raise DataError("No fact has a score, so there is no mean beta.", fix)
        config = replace(config, beta=BetaMap.constant(fmean(known)))
    settings = config.beta, config.scores, config.missing_score, config.seed
    return exponents(facts.forget, *settings), config


@dataclass(frozen=True)
class _WrongAnswers:
    alternates: dict[str, tuple[str, ...]]
    notes: tuple[str | Remark, ...]


def _with_alternates(
    run: Run, model: AdaptedModel, facts: FactSet, ranks: Ranks
) -> tuple[tuple[Fact, ...], tuple[str | Remark, ...]]:
    """The forget facts, each with a plausible wrong answer if the method needs one, and notes.

    Wrong answers are chosen once and saved in the run's folder, so that a resumed run teaches the
    same. After a stop, facts are returned unchanged: some may not have been asked. Raises
    DataError: a fact still has no wrong answer, or its right answer is among them."""
    config = run.config
    objective = make_objective(config.method, config.arguments)
    path = run.folder / "alternates.json"
    if "alternates" not in objective.needs:
        return facts.forget, ()
    if ranks.led(path.exists):
        saved = files.read_json(path, _WrongAnswers)
        with files.reading(path):
            wrong = saved.alternates
            ready = (replace(fact, alternates=wrong[fact.id]) for fact in facts.forget)
            return tuple(ready), saved.notes
    ready: Sequence[Fact] = facts.forget
    notes = []

    def draw(prompts: Sequence[str], seed: int) -> list[str]:
        return ranks.led(lambda: model.sample(prompts, seed, **alternates.DRAWN))

    several = getattr(objective, "count", 1)
    if objective.source != "relation":
        with model.original():
            if objective.source == "second":
                ready = ranks.led(
                    lambda: by_second_choice(ready, model, several, lambda: run.stop_requested)
                )
            else:
                stopped = partial(ranks.led, lambda: run.stop_requested)
                ready = alternates.by_model(ready, draw, config.seed, stopped, several)
        if ranks.led(lambda: run.stop_requested):
            return facts.forget, ()
        if silent := sum(not fact.alternates for fact in ready):
            notes.append(Remark("no_wrong_answers", {"count": silent, "facts": len(ready)}))
    ready = alternates.by_relation(ready, facts.retain, config.seed, several)
    alternates.check_alternates(ready)
    saved = _WrongAnswers({fact.id: fact.alternates for fact in ready}, tuple(notes))
    ranks.led(lambda: files.keep(path, json.dumps(asdict(saved), ensure_ascii=False)))
    return tuple(ready), tuple(notes)
