"""The worker's jobs on the accelerator. They may run in any process: they get a run's folder and
plain data, return plain data, and import torch only when called.

ZeroGPU lends a GPU for about a minute, so a run is done there in slices of whole epochs. Each slice
loads the last checkpoint and saves a later one, as a resumed run does.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from types import ModuleType
from typing import TYPE_CHECKING

from adapop.config.run import RunConfig
from adapop.errors import RunError
from adapop.facts.fact import FactSet
from adapop.paths import SHIPPED
from adapop.progress import Progress
from adapop.runs.best import epochs_left
from adapop.runs.known import Known, known_facts
from adapop.runs.run import EPOCH, Run
from adapop.training.events import Saved

# the next epoch starts if this many times the last one fits into the rest of the lease
SPARE = 1.25
END_EPOCHS = 2  # time of the full tables at the end, in epochs

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel
    from adapop.probes.inspection import Chosen, Drawing, Inspection, Question, Samples
    from adapop.probes.layers import LayerGrid
    from adapop.probes.plan import Plan
    from adapop.probes.prompts import Asked, NotApplicable, ProbeRow
    from adapop.probes.strength import AtStrength
    from adapop.probes.tokenwise import Column
    from adapop.runs.check import Check


@cache
def engine() -> ModuleType:
    """Imports, at its first call, the module that prepares and executes runs."""
    from adapop.runs import execute

    _keep_all()
    return execute


def word_stems() -> None:
    """Loads what finds the stems of words: two seconds, in which the page would answer slowly."""
    from adapop.probes.recall import rouge_l_recall

    rouge_l_recall("words", "a word")
    _keep_all()


def _keep_all() -> None:
    """Spares what was imported, which stays, the search for garbage: it takes a second."""
    gc.collect()
    gc.freeze()


def whole_run(folder: Path, seconds: float | None = None) -> None:
    """Executes a run to its end, or for so many seconds, see `execute`."""
    from adapop.runs.execute import execute

    _drop()
    for _ in execute(Run(folder), seconds=seconds):
        pass


def fetch_model(folder: Path) -> None:
    """Downloads a run's models, without a GPU. Renews the run's age (see `cleanup`)."""
    from adapop.model.adapter_folder import is_adapter
    from adapop.model.loading import fetch
    from adapop.model.paired import at

    run = Run(folder)
    _renew(run)
    fetch(run.config)
    for place in (run.config.unlearned, run.config.oracle):
        if place and not is_adapter(place):  # an adapter's folder is here already
            fetch(at(run.config, place))


def epochs_that_fit(folder: Path, seconds: float, most: float | None = None) -> bool:
    """Executes as many epochs of a run as fit, at least one. most: as `whole_run` has it. Returns
    whether another lease must go on, for epochs or for the final tables."""
    from adapop.runs.execute import execute

    began = last = monotonic()
    _drop()
    run = Run(folder)
    before = run.last_epoch or 0
    with closing(execute(run, seconds=most)) as events:
        for event in events:
            if isinstance(event, Saved) and event.epoch > before:
                took, last = monotonic() - last, monotonic()
                if SPARE * took * (1 if epochs_left(run) else END_EPOCHS) > began + seconds - last:
                    return True
    return False


def ask_models(folder: Path, prompts: list[str], golds: list[str]) -> list[Asked]:
    """Both models' complete replies to prompts."""
    from adapop.probes.ask import ask

    run = Run(folder)
    return ask(_model(run), prompts, golds, _most_tokens(run, prompts), run.facts)


def inspect_columns(folder: Path, question: Question, chosen: Sequence[Chosen]) -> Inspection:
    """The columns' replies to a question, token by token. folder: of the run that is asked."""
    from adapop.probes.tokenwise import inspect

    run = Run(folder)
    most = _most_tokens(run, [question.prompt])
    return inspect(_columns(chosen), question, most, run.facts)


def sample_columns(
    folder: Path, question: Question, chosen: Sequence[Chosen], drawing: Drawing
) -> tuple[Samples, ...]:
    """Samples of the columns. folder: of the run that is asked."""
    from adapop.probes.tokenwise import samples

    return samples(_columns(chosen), question, drawing, Run(folder).facts)


def at_strengths(
    folder: Path, strengths: Sequence[float], fact_id: str | None
) -> tuple[AtStrength, ...]:
    """A run's facts at several strengths of its adapter, see `probes.strength`."""
    from adapop.probes.strength import at

    run = Run(folder)
    return at(_model(run), run.facts, strengths, fact_id)


def layers_of_reply(folder: Path, question: Question, by: str) -> LayerGrid:
    """One model's reply in the layers of both. by: `ORIGINAL` or `UNLEARNED`."""
    from adapop.probes.layers import layers_of

    run = Run(folder)
    return layers_of(_model(run), question, _most_tokens(run, [question.prompt]), by)


def ask_columns(
    folder: Path,
    prompts: list[str],
    golds: list[str],
    chosen: Sequence[Chosen],
    earlier: Mapping[int, tuple[str, ...]],
) -> list[list[Asked]]:
    """For each column, the replies to prompts with the original's, for the verdict. earlier: see
    `tokenwise.asked_columns`."""
    from adapop.probes.tokenwise import asked_columns

    run = Run(folder)
    most = _most_tokens(run, prompts)
    return asked_columns(_columns(chosen), prompts, golds, most, run.facts, earlier)


