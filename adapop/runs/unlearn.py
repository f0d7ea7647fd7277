"""The whole of a run in one call, for programs and notebooks."""

import os
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from peft import PeftModel
from tqdm.auto import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.errors import ConfigError, ModelError, RunError, named_place
from adapop.facts.catalog import load_facts, model_of
from adapop.facts.fact import FactSet
from adapop.facts.files import Rows
from adapop.model.adapted import AdaptedModel
from adapop.model.converted import file_sha256, joint_sha256
from adapop.online.cache import cache_root
from adapop.remark import sentences
from adapop.runs import files
from adapop.runs.adopted import adopted_config, facts_for
from adapop.runs.execute import execute, prepare
from adapop.runs.run import Run
from adapop.runs.trackers import following
from adapop.training.events import Event, Measured, RunDone, RunFailed, RunStarted, StepDone

IN_MEMORY = "in-memory"  # in the cache folder: models by a hash of their content, safe to delete


def unlearn(
    config: RunConfig | str | type | object,
    facts: FactSet | str | os.PathLike | Rows,
    model: AdaptedModel | PreTrainedModel | str | None = None,
    root: Path | None = None,
    progress: bool = True,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    log: str | None = None,
    callbacks: Iterable[Callable[[Event], None]] = (),
    **settings: Any,
) -> Run:
    """The finished run of a configuration on a set of facts: prepared, trained and measured.

    config: made by `make_config`, or a method as `make_config` takes it, with `settings` for its
    settings (also `preset`). facts: a set, or what `load_facts` reads. model: with a method, a name
    or path as `RunConfig.model` has it, or a model of transformers in memory, with its `tokenizer`:
    it is not changed, but saved once into the cache, so that the run can be asked, resumed and
    exported. With a configuration, one with a fresh adapter, to train that one; by default it is
    loaded. root: the folder in which the run's folder is made, by default that of all runs.
    progress: show a bar that counts optimiser steps, and at the end the run's remarks, such as that
    nothing was forgotten. log: "tensorboard", "trackio" or "wandb", see `runs.trackers`. callbacks:
    functions that get each event, after it is on the disk. What they raise interrupts the run.

    To stop early, interrupt it; `execute(run)` then continues after the last saved epoch. Raises
    DataError, ConfigError: as `prepare`, `make_config` and `load_facts`. ModelError: as
    `adapted_model`. RunError: the run failed; the message says why, and its events are in the run's
    folder."""
    if not isinstance(config, RunConfig):
        config, facts = _made(config, facts, model, tokenizer, settings)
        model = None
    elif settings or tokenizer or not isinstance(model, AdaptedModel | None):
        message = "A configuration names its model and has all settings already."
        fix = 'Give the method instead, as in unlearn("npo", facts, model=model, epochs=4).'
        raise ConfigError(message, fix)
    facts = facts if isinstance(facts, FactSet) else load_facts(facts, config.model)
    run = prepare(config, facts, root)
    callbacks = (*callbacks, *([following(run, log)] if log else ()))
    with tqdm(desc=run.config.method, unit="step", disable=not progress) as bar:
        for event in execute(run, model):
            for callback in callbacks:
                callback(event)
            if isinstance(event, RunStarted):
                bar.reset(total=event.epochs * event.steps)
            elif isinstance(event, StepDone):
                bar.update()
            elif isinstance(event, Measured) and event.full:
                bar.set_postfix_str("measuring")
            elif isinstance(event, Measured) and (recall := event.recall("forget")) is not None:
                bar.set_postfix_str(f"recall of the facts to forget {recall:.2f}")
            elif isinstance(event, RunDone) and progress:
                notes = [f"note: {note}" for note in sentences(event.notes, "program")]
                tqdm.write("\n".join(notes), end="\n" * bool(notes))
            elif isinstance(event, RunFailed):
                raise RunError(event.message, event.fix)
    return run


def _made(
    method: Any, facts: Any, model: Any, tokenizer: Any, settings: dict[str, Any]
) -> tuple[RunConfig, FactSet]:
    """The configuration of a method on a model, and the facts. Arguments as of `unlearn`."""
    if model is None:
        model = model_of(facts if isinstance(facts, str) else getattr(facts, "name", None))
    elif not isinstance(model, str | os.PathLike):
        model = saved_model(model, tokenizer)
    model = str(model)
    facts = facts if isinstance(facts, FactSet) else load_facts(facts, model)
    return make_config(method, model=model, **{"facts": facts.name, **settings}), facts


def adopt(
    original: str | Path | PreTrainedModel,
    unlearned: str | Path | PreTrainedModel | PeftModel,
    facts: str | FactSet,
    oracle: str | Path | PreTrainedModel = "",
    root: Path | None = None,
    progress: bool = True,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    **settings: Any,
) -> Run:
    """The finished run of a model that was unlearned elsewhere: measured as any run is at its start
    and its end, to be probed, compared, reported and exported as any.

    original, unlearned, oracle: the models as `RunConfig.model` and `unlearned` name them, or
    models in memory, which are saved into the cache first, as `unlearn` does. original: "" for the
    base of an adapter. tokenizer: of models in memory. facts: a set, or the name or file of one.
    settings: others of `RunConfig` that decide how it is asked and measured. Raises ConfigError: no
    original. ModelError: a model in memory cannot be saved. DataError: as `prepare`. RunError: a
    model cannot be loaded, the adapter belongs to another base, or nothing changed."""
    places = [_placed(one, tokenizer) for one in (original, unlearned, oracle)]
    config = adopted_config(*places, **settings)
    config = replace(config, facts=facts if isinstance(facts, str) else facts.name)
    return unlearn(config, facts_for(config, facts), None, root, progress)


def _placed(model: Any, tokenizer: PreTrainedTokenizerBase | None) -> str:
    """The place of a model; one in memory is saved first."""
    if isinstance(model, PeftModel):
        folder = cache_root() / IN_MEMORY / f"adapter-{secrets.token_hex(8)}"
        model.save_pretrained(str(folder), save_embedding_layers=False)
        return str(folder)
    return str(model if isinstance(model, str | Path) else saved_model(model, tokenizer))


def saved_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> Path:
    """The folder with the model's weights, in their precision, and its tokenizer. Raises
    ModelError: no tokenizer, an adapter that is not merged, quantised weights, or the cache cannot
    be written."""
    if tokenizer is None:
        message = "A model in memory needs its tokenizer, too."
        raise ModelError(message, "unlearn(..., model=model, tokenizer=tokenizer)")
    if isinstance(model, PeftModel) or not isinstance(model, PreTrainedModel):
        fix = "Merge an adapter first: model.merge_and_unload()."
        raise ModelError(f"{type(model).__name__} is not a model of transformers.", fix)
    if getattr(model, "is_quantized", False):
        message = "A quantised model in memory cannot be saved."
        raise ModelError(message, "Load it without quantisation; four_bit=True quantises it here.")
    cache = cache_root() / IN_MEMORY
    part = cache / f"part-{secrets.token_hex(8)}"
    try:
        with named_place(cache, ModelError):
            model.save_pretrained(part)
            tokenizer.save_pretrained(part)
            whole = joint_sha256((file_sha256(path), path.name) for path in sorted(part.iterdir()))
            folder = cache / f"{_name_of(model)}-{whole[:16]}"
            if not folder.is_dir():
                files.move_into_place(part, folder)
    finally:
        files.clear(part)
    return folder


def _name_of(model: PreTrainedModel) -> str:
    name = Path(model.config.name_or_path or type(model).__name__).name
    return re.sub(r"[^\w.-]+", "-", name)[:40].strip("-.") or "model"
