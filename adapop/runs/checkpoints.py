"""A run's checkpoint of an epoch: peft's adapter, optimiser, controller and retain average."""

import errno
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from adapop import sums
from adapop.assets import as_kind, parse_json
from adapop.errors import RunError
from adapop.model.adapted import AdaptedModel
from adapop.model.adapter_folder import CONFIG, WEIGHTS
from adapop.model.converted import errno_of
from adapop.runs import files
from adapop.runs.run import Run
from adapop.runs.weights import Weights, weights_of
from adapop.training.controller import Drift
from adapop.training.trainer import TrainerState

OPTIMIZER, STATE = "optimizer.safetensors", "state.json"
ANEW = "this folder and those of later epochs, and resume: the run goes on from the epoch before."


@dataclass(frozen=True)
class _State:
    """The file state.json. model: SHA-256 of the base weights that the adapter belongs to, ""
    if unknown."""

    drift: Drift
    ema: float | None
    model: str = ""


@dataclass(frozen=True)
class _Adapter:
    """The fields of adapter_config.json that determine the adapter's size and strength."""

    r: int
    lora_alpha: float


def save(run: Run, epoch: int, model: AdaptedModel, state: TrainerState) -> None:
    """Writes a checkpoint under a temporary name, syncs it and renames it, so that it is always
    complete. Raises RunError: it cannot be written; incomplete files are removed."""
    part, folder = run.folder / f"{files.UNFINISHED}{epoch}", run.checkpoint(epoch)
    with files.writing(folder):
        files.clear(part)
        try:
            _write(part, model, state, weights_of(run))
            files.move_into_place(part, folder)
        except (OSError, SafetensorError) as error:
            files.clear(part)
            if isinstance(error, OSError):
                raise
            raise files.refused(folder, errno_of(error) or errno.EIO) from error


def adapter(run: Run, epoch: int) -> dict[str, Tensor]:
    """The adapter's weights by name. Raises RunError: the file is missing, damaged or another one
    than was saved, or its rank, alpha or base model differ from the run's."""
    folder = run.checkpoint(epoch)
    tensors = _tensors(folder, WEIGHTS)
    _check_fit(run, epoch, tensors)
    return tensors


def trainer_state(run: Run, epoch: int) -> TrainerState:
    """The state that training continues from. Raises RunError: a file cannot be read."""
    folder = run.checkpoint(epoch)
    state = _state(folder)
    if state.drift.epoch != epoch:
        raise _another(folder, [_of_epoch(state)])
    return TrainerState(state.drift, state.ema, _tensors(folder, OPTIMIZER))


def damaged(folder: Path, name: str, error: Exception) -> RunError:
    reason = f"The checkpoint {folder} cannot be read: {name} is damaged or missing ({error})."
    return RunError(reason, f"Delete {ANEW}")


def _write(folder: Path, model: AdaptedModel, state: TrainerState, weights: Weights | None) -> None:
    model.save_adapter(folder)
    # peft keeps layer names as sets: sorted, so that equal adapters have equal bytes
    about = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    if isinstance(about["target_modules"], list):
        about["target_modules"].sort()
    (folder / CONFIG).write_text(json.dumps(about, indent=2, sort_keys=True), encoding="utf-8")
    save_file(state.optimizer, folder / OPTIMIZER)
    content = _State(state.drift, state.ema, weights.sha256 if weights else "")
    (folder / STATE).write_text(json.dumps(asdict(content)), encoding="utf-8")
    sums.record_all(folder)


def _state(folder: Path) -> _State:
    try:
        return as_kind(parse_json(sums.checked(folder / STATE)), _State, "ignore")
    except files.UNREAD as error:
        raise damaged(folder, STATE, error) from error


def _check_fit(run: Run, epoch: int, tensors: dict[str, Tensor]) -> None:
    folder = run.checkpoint(epoch)
    try:
        about = as_kind(parse_json(sums.checked(folder / CONFIG)), _Adapter, "ignore")
    except files.UNREAD as error:
        raise damaged(folder, CONFIG, error) from error
    config = run.config
    ranks = (tensor.shape[0] for key, tensor in tensors.items() if "lora_A" in key)
    checks = (
        ("lora_alpha", about.lora_alpha, config.lora_alpha),
        (f"the rank in {CONFIG}", about.r, config.lora_rank),
        (f"the rank in {WEIGHTS}", next(ranks, about.r), config.lora_rank),
    )
    wrong = [f"{name} is {x:g}, the run's is {own:g}" for name, x, own in checks if x != own]
    base, saved = weights_of(run), _state(folder)
    if base and saved.model not in ("", base.sha256):
        wrong.append("it was trained on another base model")
    if saved.drift.epoch != epoch:
        wrong.append(_of_epoch(saved))
    if wrong:
        raise _another(folder, wrong)


def _of_epoch(state: _State) -> str:
    return f"it is of epoch {state.drift.epoch}, so folders were swapped"


def _another(folder: Path, reasons: list[str]) -> RunError:
    fix = f"Put its files back as they were, or delete {ANEW}"
    return RunError(f"The checkpoint {folder} is not this run's: {'; '.join(reasons)}.", fix)


def _tensors(folder: Path, name: str) -> dict[str, Tensor]:
    """The tensors of a file, checked to be those that were saved: peft accepts missing weights."""
    try:
        tensors = load_file(folder / name)
        if not tensors:
            raise ValueError("it holds no tensor")
        if unsound := [key for key, tensor in tensors.items() if not tensor.isfinite().all()]:
            raise ValueError(f"{unsound[0]} is not finite")
        sums.check(folder / name)
    except (OSError, SafetensorError, ValueError) as error:
        raise damaged(folder, name, error) from error
    return tensors
