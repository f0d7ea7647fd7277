"""A proxy says how popular a fact is. One small protocol, and one record that remembers where the number came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from adapop.facts.fact import Fact

AS_GIVEN = "as given"


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
    raw: Mapping[str, object] = field(default_factory=dict, hash=False)
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Scoring:
    """One proxy's scores of a whole set, by fact id; facts it never got to are not in it. title: what to call it."""

    title: str
    scores: Mapping[str, Score]

    def values(self, facts: Sequence[Fact]) -> dict[str, float | None]:
        """The score of every fact, None where it is unknown."""
        return {fact.id: self.scores[fact.id].value if fact.id in self.scores else None for fact in facts}


def given(facts: Sequence[Fact]) -> Scoring:
    """The scores that the facts already have, as a scoring to compare others with."""
    scores = {fact.id: Score(fact.id, fact.score, fact.score_source) for fact in facts if fact.score is not None}
    return Scoring(AS_GIVEN, scores)


class Proxy(Protocol):
    """A source of scores. source: what is written beside each of its scores."""

    source: str

    def scores(self, facts: Sequence[Fact]) -> Iterator[Score]:
        """One score a fact, in any order, as they are found; facts it cannot score get one with value None.

        Raises:
            NetworkError: the source failed. Stopped: somebody asked to stop. What was yielded before stays true either
                way, and what was learnt is cached, so that asking again goes on.
        """
        ...
