"""The files of a run's model that leave: written, loaded again from the disk, and measured.

What a run measured is the model in its memory. Its adapter over the untouched base, or merged and
rounded, may answer otherwise: rounding can bring facts back. So the numbers that go out with files
are measured on these files, and are kept in the run's folder by the files' SHA-256. Importing this
loads no torch.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from adapop.config.run import RunConfig
from adapop.errors import RunError
from adapop.model import adapter_folder
from adapop.model.adapter_folder import CONFIG, WEIGHTS
from adapop.model.converted import is_gguf, joint_sha256, sha256_of
from adapop.paths import PACKAGED, SHIPPED
from adapop.progress import Progress
from adapop.runs import files
from adapop.runs.run import Run
from adapop.training.events import Measured

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel

MEASURED = "measured.json"  # in a delivered folder
# of several visitors who ask for the same report one measures the adapter, the others wait for it
_MEASURING = Lock()
ADAPTER, MERGED = "adapter", "merged"
NARROW, WIDE = "bfloat16", "float32"
DTYPES = (NARROW, "float16", WIDE)
MOST_BACK = 0.01  # share of the facts to forget that rounding may bring back
# of `Measurement`: compared with the original, which merged weights do not have beside them
COMPARED = ("delta_logprob", "delta_rank", "hidden_cosine", "kl")
Answered = Mapping[str, frozenset[str]]  # form -> ids of the facts that are answered


@dataclass(frozen=True)
class Trial:
    """Weights in one type, compared with the run's own model fact by fact, over all facts to
    forget: as trained ("direct") and in their first rewording ("reworded")."""

    dtype: str
    """Of the weights as written."""
    bytes: int
    """Size of the weights as written."""
    asked: dict[str, int]
    """Form -> number of facts to forget that were asked."""
    came_back: dict[str, int]
    """Form -> facts that these weights answer and the run's model does not."""
    went: dict[str, int]
    """Form -> facts that the run's model answers and these weights do not."""

    @property
    def fits(self) -> bool:
        """Whether at most `MOST_BACK` of the facts came back, in each form."""
        return all(self.came_back[form] <= MOST_BACK * count for form, count in self.asked.items())


@dataclass(frozen=True)
class Delivered:
    """The numbers of delivered files, measured on the model that they give when they are loaded.
    Holds no facts and no replies."""

    kind: str
    """`ADAPTER` or `MERGED`."""
    sha256: dict[str, str]
    """Name of each file of weights -> its SHA-256."""
    epoch: int
    """The epoch of the run that they come from."""
    loaded_as: str
    """The type in which the base or the merged model was loaded."""
    trials: tuple[Trial, ...]
    """The types that were tried; the last is that of the files."""
    rows: tuple[dict[str, int | float | str | None], ...]
    """`probes.measure.Measurement`s as dicts, as in `Measured`."""

    @property
    def trial(self) -> Trial:
        return self.trials[-1]

    @property
    def measured(self) -> Measured:
        """The rows as a run's full measurement."""
        return Measured(run="", epoch=self.epoch, rows=self.rows, full=True)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, allow_nan=False)


def kept(run: Run, sha256: Mapping[str, str]) -> Delivered | None:
    """The numbers measured earlier on files with these hashes; None if they were not measured, or
    what was kept of it is damaged."""
    path = _place(run, sha256)
    with suppress(RunError):
        return files.read_json(path, Delivered) if path.exists() else None
    return None


def all_kept(run: Run) -> tuple[Delivered, ...]:
    """The numbers measured on files of the run's result, adapter first; damaged ones are left
    out."""
    results: list[Delivered] = []
    for path in sorted(run.folder.glob("delivered-*.json")):
        with suppress(RunError):
            results.append(files.read_json(path, Delivered))
    of_result = (one for one in results if one.epoch == run.chosen_epoch)
    return tuple(sorted(of_result, key=lambda one: (one.kind, one.trial.bytes)))


def sums(folder: Path) -> dict[str, str]:
    """Name of each file of weights in a folder -> its SHA-256."""
    return {path.name: sha256_of([path]) for path in sorted(folder.glob("*.safetensors"))}


def why_no_adapter(run: Run) -> str:
    """Why the run's result cannot leave as an adapter, to follow "because"; "" if it can."""
    from adapop.runs.adopted import is_whole

    if run.config.unlearned and is_whole(run):
        if adapter_folder.is_adapter(run.config.unlearned):
            return "the original is an adapter too, and both were merged into their base"
        return "the unlearned model is a whole model, not an adapter"
    model = run.config.model
    if lost := lost_adapter(run):
        return f"the run began with an adapter's folder, {lost!r}, that is not there any more"
    if not adapter_folder.is_adapter(model):
        return ""
    names = adapter_folder.unjoined(model)
    if not names:
        return ""
    return (
        f"the model is itself an adapter, {Path(model).name!r}, with {', '.join(names)}, and so "
        "cannot be combined with another into one adapter"
    )


