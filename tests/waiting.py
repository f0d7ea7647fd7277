"""Waiting for what another thread or process does."""

import time

from adapop.progress import Progress

PATIENCE_SECONDS = 120


def wait_until(condition):
    """What the condition gives, once that is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline, "the worker took too long"
        time.sleep(0.05)
    return value


class Hurried(Progress):
    """Waits for nothing."""

    def wait(self, seconds: float) -> None:
        super().wait(0)
