"""One process at a time works on a run: a lock of the operating system on a file of its folder.

It dies with its process, whatever kills that. The file stays and says nothing; only holding it counts.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from adapop.errors import RunError
from adapop.runs.files import writing

NAME = "lock"
PATIENCE_SECONDS = 1.0  # who only looks whether it is held, holds it for an instant


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Inside, the run is the caller's alone.

    Raises:
        RunError: another process, or another thread of this one, works on it; or its folder cannot be written to.
    """
    path = folder / NAME
    lock = FileLock(path, thread_local=False)  # a generator may be closed by another thread than began it
    with writing(path):
        try:
            lock.acquire(timeout=PATIENCE_SECONDS)
        except Timeout:
            raise RunError(
                f"Run {folder.name} is being worked on by another process.",
                "Wait until it is done, or stop it there; then resume it here.",
            ) from None
    try:
        yield
    finally:
        lock.release()


def is_held(folder: Path) -> bool:
    """Whether somebody works on the run now, here or in another process of this machine. False where its file cannot
    be opened for writing: then nobody with our rights could work on it either."""
    path = folder / NAME
    if not os.path.exists(path):  # unlike Path.exists, false where nobody may look
        return False
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False