def lost_adapter(run: Run) -> str:
    """The name of the adapter's folder that the run began with, if it is not there any more: what
    the run trained belongs on its sum with a base, which nobody else has. "" for other runs."""
    model = run.config.model
    is_known = model in SHIPPED or model in PACKAGED or is_gguf(model) or os.path.exists(model)
    if is_known or run.config.unlearned or not run.last_epoch:
        return ""
    about = json.loads((run.checkpoint(run.last_epoch) / CONFIG).read_text(encoding="utf-8"))
    return "" if about[adapter_folder.NAME] == model else Path(model).name


def write_adapter(run: Run, folder: Path) -> None:
    """Writes the run's adapter as peft loads it over the untouched base. For a run that fine-tuned
    the base first, and for one on an adapter's folder, it is one adapter that adds what all of them
    add; the folder's own tokenizer lies beside it. Raises RunError: a file is missing or damaged.
    ModelError: the adapters cannot be made one. OSError."""
    _write_own_adapter(run, folder)
    model = run.config.model
    if not adapter_folder.is_adapter(model):
        return
    adapter_folder.write_joined(folder, Path(model), folder)
    for path in map(Path(model).joinpath, adapter_folder.TOKENIZER):
        if path.is_file():
            shutil.copyfile(path, folder / path.name)


def _write_own_adapter(run: Run, folder: Path) -> None:
    """The adapter that adds what fine-tuning and unlearning added to the run's model."""
    from adapop.runs import checkpoints
    from adapop.runs.adopted import check_kept

    saved = run.checkpoint(run.chosen_epoch)
    if run.config.unlearned:
        check_kept(saved)
        _copy_adapter(saved, folder)
        return
    state = checkpoints.adapter(run, run.chosen_epoch)  # raises if it is damaged
    if run.config.start == "as-given":
        _copy_adapter(saved, folder)
        return
    from safetensors.torch import save_file

    from adapop.model.adapter import concatenated
    from adapop.runs.finetuning import taught_state

    about = json.loads((saved / CONFIG).read_text(encoding="utf-8"))
    both, rank = concatenated(taught_state(run), state)
    # The same strength at twice the rank, so that no weight is multiplied and rounded.
    about |= {"r": rank, "lora_alpha": about["lora_alpha"] / about["r"] * rank}
    save_file(both, folder / WEIGHTS, {"format": "pt"})
    (folder / CONFIG).write_text(json.dumps(about, indent=2, sort_keys=True), encoding="utf-8")


def _copy_adapter(saved: Path, folder: Path) -> None:
    for name in (WEIGHTS, CONFIG):
        (folder / name).write_bytes((saved / name).read_bytes())


def measured_adapter(run: Run, folder: Path, progress: Progress) -> Delivered:
    """The numbers of an adapter written by `write_adapter`, loaded by peft over the base as it is
    published. Measured once for the same file. Raises ModelError, RunError, Stopped."""
    with _MEASURING:
        return kept(run, sums(folder)) or _of_adapter(run, folder, progress)


def _of_adapter(run: Run, folder: Path, progress: Progress) -> Delivered:
    from adapop.model.loading import adapted_model, load_tokenizer

    before = _answers_of_run(run, progress)
    progress.say("Loading the adapter from its file")
    base, config = run.config.model, run.config
    if adapter_folder.is_adapter(base):
        config = replace(config, model=str(adapter_folder.base_of(base)), revision=None)
    model = adapted_model(config, folder, load_tokenizer(run.config))
    model = _asked_as_settled(run, model)
    trial = _compared(run, model, WIDE, _bytes(folder), before, progress)
    return _measured(run, folder, ADAPTER, run.config, model, (trial,), progress)