def _columns(chosen: Sequence[Chosen]) -> list[Column]:
    """The columns with their models, which are loaded when they are asked."""
    from adapop.model.loading import adapted_model
    from adapop.model.paired import at
    from adapop.probes.inspection import ORACLE, ORIGINAL
    from adapop.probes.oracle import load_oracle
    from adapop.probes.tokenwise import Column
    from adapop.runs.model import prompt_as_settled

    columns, main = [], _checkpoint(chosen[0])
    for one in chosen:
        run = Run(one.folder)
        if one.kind == ORACLE:
            if run.config.oracle:  # an adopted run names its own
                place = run.folder / ORACLE
                if place not in _cached:
                    _cached[place] = adapted_model(at(run.config, run.config.oracle))
                    prompt_as_settled(run, _cached[place])
                oracle = _cached[place]
            else:  # `columns_of` has made sure that it never read these facts
                oracle = load_oracle(SHIPPED[run.config.model] / ORACLE)
            columns.append(Column(one.name, lambda model=oracle: model))
            continue
        strength = 0.0 if one.kind == ORIGINAL else one.strength
        columns.append(Column(one.name, partial(_beside, main, _checkpoint(one)), strength))
    return columns


def _checkpoint(chosen: Chosen) -> Path:
    run = Run(chosen.folder)
    return run.checkpoint((run.chosen_epoch if chosen.epoch is None else chosen.epoch) or 0)


def probe_models(
    folder: Path, plan: Plan, progress: Progress | None = None
) -> list[ProbeRow | NotApplicable]:
    """Both models' answers to the plan, saved in the run's folder even after an error; but one that
    ends early does not replace an earlier probing with more answers."""
    from adapop.probes.battery import battery

    run, rows, earlier = Run(folder), [], 0
    epoch, model = run.chosen_epoch, _model(run)
    with suppress(RunError):  # a damaged file is replaced
        earlier = len(run.probes() or ())
    try:
        for row in battery(model, run.facts, plan, progress or Progress()):
            rows.append(row)
        earlier = 0
    finally:
        if len(rows) > earlier:
            run.save_probes(rows, epoch)
    return rows


def recover_facts(folder: Path, name: str, progress: Progress | None = None) -> dict:
    """The result of a recovery probe of `RECOVERY`, saved in the run's folder."""
    from adapop.probes.recovery.choice import recover

    run = Run(folder)
    about = run.facts, run.reply_tokens, progress or Progress(), run.config.model
    epoch, result = run.chosen_epoch, recover(name, _model(run), *about)
    run.save_recovery(name, result, epoch)
    return result


def measure_files(folder: Path, progress: Progress | None = None) -> None:
    """Measures the run's adapter as it leaves, loaded from a file, and keeps the numbers in the
    run's folder. Measured once for the same file."""
    from adapop.runs.delivered import measured_adapter, write_adapter

    run = Run(folder)
    _renew(run)
    _drop()
    with TemporaryDirectory() as place:
        write_adapter(run, Path(place))
        measured_adapter(run, Path(place), progress or Progress())


def recall_of_original(
    config: RunConfig, facts: FactSet, progress: Progress | None = None
) -> Known:
    """The original model's answers for the facts to forget, asked as in a run of these settings."""
    _drop()
    return known_facts(config, facts, progress)


def check_facts(config: RunConfig, facts: FactSet, progress: Progress | None = None) -> Check:
    """The check of a run of these facts, see `runs.check`."""
    from adapop.runs.check import check

    _drop()
    return check(config, facts, progress=progress)


def _model(run: Run) -> AdaptedModel:
    """The run's model with the adapter that is its result. Renews the run's age (see `cleanup`)."""
    _renew(run)
    return _loaded(run.checkpoint(run.chosen_epoch or 0))


def _most_tokens(run: Run, prompts: list[str]) -> int:
    """The most tokens of its model's replies to prompts, so that none is cut off."""
    from adapop.probes.ask import whole_reply

    return whole_reply(_model(run), prompts, run.reply_tokens)


def _renew(run: Run) -> None:
    try:
        os.utime(run.folder / "facts.jsonl")
    except FileNotFoundError:
        raise RunError("This run was deleted.", "Start it again.") from None


# the models that were asked last, by checkpoint, and an adopted run's oracle, by its name there
_cached: dict[Path, AdaptedModel] = {}
# further adapters on the base of a cached model, by its checkpoint and their own
_adapters: dict[tuple[Path, Path], AdaptedModel] = {}
KEPT = 6  # models that ship, of 8 MB, in memory at once; of others one, as two may not fit


def _loaded(checkpoint: Path) -> AdaptedModel:
    """A checkpoint's model, kept in memory until a run begins or others take its place."""
    from adapop.runs.model import load_model

    if checkpoint not in _cached:
        run = Run(checkpoint.parent)
        small = all(Run(other.parent).config.model in SHIPPED for other in (checkpoint, *_cached))
        if not small or len(_cached) >= KEPT:
            _drop()
        _cached[checkpoint] = load_model(run, int(EPOCH.fullmatch(checkpoint.name)[1]))
    return _cached[checkpoint]


def _beside(main: Path, checkpoint: Path) -> AdaptedModel:
    """A column's model: the main one, or another adapter on its base if that is the same."""
    from adapop.runs.model import load_beside

    first = _loaded(main)
    if checkpoint == main:
        return first
    if (main, checkpoint) not in _adapters:
        run, epoch = Run(checkpoint.parent), int(EPOCH.fullmatch(checkpoint.name)[1])
        shared = load_beside(first, Run(main.parent), run, epoch)
        if shared is None:
            return _loaded(checkpoint)
        _adapters[main, checkpoint] = shared
    return _adapters[main, checkpoint]


def _drop() -> None:
    """Frees the memory of the kept model before another is loaded: two may not fit."""
    from adapop.model.out_of_memory import release

    if _cached:
        _cached.clear()
        _adapters.clear()
        release()
