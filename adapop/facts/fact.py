"""Facts and sets of facts. A missing score stays missing: nothing here turns it into a number."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from adapop.errors import DataError, shown
from adapop.facts.text import asked

SANDBOX = "sandbox"  # the name of the set, and of the model, that the app starts with
PEOPLE = "people"  # the same of the second that it ships
RARE_BELOW, POPULAR_FROM = 265.0, 1000.0
TIERS = ("rare", "middle", "popular")
FACT_GROUPS = ("forget", "retain", "holdout")
GROUPS = (*FACT_GROUPS, "neighbours", "utility")  # utility: questions that are no facts
WRITTEN = (*GROUPS, "attacks")


@dataclass(frozen=True)
class Fact:
    """One question and its answer, with what is known about its popularity. Texts that are unknown are ""."""

    id: str
    """Unique in its set; joins scores, tokens, events and probes."""
    question: str
    """What the model is asked, without a chat template."""
    answer: str
    """The right answer, as it is trained on and looked for in replies."""
    subject: str = ""
    """What the question is about: "Hamlet"."""
    relation: str = ""
    """What is asked of the subject: "author", "capital of" or a Wikidata property such as "P50"."""
    object: str = ""
    """The name of the answer's entity, where the answer is worded differently."""
    score: float | None = None
    """Popularity, >= 0 and finite; None for unknown, which is not zero."""
    score_source: str = ""
    """Where the score came from, in words."""
    paraphrases: tuple[str, ...] = ()
    """The question in other words; used for probing, never trained on."""
    alternates: tuple[str, ...] = ()
    """Plausible wrong answers, for methods that teach one."""

    @property
    def title(self) -> str:
        """The fact's name in lists: its subject, or else its question."""
        return self.subject or self.question

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
    """One thing wrong with a file."""

    row: int
    """Row number as in a spreadsheet, where a header is row 1; 0 for the whole file."""
    column: str
    """Name of the column, "" for the whole row."""
    value: str
    """The cell's text, shortened; "" where it says nothing."""
    message: str
    """What is wrong, to follow "row 3, 'score' is 'x': "."""
    fix: str
    """What to do about it, a sentence."""

    def __str__(self) -> str:
        places = (f"row {self.row}" if self.row else "", repr(self.column) if self.column else "")
        where = ", ".join(filter(None, places)) or "file"
        shown = f" is {self.value!r}" if self.value else ""
        return f"{where}{shown}: {self.message}. {self.fix}"


@dataclass(frozen=True)
class FactSet:
    """The facts that a run works on, in groups."""

    name: str
    """Name for lists and file names."""
    forget: tuple[Fact, ...]
    """Facts to be forgotten."""
    retain: tuple[Fact, ...] = ()
    """Facts to be kept, which are trained on. Reported together with `holdout`."""
    holdout: tuple[Fact, ...] = ()
    """Facts to be kept, which are never trained on."""
    neighbours: tuple[Fact, ...] = ()
    """Like `holdout`, but about the subjects of the facts to forget: does what else is known of them survive?"""
    utility: tuple[Fact, ...] = ()
    """Questions that are no facts (sums, sequences ...), to see whether the model still works."""
    attacks: tuple[Fact, ...] = ()
    """A benchmark's own prompts to get forgotten facts back; `relation` is the kind of attack, `subject` the target."""
    problems: tuple[Problem, ...] = ()
    """Rows that were dropped."""
    notes: tuple[str, ...] = ()
    """What was done to the set, in sentences for the user."""

    @property
    def sha256(self) -> str:
        """Hash of every fact of every group; two runs with the same hash saw the same data."""
        newer = ("neighbours", "attacks")  # a set without them keeps the hash that older runs recorded
        groups = [group for group in WRITTEN if group not in newer or getattr(self, group)]
        content = [[vars(fact) for fact in getattr(self, group)] for group in groups]
        return hashlib.sha256(json.dumps(content, ensure_ascii=False, sort_keys=True).encode()).hexdigest()

    @property
    def unknown_scores(self) -> tuple[Fact, ...]:
        """Forget facts without a score."""
        return tuple(fact for fact in self.forget if fact.score is None)

    def write(self, path: Path) -> None:
        """Writes the set as JSONL: one fact per line, with its group."""
        lines = [
            json.dumps({"group": group, **vars(fact)}, ensure_ascii=False)
            for group in WRITTEN
            for fact in getattr(self, group)
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path, name: str, notes: Sequence[str] = ()) -> FactSet:
        """The set in a file written by `write`.

        Raises:
            DataError: a line is no fact that `write` wrote.
        """
        groups: dict[str, list[Fact]] = {group: [] for group in WRITTEN}
        for number, line in enumerate(path.read_text(encoding="utf-8").rstrip("\n").split("\n"), start=1):
            try:
                row = json.loads(line)
                group = row.pop("group")
                row["paraphrases"], row["alternates"] = tuple(row["paraphrases"]), tuple(row["alternates"])
                groups[group].append(Fact(**row))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                message = f"{path.name}, line {number}, is no fact of a run ({type(error).__name__}: {error})."
                raise DataError(message, "Use the facts.jsonl of the run's folder as it is.") from None
        return cls(name, **{group: tuple(facts) for group, facts in groups.items()}, notes=tuple(notes))


