"""Atomic writes, which survive a kill or a power cut; checked reads; disk errors as messages.

New content is written under a temporary name, synced and renamed, then its folder is synced: a
final name on the disk always has complete content. What is read back is written by `keep`, with
its hash beside it, and compared when it is read (`adapop.sums`).
"""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TypeVar

from adapop import sums
from adapop.assets import as_kind, parse_json
from adapop.errors import RunError
from adapop.limits import is_public

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
NO_FOLDER = (errno.ENOTDIR, errno.EEXIST)
# Exceptions that a damaged file may cause.
DAMAGE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
UNREAD = (OSError, *DAMAGE)
UNFINISHED = "writing-"  # begins the name of what is not yet complete
PUT_BACK = "Put the file back, or delete the run and start it again."
T = TypeVar("T")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns an OSError raised inside into a RunError with the reason and a fix. Raises RunError:
    the disk is full, the folder is read-only or gone, or the disk failed."""
    try:
        yield
    except OSError as error:
        raise refused(path, error.errno or 0) from error


@contextmanager
def reading(path: Path, fix: str = PUT_BACK) -> Iterator[None]:
    """A context that turns errors of a missing or damaged file into a RunError with its name."""
    try:
        yield
    except UNREAD as error:
        reason = error.strerror if isinstance(error, OSError) else None
        reason = str(error) if isinstance(error, sums.Changed) else reason
        reason = reason or f"{type(error).__name__}: {error}"
        raise RunError(f"{path} is damaged or missing ({reason}).", fix) from error


def check_kinds(folder: Path) -> None:
    """Raises RunError: a folder holds a pipe, socket or device, on which reading may hang."""
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            with suppress(OSError):  # reported where the file is read
                if not (S_ISREG(mode := path.stat().st_mode) or S_ISDIR(mode)):
                    raise RunError(f"{path} is not a file.", "Delete it, or put the file back.")


def read_json(path: Path, kind: type[T]) -> T:
    """A kept file of JSON, checked by `adapop.assets.as_kind`. Raises RunError: it is damaged."""
    with reading(path):
        return as_kind(parse_json(sums.checked(path)), kind)


def refused(path: Path, number: int) -> RunError:
    """The error for a path not written, by its `errno`. A public page hides the full path."""
    path = Path("the folder of the runs", path.name) if is_public() else path
    if number in FULL:
        fix = "Free some space, then resume the run."
        return RunError(f"The disk is full: {path} could not be written.", fix)
    if number in DENIED:
        fix = "Make the folder writable, or choose another one with ADAPOP_RUNS."
        return RunError(f"{path.parent} cannot be written to ({os.strerror(number)}).", fix)
    if number in NO_FOLDER:
        fix = "Move what lies there, or choose another one with ADAPOP_RUNS."
        return RunError(f"{path.parent} is not a folder.", fix)
    if number == errno.ENOENT:
        return RunError(f"{path.parent} is gone.", "Start the run again.")
    fix = "Check the disk, then resume the run."
    return RunError(f"{path} could not be written ({os.strerror(number)}).", fix)


def keep(path: Path, content: str | bytes) -> None:
    """Writes or replaces a file that is read back, with its hash beside it. Raises RunError: see
    `writing`; an old file is then unchanged."""
    content = content.encode("utf-8") if isinstance(content, str) else content
    with writing(path):
        sums.record(path, content)  # first: the file never stands without its hash
    write_bytes(path, content)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Writes or replaces a file. Of two writers at once the last one wins. Raises RunError:
    see `writing`; an old file is then unchanged."""
    part = path.with_name(f"{UNFINISHED}{path.name}-{secrets.token_hex(4)}")
    with writing(path):
        try:
            part.write_bytes(content)
            sync(part)
            os.replace(part, path)
        except OSError:
            part.unlink(missing_ok=True)  # half a file would only take up space
            raise
        sync(path.parent)


def move_into_place(part: Path, folder: Path) -> None:
    """Renames a finished folder to its final name, which must be free. Never deletes anything."""
    for path in part.rglob("*"):
        sync(path)
    sync(part)
    os.replace(part, folder)
    sync(folder.parent)


def clear(folder: Path) -> None:
    """Deletes the remains of a failed attempt to write a folder."""
    if folder.exists():
        shutil.rmtree(folder)


def sync(path: Path) -> None:
    """Forces a file, or the names in a folder, to the disk."""
    if path.is_dir() and os.name == "nt":
        return  # Windows keeps names with their files
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # File systems that cannot sync a folder say EINVAL.
        if not (path.is_dir() and error.errno == errno.EINVAL):
            raise
    finally:
        os.close(descriptor)


def append(path: Path, line: str, synced: bool = True) -> None:
    """Adds a line of JSON, with its own hash, after the last complete line of a log. synced:
    whether it is on the disk when this returns. Raises RunError: see `writing`; an incomplete line
    is ignored later."""
    with writing(path):
        cut_torn_line(path)
        with open(path, "a", encoding="utf-8") as log:
            log.write(f"{sums.sealed(line)}\n")
        if synced:
            sync(path)


def cut_torn_line(path: Path) -> None:
    """Cuts off an incomplete last line, which a process that died left behind."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with open(path, "rb+") as log:
        log.seek(-1, os.SEEK_END)
        if log.read(1) != b"\n":
            log.truncate(path.read_bytes().rfind(b"\n") + 1)
