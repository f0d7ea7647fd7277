"""Model folders that are made once, into the cache: converted or merged, with SHA-256 sums.

A folder that is no longer as it was written is made again. No torch."""

import errno
import logging
import os
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

from filelock import FileLock

from adapop import sums
from adapop.errors import ModelError, truncated
from adapop.limits import is_public

log = logging.getLogger(__name__)


def made_once(folder: Path, model: str, done: str, write: Callable[[Path], None]) -> Path:
    """The folder, which `write` fills if it is missing or damaged: into a temporary folder beside
    it, which is renamed when it is complete. model: its name, for messages. done: what is done to
    it, "converted" or "merged". Raises ModelError: the cache has no room; and what `write` does."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{folder.name}.lock")):
            if not is_whole(folder, done):  # else another process was faster
                shutil.rmtree(folder, ignore_errors=True)
                _write_beside(folder, write)
    except Exception as error:
        number = errno_of(error)
        if number is None:  # not a failed system call
            raise
        where = "the cache" if is_public() else folder.parent
        full = number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        why = f"it cannot be {done} in {where} ({os.strerror(number)})"
        why = f"the disk of {where} is full" if full else why
        fix = "Make room, or set ADAPOP_CACHE to a folder on another disk."
        raise refused(model, why, fix) from error
    return folder


def is_whole(folder: Path, done: str) -> bool:
    """Whether a folder is there as it was written. Of a damaged one, the log says so."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    stats = [(path, path.stat()) for path in paths]
    files = tuple((path.name, about.st_size, about.st_mtime_ns) for path, about in stats)
    return bool(stats) and _checked(folder, done, files)


@cache
def _checked(folder: Path, done: str, files: tuple[tuple[str, int, int], ...]) -> bool:
    """Whether the files of a folder are those recorded. files: they, so that the gigabytes of a
    model are read once in a process, unless one has changed since."""
    try:
        sums.check_all(folder)
    except (OSError, sums.Changed) as error:
        log.warning("%s is damaged (%s) and is %s again.", folder, error, done)
        return False
    return True


def _write_beside(folder: Path, write: Callable[[Path], None]) -> None:
    target = folder.with_name(f"{folder.name}-aside")
    shutil.rmtree(target, ignore_errors=True)  # left by a process that was killed
    try:
        target.mkdir()
        write(target)
        sums.record_all(target)
        target.rename(folder)
    finally:
        shutil.rmtree(target, ignore_errors=True)


def errno_of(error: Exception) -> int | None:
    """The `errno` of a failed system call; None for any other error. safetensors and tokenizers,
    which are written in Rust, give it in the error's text alone."""
    if isinstance(error, OSError):
        return error.errno
    match = re.search(r"\(os error (\d+)\)", str(error))
    return int(match[1]) if match else None


def refused(name: str, why: str, fix: str) -> ModelError:
    """The error for a model that cannot be loaded."""
    return ModelError(f"The model {truncated(name)!r} cannot be loaded: {why}.", fix)
