"""Exports a run's model: the adapter for peft, or the merged model.

Both come with a model card. Merged weights are read back from the disk, and their answers are
compared with the adapter's, because in bfloat16 some differ.
"""

import gc
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from safetensors import SafetensorError

from adapop.errors import ConfigError, RunError
from adapop.online.hub import Upload
from adapop.progress import Progress
from adapop.report.archive import WEIGHTS
from adapop.report.card import ADAPTER_NAME, adapter_config, model_card
from adapop.report.record import Record, read_record
from adapop.runs import files
from adapop.runs.run import Run

ASKED = 200  # maximum number of questions for comparing merged and unmerged weights


@dataclass(frozen=True)
class Exported:
    """Path and checks of an export."""

    folder: Path
    """The folder with the exported files."""
    asked: int = 0
    """Number of questions asked of the merged weights, 0 for an adapter."""
    differing: int = 0
    """How many answers differ from those before the merge."""
    address: str = ""
    """Its address on the Hub, "" if it was not sent there."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """A sentence on how many answers differ after the merge; empty for an adapter."""
        if not self.asked:
            return ()
        percent = 100 * self.differing / self.asked
        answers = f"{self.differing} of {self.asked} answers ({percent:.1f} %)"
        merged = "With the adapter merged into the weights"
        return (f"{merged}, {answers} differ from those with the adapter unmerged.",)


def export(
    run: Run,
    out: Path,
    merged: bool = False,
    push: str = "",
    progress: Progress | None = None,
    endpoint: str = "",
) -> Exported:
    """Writes the run's adapter or merged model to an empty folder, or as a whole to a new one.

    push: the name of a private repository on the Hub, "YOU/NAME". endpoint: replaces HF_ENDPOINT.
    Raises RunError: the run has saved no epoch, the folder is not empty, or it cannot be written.
    ModelError: the model cannot be loaded. ConfigError: `push` is no valid name, or the adapter of
    a fine-tuned model was asked for. NetworkError: the Hub refuses."""
    out, progress = out.absolute(), progress or Progress()  # "." has no name
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        message = f"{out} exists and is not an empty folder."
        raise RunError(message, "Name a new folder: nothing is overwritten.")
    if not run.last_epoch:
        raise RunError(f"Run {run.id} has no checkpoint.", "Let it run on.")
    upload = Upload(push, endpoint or None) if push else None
    record = read_record(run)
    part = out.with_name(f"{out.name}.part-{secrets.token_hex(4)}")
    try:
        part.mkdir(parents=True)
        exported = _merged(run, part, progress) if merged else _adapter(run, record, part)
        exported = replace(exported, folder=out)
        card = model_card(record, out.name, merged, exported.remarks, push)
        (part / "README.md").write_text(card, encoding="utf-8")
        # A folder that exists stays, as a shell may stand in it.
        moved = {path: out / path.name for path in part.iterdir()} if out.exists() else {part: out}
        for path, place in moved.items():
            files.move_into_place(path, place)
    except (OSError, SafetensorError) as error:
        message = f"{out} cannot be written ({error})."
        raise RunError(message, "Make room, or choose another place.") from error
    finally:
        files.clear(part)
    return replace(exported, address=upload.send(out)) if upload else exported


def _adapter(run: Run, record: Record, folder: Path) -> Exported:
    from adapop.runs import checkpoints

    if run.config.start == "sft":
        message = "This adapter belongs to a fine-tuned model that is not saved as a file."
        raise ConfigError(message, "Export the merged model.")
    checkpoints.adapter(run, run.chosen_epoch)  # raises if it is damaged
    saved = run.checkpoint(run.chosen_epoch)
    (folder / WEIGHTS).write_bytes((saved / WEIGHTS).read_bytes())
    text = adapter_config(saved / ADAPTER_NAME, record)
    (folder / ADAPTER_NAME).write_text(text, encoding="utf-8")
    return Exported(folder)


def _merged(run: Run, folder: Path, progress: Progress) -> Exported:
    """Saves merged weights. A 4-bit base is merged as it was before quantisation."""
    from adapop.model.loading import adapted_model
    from adapop.model.merged import save_merged
    from adapop.runs.execute import load_model, prompt_as_settled

    config, questions = run.config, _questions(run)
    progress.say("Asking the model as it is")
    model = load_model(run)
    before = model.generate(questions, run.reply_tokens)
    if config.four_bit:
        del model
        gc.collect()
        model = adapted_model(replace(config, four_bit=False), run.checkpoint(run.chosen_epoch))
    progress.say("Merging and writing the weights")
    save_merged(model, config, folder)
    del model
    gc.collect()
    progress.say("Asking the merged model, as it was written")
    # A fresh adapter changes no answer.
    again = adapted_model(replace(config, model=str(folder), revision=None, four_bit=False))
    prompt_as_settled(run, again)
    after = again.generate(questions, run.reply_tokens)
    return Exported(folder, len(questions), sum(one != other for one, other in zip(before, after)))


def _questions(run: Run) -> Sequence[str]:
    """Questions sampled evenly from every group."""
    facts = run.facts
    every = [fact.question for fact in (*facts.forget, *facts.retain, *facts.holdout)]
    return every[:: -(-len(every) // ASKED)]
