"""Facts and sets of facts. A missing score stays missing: nothing here turns it into a number."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from adapop.assets import as_kind, parse_json
from adapop.errors import DataError, truncated
from adapop.facts.text import normalized
from adapop.facts.tiers import ON_SCALE, Tiers, of_column
from adapop.facts.tiers import TIERS as TIERS  # re-exported for users of facts
from adapop.remark import Remark

SANDBOX = "sandbox"  # the name of the set, and of the model, that the app starts with
PEOPLE = "people"  # the name of the second set and model that the app ships
FACT_BYTES = 1_000  # memory of a fact besides its texts
FACT_GROUPS = ("forget", "retain", "holdout")
GROUPS = (*FACT_GROUPS, "neighbours", "utility")  # utility: questions that are no facts
WRITTEN = (*GROUPS, "attacks", "examples")
LISTS = ("paraphrases", "alternates", "accepted", "subject_aliases", "parts")
CHAIN = ("two_hop", "two_hop_answer", "second_hop")
HALF = re.compile("[\ud800-\udfff]")
# fields that older runs did not have: left out where empty, so that hashes stay
NEWER = ("accepted", "own_tier", "subject_aliases", *CHAIN, "parts")


@dataclass(frozen=True)
class Fact:
    """A question and its answer, and what is known of its popularity. Unknown texts are ""."""

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
    accepted: tuple[str, ...] = ()
    """Other right answers: accepted in every measure, never trained on."""
    own_tier: str = ""
    """The tier given by the file or set by `facts.scale.with_tiers`; "": by score, on Wikidata's
    scale."""
    subject_aliases: tuple[str, ...] = ()
    """Other names of the subject; used for probing, never trained on."""
    two_hop: str = ""
    """A question that needs this fact's answer and does not name it; for probing only."""
    two_hop_answer: str = ""
    """The right answer to `two_hop`."""
    second_hop: str = ""
    """A question that names this fact's answer and has the answer `two_hop_answer`."""
    parts: tuple[str, ...] = ()
    """Parts of a private answer, each of which gives it away when a reply says it: "4B" and "Mill
    Row 19" of a sentence about a flat. Replies are judged by them alone, if there are any."""

    def __post_init__(self) -> None:
        """Raises DataError: a text has half a character (a lone surrogate), which no file holds."""
        for name, value in vars(self).items():
            for text in value if name in LISTS else (value,):
                if isinstance(text, str) and not _is_unicode(text):
                    raise _half(f"{name} of the fact {_shown(self.id)}", text)

    @property
    def has_chain(self) -> bool:
        """Whether all three fields of the two-hop question are given."""
        return all(getattr(self, name) for name in CHAIN)

    @property
    def answers(self) -> tuple[str, ...]:
        """All right answers: first the answer trained on, then the others accepted."""
        return (self.answer, *self.accepted)

    @property
    def judged_parts(self) -> tuple[str, ...]:
        """The parts that its question does not name: a name that was asked about is no leak."""
        if not self.parts:  # of most facts, and asked for each of their replies
            return ()
        question = normalized(self.question)
        return tuple(part for part in self.parts if normalized(part) not in question)

    @property
    def title(self) -> str:
        """The fact's name in lists: its subject, or else its question."""
        return self.subject or self.question

    @property
    def tier(self) -> str:
        """`rare`, `middle`, `popular` or `unknown`; `FactSet.tiers` has their ranges of scores."""
        return self.own_tier or ON_SCALE.of(self.score)


@dataclass(frozen=True)
class OwnAnswer:
    """The words of a model's own reply that answer a fact."""

    gold: str
    """The gold answer that these words replace when scored."""
    lead: str
    """The beginning of the reply, up to the answer."""
    answer: str
    """The answer in the reply's words; for a fact to retain, the whole reply."""


@dataclass(frozen=True)
class Problem:
    """One error in a file."""

    row: int
    """Row number as in a spreadsheet, where a header is row 1; 0 for the whole file."""
    column: str
    """Name of the column, "" for the whole row."""
    value: str
    """The cell's text, shortened; "" where showing it would not help."""
    message: str
    """What is wrong, to follow "row 3, 'score' ('x') "."""
    fix: str
    """What to do about it, a sentence."""

    def __str__(self) -> str:
        places = (f"row {self.row}" if self.row else "", repr(self.column) if self.column else "")
        where = ", ".join(filter(None, places)) or "file"
        value = f" ({self.value!r})" if self.value else ""
        return f"{where}{value} {self.message}. {self.fix}"


