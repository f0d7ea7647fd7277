"""One process at a time works on a run: a lock of the operating system on a file of its folder.

It dies with its process. The file stays and says nothing; only holding it counts.
"""

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
QUEUED = "queued"  # held meanwhile by the app in whose line a run waits
# who only looks shares the lock for an instant: who wants it alone tries until it hits a gap
PATIENCE_SECONDS, RETRY_SECONDS = 1.0, 0.002


@contextmanager
def held(folder: Path, name: str = NAME) -> Iterator[None]:
    """Inside, the run is the caller's alone. name: `QUEUED` to queue it, else to work on it. Raises
    RunError: another process or thread does so, or its folder cannot be written to."""
    path = folder / name
    # a generator may be closed by another thread than began it
    lock = FileLock(path, thread_local=False)
    with writing(path):
        try:
            lock.acquire(timeout=PATIENCE_SECONDS, poll_interval=RETRY_SECONDS)
        except Timeout:
            what = "queued" if name == QUEUED else "being worked on"
            fix = "Wait until it is done, or stop it there; then resume it here."
            raise RunError(f"Run {folder.name} is {what} by another process.", fix) from None
    try:
        yield
    finally:
        lock.release()


def is_held(folder: Path, name: str = NAME) -> bool:
    """Whether somebody works on the run now (or, of `QUEUED`, has queued it), here or in another
    process of this machine. Any number may look at once. False where the file cannot be read."""
    path = folder / name
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    # Windows and some file systems share no lock; or it cannot be read
    except (AttributeError, OSError):
        return _is_taken(path)
    return False


def _is_taken(path: Path) -> bool:
    """The same, by taking it for an instant."""
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False
