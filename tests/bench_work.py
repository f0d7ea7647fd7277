"""Work for the engine's workers, who import it by name: quick things that fail, die and wait."""

import os
import signal
import time
from pathlib import Path


def doubled(item: int) -> tuple[int, int]:
    return 2 * item, os.getpid()


def fussy(item: int) -> int:
    if item == 2:
        raise ValueError("not this one")
    return item


def mortal(item: tuple[str, int]) -> str:
    """Its process is killed the first so many times that the item is begun. The folder remembers."""
    folder, deaths = item
    times = len(list(Path(folder).iterdir()))
    if times < deaths:
        (Path(folder) / str(times)).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"done after {times}"


def slow(item: int) -> int:
    time.sleep(1)
    return item


def temporary(item: int) -> str:
    import tempfile

    return tempfile.gettempdir()
