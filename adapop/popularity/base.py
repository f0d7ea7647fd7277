"""The interface of a popularity proxy (a source of scores), and a score with its origin."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from adapop.errors import DataError
from adapop.facts.fact import Fact

AS_GIVEN = "as given"
# seconds per request, for a forecast, from the AdaPop paper: 12 minutes for 2,000 facts by
# Wikidata; 9 hours for them by its judge, in three passes of batches of eight
WEB_PACE, JUDGE_PACE = 12 * 60 / 2000, 9 * 3600 / (3 * 2000 / 8)


@dataclass(frozen=True)
class Score:
    """One proxy's score of one fact."""

    fact_id: str
    """Id of the fact that was scored."""
    value: float | None
    """The popularity, >= 0; None for unknown, which is never zero."""
    source: str
    """The proxy and its formula, in words."""
    date: str = ""
    """The day of the oldest count used (ISO 8601), "" if nothing was counted."""
    raw: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The counts and how they were obtained, as JSON values."""
    reason: str = ""
    """Why the value is unknown, or a caveat about it."""


@dataclass(frozen=True, eq=False)
class Scoring:
    """One proxy's scores of a set. title: for lists. scores: by fact id, for the facts scored."""

    title: str
    scores: Mapping[str, Score]

    def __deepcopy__(self, memo: dict) -> Self:
        """The scoring itself: it is never changed."""
        return self

    def values(self, facts: Sequence[Fact]) -> dict[str, float | None]:
        """The score of every fact, None where it is unknown."""
        known = {name: score.value for name, score in self.scores.items()}
        return {fact.id: known.get(fact.id) for fact in facts}


def given(facts: Sequence[Fact]) -> Scoring:
    """The scores that the facts already have, for comparison with a proxy's."""
    scored = [fact for fact in facts if fact.score is not None]
    scores = {fact.id: Score(fact.id, fact.score, fact.score_source) for fact in scored}
    return Scoring(AS_GIVEN, scores)


def check_not_all_zero(scores: Sequence[Score], where: str, fix: str) -> None:
    """Refuses known counts that are all 0: they say nothing of popularity. Raises DataError."""
    known = [score.value for score in scores if score.value is not None]
    if known and not any(known):
        message = f"Every count in {where} is 0, which says nothing of how popular the facts are."
        raise DataError(message, fix)


@dataclass(frozen=True)
class Forecast:
    """The estimated number of requests of a look-up, and its minutes at the proxy's pace."""

    requests: int
    minutes: float


class Proxy(Protocol):
    """A source of scores."""

    source: str
    """The text that each of its scores has as `source`."""
    pace: float
    """Seconds that a request may take, for a forecast."""

    def requests(self, facts: Sequence[Fact]) -> int:
        """About how many requests `scores` would make; cached replies need none."""
        ...

    def scores(self, facts: Sequence[Fact]) -> Iterator[Score]:
        """One score per fact, in any order, each as soon as it is found; value None if unknown.
        Raises NetworkError: the source failed. Stopped: somebody asked to stop. Scores yielded
        before stay valid, and replies are cached, so that a second call continues."""
        ...


def forecast(proxy: Proxy, facts: Sequence[Fact]) -> Forecast:
    requests = proxy.requests(facts)
    return Forecast(requests, requests * proxy.pace / 60)
