"""A proxy says how popular a fact is. One small protocol, and one record that remembers where the number came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from adapop.facts import Fact


@dataclass(frozen=True)
class Score:
    """What a proxy found for one fact.

    value: the popularity, >= 0, or None for unknown, which is never zero. source: the proxy and its formula, in
    words. date: the day of the oldest count used (ISO 8601), "" if nothing was counted. raw: the counts themselves
    and how they were come by, JSON values only. reason: why the value is unknown, or what to know about it.
    """

    fact_id: str
    value: float | None
    source: str
    date: str = ""
    raw: Mapping[str, object] = field(default_factory=dict)
    reason: str = ""


class Proxy(Protocol):
    """A source of scores. source: what is written beside each of its scores."""

    source: str

    def scores(self, facts: Sequence[Fact]) -> Iterator[Score]:
        """One score a fact, in any order, as they are found; facts it cannot score get one with value None.

        Raises:
            NetworkError: the source failed or was stopped. What was yielded before stays true, and what was learnt
                is cached, so that asking again goes on.
        """
        ...
