"""Usage of each visitor, in one ledger that all parts of the app write to and check.

    spent, in a span of time   requests, jobs, megabytes served and written, seconds of the
                               processor and the accelerator
    held, at this moment       connections, questions that wait

Gradio's own queue is counted by `adapop.ui.queue`, files on the disk by `cleanup`. A restart clears
the ledger. A visitor is an address; one person may have many addresses, so all visitors together
have a limit too.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from threading import Lock

from adapop import limits
from adapop.errors import LimitError
from adapop.limits import Limit, elsewhere

CROWD = 25  # all visitors together may use as much as this many who each reach their limit
HOUR = 3600.0
ROUNDING = 1e-9  # what sums of seconds may leave of nothing


@dataclass(frozen=True)
class Allowance:
    """The usage of one kind that is allowed within a span of time."""

    limit: Limit
    """The most that one visitor takes in the span."""
    seconds: float
    """The span."""


REQUESTS = Allowance(limits.REQUESTS, 60.0)
SERVED = Allowance(limits.SERVED, 60.0)
PROCESSOR = Allowance(limits.PROCESSOR, 60.0)
JOBS = Allowance(limits.JOBS_AN_HOUR, HOUR)
ACCELERATOR = Allowance(limits.ACCELERATOR, HOUR)
WRITTEN = Allowance(limits.WRITTEN, HOUR)


class _Account:
    """Recent usage of one allowance: by each visitor and by all."""

    def __init__(self) -> None:
        self.entries: deque[tuple[float, str, float]] = deque()
        self.spent: Counter[str] = Counter()
        self.all = 0.0

    def add(self, now: float, visitor: str, amount: float) -> None:
        self.entries.append((now, visitor, amount))
        self.spent[visitor] += amount
        self.all += amount

    def forget(self, before: float) -> None:
        while self.entries and self.entries[0][0] <= before:
            _, visitor, amount = self.entries.popleft()
            self.spent[visitor] -= amount
            self.all -= amount
            if self.spent[visitor] <= ROUNDING:
                del self.spent[visitor]

    def freed(self, surplus: float, visitor: str | None) -> float:
        """Time of the entry whose expiry frees the surplus. visitor: None for all entries."""
        own = ((when, amount) for when, other, amount in self.entries if visitor in (None, other))
        total = 0.0
        for when, amount in own:
            if (total := total + amount) >= surplus:
                return when
        return self.entries[-1][0] if self.entries else 0.0  # the limit is below the amount


class Ledger:
    """The ledger of one app. sender: returns the current visitor. clock: seconds, monotonic."""

    def __init__(
        self, sender: Callable[[], str] = lambda: "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.sender = sender
        self._clock = clock
        self._accounts: dict[Allowance, _Account] = {}
        self._held: Counter[tuple[Limit, str]] = Counter()
        self._lock = Lock()

    def spend(self, allowance: Allowance, amount: float = 1.0, visitor: str | None = None) -> None:
        """Records usage. visitor: None for the current one. Raises LimitError: it is more than this
        visitor, or all together, may use in the span; then nothing is recorded."""
        self._take(allowance, amount, visitor, write=True)

    def check(self, allowance: Allowance, visitor: str | None = None) -> None:
        """Checks that some is left, before work of an unknown amount. Raises as `spend`."""
        self._take(allowance, 1e-9, visitor, write=False)

    def left(self, allowance: Allowance, visitor: str) -> float | None:
        """How much this visitor may still use now, at least 0; None for no limit."""
        if (most := allowance.limit.value()) is None:
            return None
        with self._lock:
            account = self._account(allowance)
            return max(0.0, min(most - account.spent[visitor], CROWD * most - account.all))

    def charge(self, allowance: Allowance, amount: float, visitor: str) -> None:
        """Records usage, even beyond the limit."""
        with self._lock:
            account = self._account(allowance)
            account.add(self._clock(), visitor, amount)

    @contextmanager
    def held(self, limit: Limit, visitor: str) -> Iterator[None]:
        """A context in which the visitor holds one more of a limited resource. Raises LimitError:
        this visitor, or all together, already hold as many as they may."""
        with self._lock:
            most, own = limit.value(), self._held[limit, visitor]
            every = sum(count for (kind, _), count in self._held.items() if kind is limit)
            if most is not None and (own >= most or every >= CROWD * most):
                whose = "" if own >= most else f", {CROWD} times that for all together"
                message = f"Too many {limit.what}: at most {most:,}{whose} ({limit.name})."
                raise LimitError(message, "Try again in a moment.")
            self._held[limit, visitor] += 1
        try:
            yield
        finally:
            with self._lock:
                self._held[limit, visitor] -= 1
                self._held += Counter()  # drops visitors who hold nothing

    def _take(self, allowance: Allowance, amount: float, visitor: str | None, write: bool) -> None:
        most = allowance.limit.value()
        if most is None:
            return
        visitor = self.sender() if visitor is None else visitor
        with self._lock:
            now, account = self._clock(), self._account(allowance)
            own, every = account.spent[visitor] + amount - most, account.all + amount - CROWD * most
            if max(own, every) <= 0:
                if write:
                    account.add(now, visitor, amount)
                return
            whose = "" if own > 0 else f", {CROWD} times that for all together"
            when = account.freed(own, visitor) if own > 0 else account.freed(every, None)
        wait = f"Try again in {ceil(when + allowance.seconds - now)} s."
        what = f"{allowance.limit.what}: at most {most:,}{whose} ({allowance.limit.name})"
        raise LimitError(f"Too many {what}.", wait if amount <= most else elsewhere())

    def _account(self, allowance: Allowance) -> _Account:
        account = self._accounts.setdefault(allowance, _Account())
        account.forget(self._clock() - allowance.seconds)
        return account
