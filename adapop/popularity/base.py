"""The interface of a popularity proxy (a source of scores), and a score with its origin.

A scored set is saved as CSV or JSONL, one fact per line, which `read_facts` can read. Each score
comes with its source, its date, its counts, and the reason if it is unknown.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from adapop.errors import DataError, named_place
from adapop.facts.fact import CHAIN, LISTS, WRITTEN, Fact, FactSet
from adapop.facts.formulas import write_csv
from adapop.facts.tiers import COLUMN

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


FORMATS = (".csv", ".jsonl")


def write_scored(
    facts: FactSet,
    scores: Mapping[str, Score],
    path: Path,
    others: Mapping[str, Mapping[str, object]] | None = None,
) -> None:
    """Writes forget facts with their scores, and all other rows with their own unless `scores` has
    others.

    others: fact id -> further cells of its row, written after our columns; ours win where names are
    equal.

    In CSV, a text that a spreadsheet would run gets an apostrophe, which `read_facts` removes.
    Raises DataError: not a .csv or .jsonl file, or it cannot be written."""
    check_place(path)
    rows = []
    for row in _rows(facts, scores):
        beside = (others or {}).get(row["id"], {}).items()
        rows.append(row | {name: cell for name, cell in beside if name.strip().lower() not in row})
    # backslashreplace: half an emoji
    with (
        named_place(path, DataError),
        open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        if path.suffix.lower() == ".jsonl":
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        else:
            write_csv(file, list(dict.fromkeys(name for row in rows for name in row)), rows)


def check_place(path: Path) -> None:
    """Checks that a file can be written at a path, before scores are looked up. Raises DataError:
    not a .csv or .jsonl file, or its folder does not exist."""
    if path.suffix.lower() not in FORMATS:
        message = f"{path.name} is not one of {', '.join(FORMATS)}."
        raise DataError(message, "Name a .csv or .jsonl file.")
    if not path.parent.is_dir():
        raise DataError(f"There is no folder {path.parent}.", "Make it, or choose another place.")


def _rows(facts: FactSet, scores: Mapping[str, Score]) -> Iterator[dict[str, Any]]:
    for group in WRITTEN:
        for fact in getattr(facts, group):
            # facts to forget lose an old score, so that sources are not mixed
            own = Score(fact.id, None, "", reason="not reached")
            if group != "forget":
                own = Score(fact.id, fact.score, fact.score_source)
            score = scores.get(fact.id, own)
            texts = ("question", "answer", "subject", "relation", "object")
            yield {
                "id": fact.id,
                "group": "forget_level3" if group == "attacks" else group,  # RWKU's name of them
                **{name: getattr(fact, name) for name in texts},
                "score": score.value,
                "score_source": score.source,
                "score_date": score.date,
                "score_reason": score.reason,
                "score_raw": dict(score.raw),
                **{name: list(getattr(fact, name)) for name in LISTS[:3]},
                **({"subject_aliases": list(fact.subject_aliases)} if fact.subject_aliases else {}),
                **{name: text for name in CHAIN if (text := getattr(fact, name))},
                **({"tier": fact.own_tier} if facts.tiers.source == COLUMN else {}),
            }