@dataclass(frozen=True)
class FactSet:
    """The facts that a run works on, in groups."""

    name: str
    """Name for lists and file names."""
    forget: tuple[Fact, ...]
    """Facts to be forgotten."""
    retain: tuple[Fact, ...] = ()
    """Facts to be kept, which are trained on. Never reported alone: `holdout` stands beside it."""
    holdout: tuple[Fact, ...] = ()
    """Facts to be kept, which are never trained on."""
    neighbours: tuple[Fact, ...] = ()
    """Like `holdout`, but about the subjects to forget: is other knowledge of them kept?"""
    utility: tuple[Fact, ...] = ()
    """Questions about no fact (sums, sequences ...): does the model still work?"""
    attacks: tuple[Fact, ...] = ()
    """A benchmark's prompts to get facts back; `relation` is the kind, `subject` the target."""
    examples: tuple[Fact, ...] = ()
    """Facts of no other group, which may stand before a question to show how it is answered."""
    problems: tuple[Problem, ...] = ()
    """Rows that were dropped."""
    notes: tuple[str | Remark, ...] = ()
    """Notes on how the set was made; sentences in sets that older versions saved."""
    tiers: Tiers = Tiers()
    """Which scores each tier spans, and what decided that."""

    def __post_init__(self) -> None:
        """Raises DataError: the name has half a character."""
        if not _is_unicode(self.name):
            raise _half("The name of the set", self.name)

    @property
    def sha256(self) -> str:
        """Hash of every fact of every group; two runs with the same hash saw the same data."""
        # left out where empty, so that a set keeps the hash that older runs recorded
        newer = ("neighbours", "attacks", "examples")
        groups = [group for group in WRITTEN if group not in newer or getattr(self, group)]
        content = [[_content(fact) for fact in getattr(self, group)] for group in groups]
        text = json.dumps(content, ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def memory(self) -> int:
        """About how many bytes the set takes."""
        facts = [fact for group in WRITTEN for fact in getattr(self, group)]
        texts = [(fact.question, fact.answer, *fact.paraphrases) for fact in facts]
        return FACT_BYTES * len(facts) + 2 * sum(map(len, chain.from_iterable(texts)))

    @property
    def every(self) -> tuple[Fact, ...]:
        """The facts of `FACT_GROUPS`."""
        return (*self.forget, *self.retain, *self.holdout)

    def fact(self, fact_id: str | None) -> Fact | None:
        """The fact of this id among `every`."""
        return next((fact for fact in self.every if fact.id == fact_id), None)

    @property
    def unknown_scores(self) -> tuple[Fact, ...]:
        """Forget facts without a score."""
        return tuple(fact for fact in self.forget if fact.score is None)

    def lines(self) -> list[str]:
        """The set as JSONL: one fact per line, with its group."""
        facts = [(group, fact) for group in WRITTEN for fact in getattr(self, group)]
        rows = [{"group": group, **_content(fact)} for group, fact in facts]
        return [json.dumps(row, ensure_ascii=False) for row in rows]

    def write(self, path: Path) -> None:
        """Writes the set's lines."""
        path.write_text("\n".join(self.lines()) + "\n", encoding="utf-8")

    @classmethod
    def load(
        cls, path: Path, name: str, notes: Sequence[str | Remark] = (), tiers: Tiers | None = None
    ) -> FactSet:
        """The set in a file that `write` wrote; see `of_lines`."""
        lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
        return cls.of_lines(lines, path, name, notes, tiers)

    @classmethod
    def of_lines(
        cls,
        lines: Iterable[str],
        path: Path,
        name: str,
        notes: Sequence[str | Remark] = (),
        tiers: Tiers | None = None,
    ) -> FactSet:
        """The set from lines that `FactSet.lines` wrote. path: their file, for errors. tiers: of
        the set, by default derived from its facts. Raises DataError: a line is in another form."""
        groups: dict[str, list[Fact]] = {group: [] for group in WRITTEN}
        for number, line in enumerate(lines, start=1):
            try:
                row = parse_json(line)
                group = row.pop("group")
                as_kind(row, Fact)
                lists = {name: tuple(row[name]) for name in LISTS if name in row}
                groups[group].append(Fact(**{**row, **lists}))  # 7.0 for 7 would hash anew
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                why = f"({type(error).__name__}: {error})"
                message = f"{path.name}, line {number}, is not a fact of a run {why}."
                fix = "Use the facts.jsonl of the run's folder as it is."
                raise DataError(message, fix) from None
        members: dict[str, Any] = {group: tuple(facts) for group, facts in groups.items()}
        if tiers is None:
            rows = [(fact.own_tier, fact.score) for fact in members["forget"]]
            tiers = of_column(rows) if any(tier for tier, _ in rows) else Tiers()
        return cls(name, **members, notes=tuple(notes), tiers=tiers)


def _is_unicode(text: str) -> bool:
    return text.isascii() or not HALF.search(text)


def _half(where: str, text: str) -> DataError:
    message = f"{where} has a broken character (a lone surrogate): {_shown(text)}."
    return DataError(message, "Type the text again, or decode it as UTF-8.")


def _shown(text: str) -> str:
    return repr(truncated(HALF.sub("\ufffd", text)))


def _content(fact: Fact) -> dict[str, object]:
    """A fact's fields as they are hashed and written."""
    return {name: value for name, value in vars(fact).items() if value or name not in NEWER}


def separated(
    facts: FactSet, rows: Mapping[str, int] | None = None, column: str = "question"
) -> FactSet:
    """The set with each question only in its first group of forget, retain, holdout and neighbours;
    every dropped row becomes a problem. To retain a fact to forget would undo the forgetting, and
    held-out rows must not be trained on. rows: fact id -> row number. column: the column of the
    questions."""
    problems: list[Problem] = []
    taken = {normalized(fact.question): "forgotten" for fact in facts.forget}
    groups: dict[str, Any] = {}
    for group in ("retain", "holdout", "neighbours"):
        own = [(normalized(fact.question), fact) for fact in getattr(facts, group)]
        for question, fact in own:
            if use := taken.get(question):
                row, fix = (rows or {}).get(fact.id, 0), "Delete one of the two rows."
                about = (truncated(fact.question), f"is also to be {use}", fix)
                problems.append(Problem(row, column, *about))
        groups[group] = tuple(fact for question, fact in own if question not in taken)
        use = "retained" if group == "retain" else "held out"
        taken = dict.fromkeys((question for question, _ in own), use) | taken
    return replace(facts, **groups, problems=(*facts.problems, *problems))


def scores_of(facts: Iterable[Fact]) -> dict[str, float | None]:
    return {fact.id: fact.score for fact in facts}
