"""The progress of long work, and a way to stop it: shared by the working and the watching
thread."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from adapop.errors import Stopped

Result = TypeVar("Result")


class Progress:
    """A line of text that the worker sets and others read, and a stop that interrupts every wait.

    report: called with each new line, in the worker's thread.
    """

    def __init__(self, report: Callable[[str], None] | None = None) -> None:
        self.text = ""
        self._report = report
        self._stop = threading.Event()

    def say(self, text: str) -> None:
        """Sets the line and reports it. Raises Stopped: a stop was requested."""
        self.text = text
        if self._report:
            self._report(text)
        self.wait(0)

    def stop(self) -> None:
        """Asks the worker to stop at its next step or wait."""
        self._stop.set()

    def wait(self, seconds: float) -> None:
        """Waits for the time given. Raises Stopped as soon as a stop is requested."""
        if self._stop.wait(seconds) if seconds else self._stop.is_set():
            raise Stopped("Stopped.", "What was found is kept; start it again to go on.")


def started(work: Callable[[Progress], Result]) -> tuple[Future[Result], Progress]:
    """Starts work in a thread of its own. Returns its future and its progress."""
    future: Future[Result] = Future()
    progress = Progress()

    def run() -> None:
        try:
            future.set_result(work(progress))
        except BaseException as error:  # noqa: BLE001  a waiting thread would else wait for ever
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="look-up").start()
    return future, progress
