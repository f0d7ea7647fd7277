"""Runs of models that were unlearned elsewhere: nothing is trained, all else is as for any run.

The run's only epoch, `epoch-1`, holds the adapter, copied; or, where the original is an adapter of
the same base, the difference of both; or, of a whole model, `unlearned.json` with the SHA-256 of
its weights, which stay where they are.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import hf_hub_download, snapshot_download
from huggingface_hub.errors import EntryNotFoundError

from adapop import sums
from adapop.config.methods import ADOPTED
from adapop.config.presets import make_config
from adapop.config.run import ALL_LINEAR, RunConfig
from adapop.errors import ConfigError, ModelError, RunError
from adapop.facts.catalog import load_facts, load_raw
from adapop.facts.fact import FactSet
from adapop.model import adapter_folder
from adapop.model.converted import folder_of, is_gguf
from adapop.paths import PACKAGED, SHIPPED, found_from_anywhere, split_revision
from adapop.remark import Remark
from adapop.runs import files
from adapop.runs.inputs import check_inputs
from adapop.runs.run import Run
from adapop.runs.weights import Weights, check_weights, compare, weights_at

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel

EPOCH = 1  # the only one of an adopted run
FILE = "unlearned.json"
NO_ORIGINAL = "Name the original model: without it nobody can say what was forgotten."
OWN_BASE = "Leave the original out: the adapter's own base is taken then."


def adopted_config(original: str, unlearned: str, oracle: str = "", **settings: Any) -> RunConfig:
    """The configuration of an adopted run. Parameters and ConfigError as `unlearn.adopt`, with
    models by their places. Loads nothing."""
    original, unlearned, oracle = (text.strip() for text in (original, unlearned, oracle))
    if not unlearned:
        raise ConfigError("There is no unlearned model.", "Name its folder, Hub id or adapter.")
    if not original and adapter_folder.is_adapter(unlearned):
        original = str(adapter_folder.settings_of(unlearned)[adapter_folder.NAME])
        if original not in SHIPPED and original not in PACKAGED:
            with suppress(ModelError):  # said where it is loaded
                original = str(adapter_folder.base_of(unlearned))
    if not original:
        raise ConfigError(NO_ORIGINAL, "Only an adapter needs none: its folder names its base.")
    model, revision = split_revision(original)
    settings = {"revision": revision} | settings if revision else settings
    places = {"unlearned": _full(unlearned), "oracle": oracle and _full(oracle)}
    fixed = {"controller": "fixed", "epochs": EPOCH, "frames": 0, "keep": "last", "patience": 0}
    fixed |= {"start": "as-given", "lora_targets": (ALL_LINEAR,)}  # for probes that train
    config = make_config("ga", model=model, **settings)
    config = replace(config, method=ADOPTED, **fixed, **places)
    if config.unlearned in (_full(model), model) and not config.revision:
        message = "Nothing changed: the unlearned model is the original."
        raise ConfigError(message, "Name two different models.")
    return config


def facts_for(
    config: RunConfig, source: str | FactSet, retain: Any = "own", **read: Any
) -> FactSet:
    """The facts to ask: as `load_facts`, but a real model needs no rows to retain, as nothing is
    trained. Raises DataError, NetworkError: as there."""
    facts = source if isinstance(source, FactSet) else load_raw(source, **read)
    bare = not facts.retain and retain == "own" and config.model not in SHIPPED
    return facts if bare else load_facts(facts, config.model, retain=retain)


def load_adopted(run: Run) -> AdaptedModel:
    """The pair of an adopted run: the adapter on the original, or both models. Raises RunError: the
    inputs or a model's files changed. ModelError: as `adopt`."""
    from adapop.model.paired import at, check_changed, original_of, paired_model

    check_inputs(run)
    check_weights(run)
    config, folder = run.config, run.checkpoint(EPOCH)
    original = original_of(config)
    if folder.is_dir():
        check_kept(folder)
    saved = folder / FILE
    if saved.exists():
        weights = files.read_json(saved, Weights)
        compare(run, weights if weights.sha256 else None, *split_revision(config.unlearned))
    place = str(folder) if (folder / adapter_folder.CONFIG).exists() else _local(config)
    if _are_both_adapters(config.model, place):
        return paired_model(original, at(config, place))
    if adapter_folder.is_adapter(place):
        notes = _check_base(original, place)
        model = _with_adapter(original, Path(place))
        check_changed(model)
        model.notes += notes
        return model
    return paired_model(original, at(config, config.unlearned))


def keep_unlearned(run: Run) -> None:
    """Writes the run's only epoch: the adapter, or the hash of a whole model's weights. Raises
    RunError: it cannot be written."""
    folder, place = run.checkpoint(EPOCH), _local(run.config)
    part = run.folder / f"{files.UNFINISHED}{EPOCH}"
    if folder.is_dir():
        return
    with files.writing(folder):
        files.clear(part)
        part.mkdir()
        both = _are_both_adapters(run.config.model, place)
        joined = both and _write_difference(Path(run.config.model), Path(place), part)
        if adapter_folder.is_adapter(place) and not both:
            for name in (adapter_folder.CONFIG, adapter_folder.WEIGHTS):
                shutil.copyfile(Path(place) / name, part / name)
        elif not joined:
            weights = weights_at(*split_revision(place)) or Weights("", "")
            (part / FILE).write_text(json.dumps(asdict(weights)), encoding="utf-8")
        sums.record_all(part)
        files.move_into_place(part, folder)