def split_holdout(facts: FactSet, share: float = 0.3) -> FactSet:
    """The set with a share of its retain rows as holdout, if it has none, and a note that says so.

    Which rows are held out depends on their ids and questions alone, so it is the same in every run. Rows with the same
    question are held out together: a held-out question is never trained on.
    """
    if facts.holdout or not facts.retain:
        return facts
    alike: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts.retain:
        alike[asked(fact.question)].append(fact)
    ranked = sorted(alike.values(), key=lambda rows: min(hashlib.sha256(row.id.encode()).hexdigest() for row in rows))
    held: set[str] = set()
    for rows in ranked[:-1]:
        if len(held) >= max(1, math.floor(len(facts.retain) * share)):
            break
        held |= {row.id for row in rows}
    count = len(facts.retain)
    note = (
        f"The set has no holdout rows, so {len(held)} of its {count} retain rows are held out of training."
        if held
        else "Nothing is held out, because there is only one question to retain and training needs it: what is "
        "measured on it does not show how facts fare that training never saw."
    )
    return replace(
        facts,
        retain=tuple(fact for fact in facts.retain if fact.id not in held),
        holdout=tuple(fact for fact in facts.retain if fact.id in held),
        notes=(*facts.notes, note),
    )


def separated(facts: FactSet, rows: Mapping[str, int] | None = None, column: str = "question") -> FactSet:
    """The set without questions that occur in two groups; every dropped row becomes a problem.

    Retaining a fact that is to be forgotten would undo the forgetting, and held-out rows must not be trained on. rows:
    fact id -> row number. column: the column of the questions.
    """
    problems: list[Problem] = []
    taken = {asked(fact.question): "forgotten" for fact in facts.forget}
    kept: dict[str, tuple[Fact, ...]] = {}
    for group in ("retain", "holdout", "neighbours"):
        for fact in getattr(facts, group):
            if use := taken.get(asked(fact.question)):
                row, fix = (rows or {}).get(fact.id, 0), "Delete one of the two rows."
                problems.append(Problem(row, column, shown(fact.question), f"is also to be {use}", fix))
        kept[group] = tuple(fact for fact in getattr(facts, group) if asked(fact.question) not in taken)
        taken |= {asked(fact.question): "retained" for fact in kept[group]}
    return replace(facts, **kept, problems=(*facts.problems, *problems))


def scores_of(facts: Iterable[Fact]) -> dict[str, float | None]:
    """Score by fact id."""
    return {fact.id: fact.score for fact in facts}
