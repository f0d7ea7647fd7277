"""A user's sets, in folders of their own beside the runs, under names that nobody can guess.

    ROOT/sets/NAME/facts.jsonl   the facts, with the scores as they were set
    ROOT/sets/NAME/sha256.txt    hashes of both, compared when they are read
    ROOT/sets/NAME/about.json    name, notes, tiers, and the rows of the upload that were dropped

A set is never changed in place: an edited set is saved under another name.
"""

import json
import os
import re
import secrets
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from adapop import sums
from adapop.errors import AdaPopError
from adapop.facts.fact import FactSet, Problem
from adapop.facts.tiers import ON_SCALE, Tiers
from adapop.remark import Remark
from adapop.runs import files

FOLDER = "sets"
NAME = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class _About:
    name: str
    notes: tuple[str | Remark, ...]
    problems: tuple[Problem, ...]
    tiers: Tiers | None = None


def save_set(facts: FactSet, root: Path) -> str:
    """Saves a set beside the runs. Returns its name, which cannot be guessed and is all that is
    needed to load it. Raises RunError: the set cannot be written."""
    name = secrets.token_hex(16)
    folder = root / FOLDER / name
    # Renamed when it is complete, so that nobody reads or deletes half a set.
    part = folder.with_name(f"{files.UNFINISHED}{name}")
    about = asdict(_About(facts.name, facts.notes, facts.problems, facts.tiers))
    with files.writing(folder):
        part.mkdir(parents=True)
        facts.write(part / "facts.jsonl")
        sums.record(part / "facts.jsonl")
        files.keep(part / "about.json", json.dumps(about, ensure_ascii=False))
        part.rename(folder)
    return name


def load_set(name: object, root: Path) -> FactSet | None:
    """The set with a name that a browser sent, its age renewed; None if unknown or unreadable."""
    folder = _folder(name, root)
    if folder is None:
        return None
    try:
        about = files.read_json(folder / "about.json", _About)
        sums.check(folder / "facts.jsonl")
        tiers = about.tiers or ON_SCALE
        facts = FactSet.load(folder / "facts.jsonl", about.name, about.notes, tiers)
        os.utime(folder / "about.json")
    except (OSError, ValueError, AdaPopError):  # deleted at this moment, or damaged
        return None
    return replace(facts, problems=about.problems)


def set_exists(name: object, root: Path) -> bool:
    """Whether a name that a browser sent is that of a set."""
    return _folder(name, root) is not None


def delete_set(name: object, root: Path) -> None:
    """Deletes the set with the name that a browser sent, if there is one."""
    if folder := _folder(name, root):
        shutil.rmtree(folder, ignore_errors=True)


def _folder(name: object, root: Path) -> Path | None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return None
    folder = root / FOLDER / name
    return folder if (folder / "about.json").exists() else None