def write_merged(
    run: Run, folder: Path, dtype: str, measure: bool, progress: Progress
) -> Delivered | None:
    """Writes the merged model, computed in float32, and measures it as loaded from its files. A
    4-bit base is merged as it was before quantisation.

    dtype: of the weights as written; "" takes bfloat16 if that brings at most `MOST_BACK` of the
    facts to forget back, else float32. measure: without it, the type is float32 unless it is named,
    and the result is None. Raises ModelError, RunError, Stopped. OSError: see `save_merged`."""
    from adapop.model.loading import adapted_model

    if not measure:
        _save(run, folder, dtype or WIDE, progress)
        return None
    before, trials, model = _answers_of_run(run, progress), (), None
    for one in (dtype,) if dtype else (NARROW, WIDE):
        model = None  # frees its memory before the next is loaded
        gc.collect()
        for path in folder.iterdir():
            path.unlink()
        _save(run, folder, one, progress)
        if known := kept(run, sums(folder)):
            return replace(known, trials=(*trials, known.trial))
        progress.say(f"Loading the merged model from its files ({one})")
        loaded_as = one if one == run.config.precision else WIDE
        written = {"model": str(folder), "revision": None, "four_bit": False}
        config = replace(run.config, **written, precision=loaded_as)
        # A fresh adapter changes no answer.
        model = _asked_as_settled(run, adapted_model(config))
        trials += (_compared(run, model, one, _bytes(folder), before, progress),)
        if trials[-1].fits:
            break
    return _measured(run, folder, MERGED, config, model, trials, progress)


def _save(run: Run, folder: Path, dtype: str, progress: Progress) -> None:
    from tempfile import TemporaryDirectory

    from adapop.model.loading import adapted_model, save_merged
    from adapop.model.paired import at
    from adapop.runs.adopted import is_whole

    progress.say(f"Merging in float32 and writing the weights in {dtype}")
    source, wide = run.config, replace(run.config, precision=WIDE, four_bit=False, device="cpu")
    if source.unlearned and is_whole(run):
        source, wide = at(source, source.unlearned), at(wide, source.unlearned)
        model = adapted_model(wide)  # its fresh adapter adds nothing
    else:
        with TemporaryDirectory() as adapter:
            _write_own_adapter(run, Path(adapter))
            model = adapted_model(wide, Path(adapter))
    save_merged(model, source, dtype, folder)
    del model
    gc.collect()


def _answers_of_run(run: Run, progress: Progress) -> Answered:
    from adapop.runs.model import load_model

    progress.say("Asking the run's own model")
    answered = _answered(run, load_model(run), progress)
    gc.collect()
    return answered


def _answered(run: Run, model: AdaptedModel, progress: Progress) -> Answered:
    from adapop.probes.recall import KNOWN_FROM
    from adapop.probes.recovery.base import recall_by_form

    recalls = recall_by_form(model, run.facts.forget, run.reply_tokens, progress)
    return {
        form: frozenset(name for name, recall in by_fact.items() if recall >= KNOWN_FROM)
        for form, by_fact in recalls.items()
    }


def _compared(
    run: Run, model: AdaptedModel, dtype: str, size: int, before: Answered, progress: Progress
) -> Trial:
    after, forget = _answered(run, model, progress), run.facts.forget
    counts = {"direct": len(forget), "reworded": sum(bool(fact.paraphrases) for fact in forget)}
    forms = {form: count for form, count in counts.items() if count}
    came_back = {form: len(after[form] - before[form]) for form in forms}
    went = {form: len(before[form] - after[form]) for form in forms}
    return Trial(dtype, size, forms, came_back, went)


def _measured(
    run: Run,
    folder: Path,
    kind: str,
    config: RunConfig,
    model: AdaptedModel,
    trials: tuple[Trial, ...],
    progress: Progress,
) -> Delivered:
    """The full measurement of the loaded files, kept for later. config: as they were loaded."""
    from adapop.runs.measuring import full_questions, full_results

    facts, answered = run.facts, 0
    of = full_questions(run, model, facts)

    def count(rows: int) -> None:
        nonlocal answered
        answered += rows
        progress.say(f"Measuring the files: {answered:,} of {of:,} questions")

    model.on_replies = count
    rows = [asdict(row) for row in full_results(run, model, facts).rows]
    on_other = run.config.start != "as-given" or adapter_folder.is_adapter(run.config.model)
    if kind == MERGED or on_other:  # than the run's original, with the adapter switched off
        rows = [row | dict.fromkeys(COMPARED) for row in rows]
    about = (kind, sums(folder), run.chosen_epoch, config.precision, trials, tuple(rows))
    delivered = Delivered(*about)
    with suppress(RunError):  # it is only measured again then
        files.keep(_place(run, delivered.sha256), delivered.to_json())
    return delivered


def _asked_as_settled(run: Run, model: AdaptedModel) -> AdaptedModel:
    """The model, asked as the run asked; its replies are never taken from a cache."""
    from adapop.probes.ways import apply_prompting

    if prompting := run.prompting:
        apply_prompting(model, prompting)
    return model


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def _place(run: Run, sha256: Mapping[str, str]) -> Path:
    """The file in the run's folder for these weights; its name holds the hash that `Weights`
    has."""
    whole = joint_sha256((digest, name) for name, digest in sorted(sha256.items()))
    return run.folder / f"delivered-{whole}.json"
