"""Work for the engine's workers, who import it by name: quick things that fail, die and wait."""

import os
import signal
import time


def doubled(item: int) -> tuple[int, int]:
    return 2 * item, os.getpid()


def fussy(item: int) -> int:
    if item == 2:
        raise ValueError("not this one")
    return item


def killed_at_three(item: int) -> int:
    if item == 3:
        time.sleep(1)  # after the first ones are done
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def slow(item: int) -> int:
    time.sleep(1)
    return item


def temporary(item: int) -> str:
    import tempfile

    return tempfile.gettempdir()
