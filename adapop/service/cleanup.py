"""Deletes old runs and saved sets and, if the disk fills, the oldest of them.

The age of a folder is that of its newest file. Folders are first hidden by renaming, then deleted,
so that a reader sees a folder complete or not at all.
"""

import logging
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path

from adapop import limits
from adapop.errors import RunError
from adapop.runs import files
from adapop.runs.lock import QUEUED, held, is_held
from adapop.runs.run import RUN_ID, Run
from adapop.service import links, saved_sets

HIDDEN = ".deleting"
WRITING_SECONDS = 3600.0  # no set takes longer to be written
CLEAN_AT_MOST_EVERY, CLEANINGS_A_LIFE = 600.0, 12
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OnDisk:
    """A run or a saved set on disk. changed: seconds since 1970, of its newest file. bytes: of all
    its files."""

    folder: Path
    changed: float
    bytes: int


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder; 0 if it is gone."""
    entry = _entry(folder)
    return entry.bytes if entry else 0


def entries(root: Path) -> list[OnDisk]:
    """Runs and saved sets under the root, the oldest first."""
    folders = [folder for folder in _folders(root) if RUN_ID.fullmatch(folder.name)]
    folders += [folder for folder in _folders(root / saved_sets.FOLDER) if _is_a_set(folder)]
    measured = filter(None, map(_entry, folders))
    return sorted(measured, key=lambda entry: entry.changed)


def keep_clean(root: Path) -> None:
    """Starts a thread that deletes what exceeds the limits of age and size, if there are any.
    Raises ConfigError: one is invalid."""
    seconds, most = limits.keep_seconds(), limits.keep_bytes()
    every = min(CLEAN_AT_MOST_EVERY, (seconds or inf) / CLEANINGS_A_LIFE)

    def clean_for_ever() -> None:
        while True:
            time.sleep(every)
            try:
                clean(root, seconds, most)
            except Exception:  # whatever went wrong, the next cleaning must come
                log.exception("old runs could not be deleted")

    if seconds or most:
        threading.Thread(target=clean_for_ever, daemon=True).start()


def clean(root: Path, seconds: float | None, most: float | None) -> None:
    """Deletes what `overdue` chooses, except runs queued since."""
    for folder in overdue(root, seconds, most):
        _hide_unused(folder, root)
    delete_hidden(root)
    links.delete_dead(root)


def overdue(root: Path, seconds: float | None, most: float | None) -> list[Path]:
    """The folders to delete. seconds: the allowed age; most: the allowed total bytes; None: no
    limit. Runs that are queued or active, in any app, stay."""
    folders = entries(root)
    oldest = -1.0 if seconds is None else time.time() - seconds
    free = [entry for entry in folders if not in_use(entry.folder)]
    chosen = [entry for entry in free if entry.changed < oldest]
    left = [entry for entry in free if entry.changed >= oldest]
    bytes_used = sum(entry.bytes for entry in folders) - sum(entry.bytes for entry in chosen)
    for entry in left:
        if most is None or bytes_used <= most:
            break
        chosen.append(entry)
        bytes_used -= entry.bytes
    return [entry.folder for entry in chosen]


def delete_run(run: Run, root: Path) -> None:
    """Deletes a run and its link for good. Raises RunError: it is active or queued."""
    if not _hide_unused(run.folder, root):
        raise RunError("This run is under way.", "Stop it first, then delete it.")
    delete_hidden(root)
    links.delete_dead(root)


def _hide_unused(folder: Path, root: Path) -> bool:
    """Hides a folder unless a run there is queued or active. Returns whether it was hidden."""
    try:
        with held(folder, QUEUED):  # nobody can queue it before it is hidden
            if is_held(folder):
                return False
            hide(folder, root)
    except RunError:  # it is queued, or a full disk has no room for the lock
        if in_use(folder):
            return False
        hide(folder, root)
    return True


def hide(folder: Path, root: Path) -> None:
    """Moves a folder to a place that readers ignore. The folder may already be gone."""
    try:
        (root / HIDDEN).mkdir(exist_ok=True)
        folder.rename(root / HIDDEN / folder.name)
    except OSError:  # it is gone, or a full disk has no room for that place
        files.clear(folder)


def delete_hidden(root: Path) -> None:
    """Deletes hidden folders, also those left by a process that died."""
    shutil.rmtree(root / HIDDEN, ignore_errors=True)


def in_use(folder: Path) -> bool:
    """Whether a run is active or queued, here or in another process of this machine."""
    return is_held(folder) or is_held(folder, QUEUED)


def _folders(parent: Path) -> Iterator[Path]:
    if parent.is_dir():
        yield from (path for path in parent.iterdir() if path.is_dir() and not path.is_symlink())


def _is_a_set(folder: Path) -> bool:
    """Also one whose writing ended in the middle, long ago; not one that is being written."""
    name = folder.name.removeprefix(files.UNFINISHED)
    if not saved_sets.NAME.fullmatch(name):
        return False
    return name == folder.name or folder.stat().st_mtime < time.time() - WRITING_SECONDS


def _entry(folder: Path) -> OnDisk | None:
    """The folder's size and newest date, its own if it has no files; None if it cannot be read."""
    try:
        own = folder.stat()
        stats = [path.stat() for path in folder.rglob("*") if path.is_file()]
    except OSError:  # an unreadable folder must not keep the others
        return None
    changed = max(file.st_mtime for file in stats or [own])
    return OnDisk(folder, changed, sum(file.st_size for file in stats))
