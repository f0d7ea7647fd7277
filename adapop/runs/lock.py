"""One process at a time works on a run: an operating-system lock on a file of its folder.

The lock ends with its process. The file stays; its existence says nothing.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from adapop.errors import RunError
from adapop.runs.files import writing

try:
    import fcntl
except ImportError:  # not available on Windows
    fcntl = None

NAME = "lock"
QUEUED = "queued"  # held by the app in whose queue a run waits
# `is_held` shares the lock for a moment, so a process that wants it alone retries.
PATIENCE_SECONDS, RETRY_SECONDS = 1.0, 0.002


@contextmanager
def held(folder: Path, name: str = NAME) -> Iterator[None]:
    """A context that holds the run exclusively. name: `QUEUED` to queue it, else to work on it.
    Raises RunError: another process or thread holds it, or its folder cannot be written to."""
    path = folder / name
    # A generator may be closed by another thread than started it.
    lock = FileLock(path, thread_local=False)
    with writing(path):
        os.stat(folder)  # FileLock would make a folder that is gone anew
        try:
            lock.acquire(timeout=PATIENCE_SECONDS, poll_interval=RETRY_SECONDS)
        except Timeout:
            what = "queued" if name == QUEUED else "in use"
            fix = "Wait until it is done, or stop it there; then resume it here."
            raise RunError(f"Run {folder.name} is {what} by another process.", fix) from None
    try:
        yield
    finally:
        lock.release()


def is_held(folder: Path, name: str = NAME) -> bool:
    """Whether another thread or process of this machine works on the run now or, for `QUEUED`, has
    queued it. Concurrent checks are safe. False if the file cannot be read."""
    path = folder / name
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    # Windows and some file systems share no lock, or the file cannot be read.
    except (AttributeError, OSError):
        return _is_taken(path)
    return False


def _is_taken(path: Path) -> bool:
    """`is_held`, by taking the lock for a moment."""
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False
