"""What a long look-up is doing, and the wish to stop it: shared by the thread that works and the one that watches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from adapop.errors import AdaPopError, Stopped

Result = TypeVar("Result")
log = logging.getLogger(__name__)


class Progress:
    """One line of text that the worker sets and anybody reads, and a stop that interrupts every wait.

    told: called with each new line, in the worker's thread.
    """

    def __init__(self, told: Callable[[str], None] | None = None) -> None:
        self.text = ""
        self._told = told
        self._stop = threading.Event()

    def say(self, text: str) -> None:
        """Sets the line.

        Raises:
            Stopped: somebody asked to stop.
        """
        self.text = text
        if self._told:
            self._told(text)
        self.wait(0)

    def stop(self) -> None:
        """Asks the worker to stop at its next step or wait."""
        self._stop.set()

    def wait(self, seconds: float) -> None:
        """Waits, unless and until somebody asks to stop.

        Raises:
            Stopped: somebody asked to stop.
        """
        if self._stop.wait(seconds) if seconds else self._stop.is_set():
            raise Stopped("Stopped.", "What was found is kept; start it again to go on.")


class Task(Generic[Result]):
    """A function at work in a thread of its own, so that a page can watch it and stop it.

    result: what it returned, None before the end. error: why it ended early, None if it did not.
    """

    def __init__(self, work: Callable[[Progress], Result]) -> None:
        self.progress = Progress()
        self.result: Result | None = None
        self.error: AdaPopError | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True, name="look-up")
        self._thread.start()

    def stop(self) -> None:
        """Asks it to stop at its next step."""
        self.progress.stop()

    def wait(self, seconds: float) -> bool:
        """Waits at most so long. Returns whether it is over."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self, work: Callable[[Progress], Result]) -> None:
        try:
            self.result = work(self.progress)
        except AdaPopError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001  nobody else looks at this thread, and the page must hear of it
            # its kind alone: the text may quote what the user typed
            log.error("a look-up failed: %s", type(error).__name__)
            self.error = AdaPopError(f"The look-up failed ({type(error).__name__}).", "Please report this.")
