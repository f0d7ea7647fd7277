"""The five limits of a visitor: requests, bytes written, seconds of the processor, runs that wait,
seconds of the accelerator. Their values stand in `limits`.

Four of them are buckets that leak evenly and are empty again after the limit's span; what does not
fit is refused. So a visitor may use a whole limit at once, and then as much as has leaked since.
A restart empties all buckets. A visitor is an address, see `ui.visitors`.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from math import ceil
from threading import Lock, Semaphore
from weakref import WeakValueDictionary

from adapop import limits
from adapop.errors import LimitError
from adapop.limits import ACCELERATOR, PROCESSOR, REQUESTS, RUNS_EACH, WRITTEN, Limit

SECONDS = {REQUESTS: 60.0, WRITTEN: 3600.0, PROCESSOR: 3600.0, ACCELERATOR: 3600.0}
THREADS = 2  # of a visitor of a public app that compute at once
OPEN = 25  # part of the requests of a minute that may be open, or events that may wait, at once
LEAST = 1e-6  # of work whose amount is not known yet
MOST_BUCKETS = 20_000  # empty ones are thrown away beyond so many


class Usage:
    """What each visitor of one app has used. sender: returns the current visitor. clock: seconds,
    monotonic."""

    def __init__(
        self, sender: Callable[[], str] = lambda: "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.sender = sender
        self._clock = clock
        self._buckets: dict[tuple[Limit, str], tuple[float, float]] = {}  # level, at this time
        self._counts: Counter[tuple[str, str]] = Counter()  # of what is open, by visitor
        self._threads: WeakValueDictionary[str, Semaphore] = WeakValueDictionary()
        self._lock = Lock()

    def spend(self, limit: Limit, amount: float = 1.0, visitor: str | None = None) -> None:
        """Records usage. visitor: None for the current one. Raises LimitError: the amount does not
        fit any more; then nothing is recorded."""
        visitor = self.sender() if visitor is None else visitor
        if (most := limit.value()) is None:
            return
        with self._lock:
            surplus = self._level(limit, visitor) + amount - most
            if surplus <= 0:
                self._fill(limit, visitor, amount)
                return
        wait = f"Try again in {ceil(surplus * SECONDS[limit] / most)} s."
        message = f"That is over the limit of {most:,} {limit.what} ({limit.name})."
        raise LimitError(message, wait if amount <= most else limits.elsewhere())

    def check(self, limit: Limit, visitor: str | None = None) -> None:
        """Checks that some is left, before work of an unknown amount. Raises as `spend`."""
        self.spend(limit, LEAST, visitor)

    def charge(self, limit: Limit, amount: float, visitor: str) -> None:
        """Records usage, even beyond the limit."""
        if limit.value() is not None:
            with self._lock:
                self._fill(limit, visitor, amount)

    @contextmanager
    def charged(
        self, limit: Limit, clock: Callable[[], float], visitor: str | None = None
    ) -> Iterator[None]:
        """Records the seconds that a block takes by a clock, even beyond the limit. visitor: None
        for the current one."""
        visitor, began = self.sender() if visitor is None else visitor, clock()
        try:
            yield
        finally:
            self.charge(limit, clock() - began, visitor)

    def left(self, limit: Limit, visitor: str) -> float | None:
        """How much a visitor may still use now, 0 at least; None if there is no limit."""
        if (most := limit.value()) is None:
            return None
        with self._lock:
            return max(0.0, most - self._level(limit, visitor))

    def waiting(self, visitor: str) -> AbstractContextManager[None]:
        """Counts a run or question of a visitor until the block ends. Raises LimitError: more wait
        already than may."""
        return self._counted("runs", visitor, RUNS_EACH.check)

    def open(self, visitor: str) -> AbstractContextManager[None]:
        """Counts a request of a visitor until the block ends. Raises LimitError: so many are open
        already."""
        return self._counted("requests", visitor, _check_open)

    @contextmanager
    def thread(self, visitor: str) -> Iterator[None]:
        """One of a visitor's threads, once it is free. Raises LimitError: too many events wait."""
        if not limits.is_public():
            yield
            return
        with self._counted("events", visitor, _check_open):
            with self._lock:
                thread = self._threads.setdefault(visitor, Semaphore(THREADS))
            with thread:
                yield

    @contextmanager
    def _counted(self, what: str, visitor: str, check: Callable[[float], None]) -> Iterator[None]:
        with self._lock:
            check(self._counts[what, visitor] + 1)
            self._counts[what, visitor] += 1
        try:
            yield
        finally:
            with self._lock:
                self._counts[what, visitor] -= 1
                self._counts += Counter()  # drops visitors with none

    def _level(self, limit: Limit, visitor: str) -> float:
        level, since = self._buckets.get((limit, visitor), (0.0, 0.0))
        return max(0.0, level - (self._clock() - since) * limit.value() / SECONDS[limit])

    def _fill(self, limit: Limit, visitor: str, amount: float) -> None:
        self._buckets[limit, visitor] = self._level(limit, visitor) + amount, self._clock()
        if len(self._buckets) > MOST_BUCKETS:
            for key in [key for key in self._buckets if not self._level(*key)]:
                del self._buckets[key]


def _check_open(count: float) -> None:
    most = REQUESTS.value()
    if most and count > max(most / OPEN, 1):
        words = f"At most {most / OPEN:,.0f} requests are allowed at once ({REQUESTS.name})."
        raise LimitError(words, "Try again in a moment.")
