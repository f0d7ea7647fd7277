"""Who may ask for more just now: how often each visitor, and all of them together, asked for something lately.

In memory, so a restart forgets. A visitor is what the request says of its sender, which a stranger can forge; that is
why all visitors together have a limit too.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from threading import Lock

from adapop.errors import LimitError
from adapop.limits import ASKS_A_MINUTE, JOBS_AN_HOUR, RUNS_AN_HOUR, Limit

CROWD = 25  # all visitors together may ask as often as so many that each use up theirs


@dataclass(frozen=True)
class Rate:
    """How often something may be asked for. seconds: the span in which the limit counts."""

    limit: Limit
    seconds: float


RUN = Rate(RUNS_AN_HOUR, 3600.0)
ASK = Rate(ASKS_A_MINUTE, 60.0)
JOB = Rate(JOBS_AN_HOUR, 3600.0)


class Admission:
    """The counts of one app. who: the visitor that asks at this moment. clock: seconds that never run backwards."""

    def __init__(self, who: Callable[[], str] = lambda: "", clock: Callable[[], float] = time.monotonic) -> None:
        self.who = who
        self._clock = clock
        self._asked: dict[Rate, deque[tuple[float, str]]] = {rate: deque() for rate in (RUN, ASK, JOB)}
        self._lock = Lock()

    def admit(self, rate: Rate, visitor: str | None = None) -> None:
        """Counts one more, unless that is too often. visitor: None for who asks at this moment.

        Raises:
            LimitError: this visitor, or all together, asked too often lately; it was not counted.
        """
        most = rate.limit.value()
        if most is None:
            return
        visitor, now = self.who() if visitor is None else visitor, self._clock()
        with self._lock:
            asked = self._asked[rate]
            while asked and asked[0][0] <= now - rate.seconds:
                asked.popleft()
            own = [when for when, other in asked if other == visitor]
            full = own if len(own) >= most else [when for when, _ in asked] if len(asked) >= CROWD * most else None
            if full is None:
                asked.append((now, visitor))
                return
        whose = "" if full is own else f", {CROWD} times that for all together"
        wait = ceil(full[0] + rate.seconds - now)
        raise LimitError(
            f"Too many {rate.limit.what}: at most {most:,}{whose} ({rate.limit.name}).", f"Try again in {wait} s."
        )
