"""One thread that works on two lines by turns: every question that waits, then one run, then the questions again.

So a question waits for one run and not for all of them, and however many ask, runs go on.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock

Waiting = tuple[Future, Callable[[], object]]


class TurnQueue:
    """The two lines and their thread. Work is done in the context of who queued it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="adapop")
        self._lock = Lock()
        self._runs: deque[Waiting] = deque()
        self._questions: deque[Waiting] = deque()
        self._turn: deque[Waiting] = deque()

    @property
    def questions(self) -> int:
        """How many questions wait."""
        with self._lock:
            return len(self._questions) + max(0, len(self._turn) - 1)

    def run(self, work: Callable, *args) -> Future:
        """Queues work behind the runs."""
        return self._queued(self._runs, work, *args)

    def question(self, work: Callable, *args) -> Future:
        """Queues work behind the questions."""
        return self._queued(self._questions, work, *args)

    def _queued(self, line: deque[Waiting], work: Callable, *args) -> Future:
        future, context = Future(), copy_context()
        with self._lock:
            line.append((future, lambda: context.run(work, *args)))
        self._thread.submit(self._next)  # as often as there is work
        return future

    def _next(self) -> None:
        with self._lock:
            if not self._turn:
                self._turn.extend(self._questions)
                self._questions.clear()
                self._turn.extend([self._runs.popleft()] if self._runs else [])
            future, work = self._turn.popleft()
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  who waits for it would else wait for ever
            future.set_exception(error)
