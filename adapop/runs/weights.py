"""Which weights a run began with: the Hub's commit, and a hash that `sha256sum` also gives.

Written to the run's folder when its model is first loaded; older runs have none. No torch."""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError

from adapop.config.run import RunConfig
from adapop.errors import RunError
from adapop.model import adapter_folder
from adapop.model.converted import file_sha256, files_of, is_gguf, joint_sha256, sha256_of
from adapop.paths import SHIPPED, split_revision
from adapop.runs import files
from adapop.runs.run import Run

FILE, ORACLE = "model.json", "oracle.json"
COMMIT = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True)
class Weights:
    """commit: of the Hub's repository, "" for a folder. sha256: of model.safetensors; of a model in
    several files, of the lines of `sha256sum *.safetensors`; of a GGUF file, its own; of an
    adapter's folder, of base and adapter: see `adapter_folder.weights_sha256`."""

    commit: str
    sha256: str


def keep_weights(run: Run) -> None:
    """Records the weights of the run's model and of its oracle, once, if their files are still
    there. May raise RunError."""
    for name, (model, revision) in _sources(run.config).items():
        if not (run.folder / name).exists() and (weights := weights_at(model, revision)):
            files.keep(run.folder / name, json.dumps(asdict(weights)))


def weights_of(run: Run, name: str = FILE) -> Weights | None:
    """The recorded source of the model; None if unknown. name: the file. Raises RunError: it is
    damaged."""
    path = run.folder / name
    return files.read_json(path, Weights) if path.exists() else None


def check_weights(run: Run) -> None:
    """Checks that a run's model, and its oracle, have the weights they had at first, if known.
    Raises RunError."""
    for name, (model, revision) in _sources(run.config).items():
        compare(run, weights_of(run, name), model, revision)


def compare(run: Run, then: Weights | None, model: str, revision: str | None) -> None:
    """Raises RunError: a model has other weights than it had then. Unknown ones are skipped."""
    now = weights_at(model, revision) if then else None
    if now and then.sha256 != now.sha256:
        change = f"(SHA-256 {then.sha256[:12]}… → {now.sha256[:12]}…)"
        reason = f"Run {run.id} began with other weights than {model} has now {change}."
        raise RunError(reason, "Put the model back as it was, or start a new run with the new one.")


def _sources(config: RunConfig) -> dict[str, tuple[str, str | None]]:
    """File in the run's folder -> the model whose weights it records, and its revision."""
    oracle = {ORACLE: split_revision(config.oracle)} if config.oracle else {}
    return {FILE: (config.model, config.revision), **oracle}


def weights_at(model: str, revision: str | None) -> Weights | None:
    """The weights that a model has now; None if its files are not here."""
    folder = SHIPPED.get(model, Path(model))
    try:
        if is_gguf(model):
            return Weights("", sha256_of(files_of(model)))
        if adapter_folder.is_adapter(model):
            return Weights("", adapter_folder.weights_sha256(model))
        if not folder.is_dir():  # from the Hub and just loaded, so the cache has it
            where = {"revision": revision, "local_files_only": True}
            folder = Path(snapshot_download(model, **where))
    except (OSError, HfHubHTTPError, HFValidationError):
        return None
    hashes = [(file_sha256(path), path.name) for path in sorted(folder.glob("*.safetensors"))]
    if not hashes:
        return None
    commit = name if COMMIT.fullmatch(name := folder.resolve().name) else ""
    return Weights(commit, joint_sha256(hashes))
