"""Exports a run's model: the adapter for peft, or the merged model.

Both come with a model card. What is written is loaded again from its files and measured as the run
was, and the card shows these numbers with the SHA-256 of the files (`adapop.runs.delivered`).
"""

import secrets
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from safetensors import SafetensorError

from adapop.errors import ConfigError, RunError
from adapop.model import adapter_folder
from adapop.online.hub import Upload
from adapop.progress import Progress
from adapop.report.card import adapter_config, delivered_lines, model_card
from adapop.report.record import Record, read_record
from adapop.runs import delivered, files, lock
from adapop.runs.delivered import Delivered
from adapop.runs.run import Run

PART = ".part-"  # behind the name of a folder: what is being written of it


@dataclass(frozen=True)
class Model:
    """What leaves of a run, and how."""

    run: Run
    record: Record
    name: str
    """Of its folder, as the card loads it."""
    merged: bool = False
    push: str = ""
    """Its name on the Hub, if it is sent there."""
    dtype: str = ""
    measure: bool = True
    """This and the last two: see `export`. An adapter that was measured before always says so."""


@dataclass(frozen=True)
class Exported:
    """Path and checks of an export."""

    folder: Path
    """The folder with the exported files."""
    merged: bool
    """Whether they are a merged model, not an adapter."""
    delivered: Delivered | None = None
    """The numbers measured on the files; None if they were not measured."""
    address: str = ""
    """Its address on the Hub, "" if it was not sent there."""

    @property
    def asked(self) -> int:
        """Number of facts to forget that were asked of the files, 0 if they were not measured."""
        return self.delivered.trial.asked["direct"] if self.delivered else 0

    @property
    def differing(self) -> int:
        """Facts to forget, asked as trained, that are answered by the files or by the run's own
        model, but not by both."""
        trial = self.delivered and self.delivered.trial
        return trial.came_back["direct"] + trial.went["direct"] if trial else 0

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on the type of the weights, and on what came back and what went."""
        return delivered_lines(self.delivered, self.merged)


def export(
    run: Run,
    out: str | Path,
    merged: bool = False,
    push: str = "",
    progress: Progress | None = None,
    endpoint: str = "",
    dtype: str = "",
    measure: bool = True,
) -> Exported:
    """Writes the run's adapter or merged model to an empty folder, or as a whole to a new one.

    push: the name of a private repository on the Hub, "YOU/NAME". endpoint: replaces HF_ENDPOINT.
    dtype: of merged weights, "bfloat16", "float16" or "float32"; "" takes bfloat16 if hardly a fact
    comes back in it, else float32. measure: whether the files are loaded again and measured; if
    not, the card says so.
    Raises RunError: the run has saved no epoch, the folder is not empty, or it cannot be written.
    ModelError: the model cannot be loaded, or a weight is too large for the type. ConfigError:
    `push` is no valid name, or `dtype` no type of merged weights. NetworkError: the Hub refuses.
    Stopped: a stop was requested; nothing is left then. What a killed export to the same folder
    left beside it is deleted first."""
    out, progress = Path(out).absolute(), progress or Progress()  # "." has no name
    _check(run, out, merged, dtype)
    upload = Upload(push, endpoint or None) if push else None
    record = read_record(run)
    part = out.with_name(f"{out.name}{PART}{secrets.token_hex(4)}")
    whole = part / out.name
    try:
        _clear_abandoned(out)
        whole.mkdir(parents=True)
        with lock.held(part):
            model = Model(run, record, out.name, merged, push, dtype, measure)
            numbers = write_model(model, whole, progress)
            # A folder that exists stays, as a shell may stand in it.
            own = {path: out / path.name for path in whole.iterdir()}
            for path, place in (own if out.exists() else {whole: out}).items():
                files.move_into_place(path, place)
    except (OSError, NotImplementedError, SafetensorError) as error:  # or the disk has no locks
        message = f"{out} cannot be written ({error})."
        raise RunError(message, "Make room, or choose another place.") from error
    finally:
        files.clear(part)
    return Exported(out, merged, numbers, upload.send(out) if upload else "")


def _clear_abandoned(out: Path) -> None:
    """Deletes what exports to this folder left whose process was killed: its lock is free then."""
    for part in out.parent.glob(f"{escape(out.name)}{PART}*"):
        if (part / lock.NAME).is_file() and not lock.is_held(part):
            files.clear(part)


def _check(run: Run, out: Path, merged: bool, dtype: str) -> None:
    """Refuses what cannot be exported before anything is loaded."""
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        message = f"{out} exists and is not an empty folder."
        raise RunError(message, "Name a new folder: nothing is overwritten.")
    if not run.last_epoch:
        raise RunError(f"Run {run.id} has no checkpoint.", "Let it run on.")
    if lost := delivered.lost_adapter(run):
        message = f"The run began with an adapter's folder, {lost!r}, that is not there any more."
        raise RunError(message, f"Put it back as {run.config.model}.")
    if not merged and (why := delivered.why_no_adapter(run)):
        message = f"There is no adapter to export, because {why}."
        raise RunError(message, "Export the whole model (merged=True, --merged).")
    if dtype and not merged:
        fix = "Leave dtype out, or export the merged model."
        raise ConfigError("An adapter is written as it was trained, in float32.", fix)
    if dtype and dtype not in delivered.DTYPES:
        fix = f"Use {', '.join(delivered.DTYPES)}."
        raise ConfigError(f"Merged weights cannot be written as {dtype!r}.", fix)


def write_model(model: Model, folder: Path, progress: Progress) -> Delivered | None:
    """Writes a run's model to an empty folder, with its card and the numbers measured on it, if
    any. Raises as `export`, but OSError and SafetensorError where the folder cannot be written."""
    run, record = model.run, model.record
    if model.merged:
        numbers = delivered.write_merged(run, folder, model.dtype, model.measure, progress)
    else:
        delivered.write_adapter(run, folder)
        about = folder / adapter_folder.CONFIG
        about.write_text(adapter_config(about, record), encoding="utf-8")
        if model.measure:
            numbers = delivered.measured_adapter(run, folder, progress)
        else:
            numbers = delivered.kept(run, delivered.sums(folder))
    card = model_card(record, model.name, model.merged, numbers, model.push)
    (folder / "README.md").write_text(card, encoding="utf-8")
    if numbers:
        text = numbers.to_json() + "\n"
        (folder / delivered.MEASURED).write_text(text, encoding="utf-8")
    return numbers
