"""A run's checkpoint of an epoch: adapter (as peft writes it), optimiser, controller row and retain average."""

import errno
import hashlib
import json
import re
from dataclasses import asdict, fields
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from adapop.errors import RunError
from adapop.model.adapted import AdaptedModel
from adapop.runs import files
from adapop.runs.run import Run
from adapop.training.controller import Drift
from adapop.training.trainer import TrainerState

SUMS = "sha256"  # in the state: what the other two files must hash to; older runs have none
ADAPTER, OPTIMIZER, STATE = "adapter_model.safetensors", "optimizer.safetensors", "state.json"


def save(run: Run, epoch: int, model: AdaptedModel, state: TrainerState) -> None:
    """Writes a checkpoint aside, forces it to the disk, and gives it its name: it is there whole or not at all.

    Raises:
        RunError: the disk is full, or refuses otherwise; nothing half-written stays.
    """
    aside, folder = run.folder / f"writing-{epoch}", run.checkpoint(epoch)
    with files.writing(folder):
        files.clear(aside)
        try:
            _write(aside, model, state)
            files.place(aside, folder)
        except (OSError, SafetensorError) as error:
            files.clear(aside)
            raise error if isinstance(error, OSError) else files.refused(folder, _number(error)) from error


def adapter(run: Run, epoch: int) -> dict[str, Tensor]:
    """The adapter's weights by name.

    Raises:
        RunError: the file is damaged or missing, or not the one that was saved.
    """
    return _tensors(run.checkpoint(epoch), ADAPTER)


def trainer_state(run: Run, epoch: int) -> TrainerState:
    """What training goes on from, with the adapter.

    Raises:
        RunError: a file is damaged or missing.
    """
    folder = run.checkpoint(epoch)
    try:
        content = json.loads((folder / STATE).read_text(encoding="utf-8"))
        drift = Drift(**{item.name: content["drift"][item.name] for item in fields(Drift)})
        return TrainerState(drift, content["ema"], _tensors(folder, OPTIMIZER))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(folder, STATE, error) from error


def damaged(folder: Path, name: str, error: Exception) -> RunError:
    """The error for a checkpoint of which a file does not read."""
    return RunError(
        f"The checkpoint {folder} cannot be read: {name} is damaged or missing ({error}).",
        "Delete this folder and resume: the run goes on from the epoch before.",
    )


def _write(folder: Path, model: AdaptedModel, state: TrainerState) -> None:
    model.save_adapter(folder)
    save_file(state.optimizer, folder / OPTIMIZER)
    sums = {name: _sum(folder / name) for name in (ADAPTER, OPTIMIZER)}
    content = {"drift": asdict(state.drift), "ema": state.ema, SUMS: sums}
    (folder / STATE).write_text(json.dumps(content), encoding="utf-8")


def _tensors(folder: Path, name: str) -> dict[str, Tensor]:
    try:
        tensors = load_file(folder / name)
        _check(folder, name, tensors)
    except (OSError, SafetensorError, ValueError) as error:
        raise damaged(folder, name, error) from error
    return tensors


def _check(folder: Path, name: str, tensors: dict[str, Tensor]) -> None:
    """Raises:
    ValueError: a file that reads is not what was saved: peft would put up with an adapter that lacks weights.
    """
    if not tensors:
        raise ValueError("it holds no tensor")
    if unsound := [key for key, tensor in tensors.items() if not bool(tensor.isfinite().all())]:
        raise ValueError(f"{unsound[0]} is not finite")
    saved = _sums(folder)
    if name in saved and saved[name] != _sum(folder / name):
        raise ValueError("it is not the file that was saved")


def _sums(folder: Path) -> dict[str, str]:
    """What the state says of the files beside it; nothing where it does not read, which `trainer_state` says."""
    try:
        return dict(json.loads((folder / STATE).read_text(encoding="utf-8")).get(SUMS, {}))
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _sum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _number(error: SafetensorError) -> int:
    """Which `errno` stopped the writing; safetensors says so in words only."""
    found = re.search(r"os error (\d+)", str(error))
    return int(found.group(1)) if found else errno.EIO
