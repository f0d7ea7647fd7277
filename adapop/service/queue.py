"""One thread that serves two queues in turn: all waiting questions, then one run.

So a visitor's next question waits for one run at most, and no number of questions stops the runs.
The first question of each visitor comes before the second of any, so that a visitor with many
questions delays nobody else.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Lock

Waiting = tuple[Future, Callable[[], object]]


class TurnQueue:
    """The two queues and their thread. Work is done in the context of its submitter."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="adapop")
        self._lock = Lock()
        self._runs: deque[Waiting] = deque()
        self._questions: dict[str, deque[Waiting]] = {}  # by visitor, in the order of their turns
        self._served = ""  # the visitor whose question was answered last
        self._left: int | None = None  # questions before the next run; counted when a turn begins

    @property
    def questions(self) -> int:
        """Number of waiting questions."""
        with self._lock:
            return self._count()

    def run(self, work: Callable, *args) -> Future:
        """Queues work behind the runs that wait."""
        return self._queued(lambda: self._runs, work, *args)

    def question(self, work: Callable, *args, visitor: str = "") -> Future:
        """Queues work behind the questions of this visitor."""
        return self._queued(lambda: self._questions.setdefault(visitor, deque()), work, *args)

    def _queued(self, line: Callable[[], deque[Waiting]], work: Callable, *args) -> Future:
        future, context = Future(), copy_context()
        with self._lock:
            line().append((future, lambda: context.run(work, *args)))
        self._thread.submit(self._next)  # one call for each queued piece of work
        return future

    def _count(self) -> int:
        return sum(map(len, self._questions.values()))

    def _next(self) -> None:
        with self._lock:
            left = self._count() if self._left is None else self._left
            if not left and self._runs:
                self._left, (future, work) = None, self._runs.popleft()
            else:
                future, work = self._next_question()
                self._left = left - 1 if left > 1 or self._runs else None
        future.set_running_or_notify_cancel()  # nothing cancels it; watchers see its turn come
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  else its future would never be done
            future.set_exception(error)

    def _next_question(self) -> Waiting:
        if self._served in self._questions:  # behind visitors who came while it was answered
            self._questions[self._served] = self._questions.pop(self._served)
        visitor = self._served = next(iter(self._questions))
        line = self._questions.pop(visitor)
        chosen = line.popleft()
        if line:
            self._questions[visitor] = line
        return chosen
