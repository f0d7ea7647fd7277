"""Facts and sets of facts: the data everything else hangs on, and how a file becomes one.

A file is a table of facts, one a row: CSV, JSON (a list of objects), JSONL or Parquet, in UTF-8. Columns are found
under the names people use (`COLUMNS`). Bad rows are dropped and named with row, column, value and fix; the good rows
survive. A missing score stays missing; nothing here ever turns it into a number.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

RARE_BELOW, POPULAR_FROM = 265.0, 1000.0
TIERS = ("rare", "middle", "popular")
GROUPS = ("forget", "retain", "holdout", "utility")


@dataclass(frozen=True)
class Fact:
    """One question and its answer, with what is known about its popularity.

    id: unique in its set; joins scores, tokens, events and probes. score: popularity, >= 0 and finite, or None for
    unknown, which is not zero. score_source: where the score came from. paraphrases: other ways to ask.
    alternates: plausible wrong answers, for methods that need them.
    """

    id: str
    question: str
    answer: str
    subject: str = ""
    relation: str = ""
    object: str = ""
    score: float | None = None
    score_source: str = ""
    paraphrases: tuple[str, ...] = ()
    alternates: tuple[str, ...] = ()

    @property
    def tier(self) -> str:
        """`rare` up to a score of 265, `popular` from 1,000, `middle` between, `unknown` without a score."""
        if self.score is None:
            return "unknown"
        if self.score <= RARE_BELOW:
            return "rare"
        return "popular" if self.score >= POPULAR_FROM else "middle"


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a file. `row` counts as a spreadsheet does (a header is row 1); 0 is the whole file."""

    row: int
    column: str
    value: str
    message: str
    fix: str

    def __str__(self) -> str:
        places = (f"row {self.row}" if self.row else "", repr(self.column) if self.column else "")
        where = ", ".join(filter(None, places)) or "file"
        shown = f" is {self.value!r}" if self.value else ""
        return f"{where}{shown}: {self.message}. {self.fix}"


@dataclass(frozen=True)
class FactSet:
    """What a run works on. `retain` is trained on, `holdout` never is; both are always reported.

    utility: questions that are not facts (sums, sequences ...), to see whether the model still works.
    problems: rows that were dropped. notes: what was done to the set, in sentences for the user.
    """

    name: str
    forget: tuple[Fact, ...]
    retain: tuple[Fact, ...] = ()
    holdout: tuple[Fact, ...] = ()
    utility: tuple[Fact, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """Hash of every fact of every group; two runs with the same hash saw the same data."""
        content = [[asdict(fact) for fact in getattr(self, group)] for group in GROUPS]
        return hashlib.sha256(json.dumps(content, ensure_ascii=False, sort_keys=True).encode()).hexdigest()

    @property
    def unknown_scores(self) -> tuple[Fact, ...]:
        """Forget facts without a score."""
        return tuple(fact for fact in self.forget if fact.score is None)

    def with_scores(self, scores: dict[str, float | None], source: str) -> FactSet:
        """The same set with the forget facts' scores replaced, by fact id."""
        forget = tuple(replace(fact, score=scores[fact.id], score_source=source) for fact in self.forget)
        return replace(self, forget=forget)

    def write(self, path: Path) -> None:
        """Writes the set as JSONL, one fact a line with its group."""
        lines = [
            json.dumps({"group": group, **asdict(fact)}, ensure_ascii=False)
            for group in GROUPS
            for fact in getattr(self, group)
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path, name: str, notes: Sequence[str] = ()) -> FactSet:
        """Reads what `write` wrote."""
        groups: dict[str, list[Fact]] = {group: [] for group in GROUPS}
        for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n"):
            row = json.loads(line)
            group = row.pop("group")
            row["paraphrases"], row["alternates"] = tuple(row["paraphrases"]), tuple(row["alternates"])
            groups[group].append(Fact(**row))
        return cls(name, **{group: tuple(facts) for group, facts in groups.items()}, notes=tuple(notes))


def split_holdout(facts: FactSet, share: float = 0.3) -> FactSet:
    """Splits a holdout off the retain rows where a set brings none, and says so in `notes`.

    Which rows are held out depends on their ids alone, so it is the same in every run.
    """
    if facts.holdout or len(facts.retain) < 2:
        return facts
    ranked = sorted(facts.retain, key=lambda fact: hashlib.sha256(fact.id.encode()).hexdigest())
    held = {fact.id for fact in ranked[: max(1, math.floor(len(ranked) * share))]}
    note = f"The set has no holdout rows, so {len(held)} of its {len(ranked)} retain rows are held out of training."
    return replace(
        facts,
        retain=tuple(fact for fact in facts.retain if fact.id not in held),
        holdout=tuple(fact for fact in facts.retain if fact.id in held),
        notes=(*facts.notes, note),
    )


def scores_of(facts: Iterable[Fact]) -> dict[str, float | None]:
    """Score by fact id."""
    return {fact.id: fact.score for fact in facts}