def _write_difference(original: Path, unlearned: Path, folder: Path) -> bool:
    """Writes the adapter that leads from one adapter of a base to another: what the unlearned one
    adds, less what the original adds. On the original, whose base is in memory once, it is the
    unlearned model. Returns whether it could be made: a few kinds of LoRA have no such sum."""
    if any(map(adapter_folder.unjoined, (str(original), str(unlearned)))):
        return False
    try:
        adapter_folder.write_joined(folder, original, unlearned, sign=-1)
    except ModelError:  # other weights than LoRA's
        return False
    about = json.loads((folder / adapter_folder.CONFIG).read_text(encoding="utf-8"))
    about |= {adapter_folder.NAME: str(original), adapter_folder.REVISION: None}
    text = json.dumps(about, indent=2, sort_keys=True)
    (folder / adapter_folder.CONFIG).write_text(text, encoding="utf-8")
    return True


def is_whole(run: Run) -> bool:
    """Whether an adopted run's unlearned model is whole, not an adapter on the original: a model of
    its own, or an adapter merged into a base of which the original is another adapter."""
    return not (run.checkpoint(EPOCH) / adapter_folder.CONFIG).exists()


def check_kept(folder: Path) -> None:
    """Raises RunError: a file of the epoch is not as it was written."""
    try:
        sums.check_all(folder)
    except (sums.Changed, OSError) as error:
        fix = "Put its files back as they were, or adopt the model again."
        raise RunError(f"{folder} is damaged ({error}).", fix) from error


def _with_adapter(config: RunConfig, folder: Path) -> AdaptedModel:
    """The original with the adapter, all of whose weights have found their place."""
    from peft import get_peft_model_state_dict
    from safetensors import SafetensorError, safe_open

    from adapop.model.loading import adapted_model

    base = Path(config.model)
    try:
        with safe_open(folder / adapter_folder.WEIGHTS, "pt") as saved:
            names = {*saved.keys()}
        model = adapted_model(config, folder)
    except (RuntimeError, ValueError, LookupError, TypeError, SafetensorError) as error:
        raise adapter_folder.unfit(str(folder), base, error) from error
    own = {*get_peft_model_state_dict(model.network)}
    if wrong := sorted(names ^ own):
        example = f"{len(wrong)} weights, for example {wrong[0]}"
        raise adapter_folder.unfit(str(folder), base, example)
    return model


def _are_both_adapters(original: str, unlearned: str) -> bool:
    """Whether both are adapters' folders of one base; not where the unlearned one belongs on the
    original itself. Where their ranks can be joined, their difference is an adapter on the
    original; else each is merged into the base, and they are a pair of whole models."""
    if not (adapter_folder.is_adapter(original) and adapter_folder.is_adapter(unlearned)):
        return False
    try:
        own, other = (adapter_folder.base_of(place) for place in (original, unlearned))
    except ModelError:  # among others: its base is the original, an adapter itself
        return False
    if own == other:  # without reading their weights, which may be gigabytes
        return True
    hashes = weights_at(str(own), None), weights_at(str(other), None)
    return None not in hashes and hashes[0].sha256 == hashes[1].sha256


def _check_base(original: RunConfig, adapter: str) -> tuple[Remark, ...]:
    """A note if the adapter's base is not here to be compared. Raises ModelError: it has other
    weights than the original."""
    named = adapter_folder.settings_of(adapter)[adapter_folder.NAME]
    if named == original.model:
        return ()
    try:
        base = adapter_folder.base_of(adapter)
    except ModelError:
        return (Remark("adapter_base_unknown", {"base": Path(named).name}),)
    own = SHIPPED.get(original.model, Path(original.model))
    own = folder_of(original.model) if is_gguf(original.model) else own
    hashes = weights_at(str(base), None), weights_at(str(own), original.revision)
    if None not in hashes and hashes[0].sha256 != hashes[1].sha256:
        both = " and ".join(f"{one.sha256[:12]}…" for one in hashes)
        message = f"The adapter belongs to another base, {base.name!r}, than the original "
        message += f"{Path(original.model).name!r} (SHA-256 {both})."
        raise ModelError(message, OWN_BASE)
    return ()


def _local(config: RunConfig) -> str:
    """The unlearned model's place; of a Hub repository that holds an adapter, its folder here.
    Raises ModelError: the Hub has no such model, or does not answer."""
    from adapop.model.checks import named_failures

    name, revision = split_revision(config.unlearned)
    if name in SHIPPED or name in PACKAGED or os.path.exists(name):
        return name
    with named_failures(replace(config, model=name, revision=revision)):
        try:
            hf_hub_download(name, adapter_folder.CONFIG, revision=revision)
        except EntryNotFoundError:
            return config.unlearned
        patterns = {"allow_patterns": adapter_folder.FETCHED, "ignore_patterns": "*/*"}
        return snapshot_download(name, revision=revision, **patterns)


def _full(place: str) -> str:
    """A place as a run records it: a path in full."""
    adapter = adapter_folder.is_adapter(place)
    return str(Path(place).resolve()) if adapter else found_from_anywhere(place)
