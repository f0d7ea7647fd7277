"""What was asked about a run: kept in its folder, read back, as a table.

RUN/questions.jsonl has a line for each question of one's own, RUN/ways.jsonl one for each fact that
was asked in all ways. Append-only; each line carries its own SHA-256, as events do. Torch-free.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from adapop.assets import as_kind, parse_json
from adapop.errors import RunError
from adapop.facts.formulas import as_csv
from adapop.probes.inspection import Strip
from adapop.probes.prompts import Answer, Asked
from adapop.probes.verdict import verdict
from adapop.runs import files
from adapop.runs.log import lines_of
from adapop.runs.run import Run

Kept = TypeVar("Kept", "Question", "Ways")
FILE, WAYS_FILE = "questions.jsonl", "ways.jsonl"
MOST = 32 * 2**20  # bytes of a file: a program that asks for days must not fill the disk


@dataclass(frozen=True)
class Reply:
    """One model's reply."""

    model: str
    """"original", "unlearned", "oracle", or the name of another run."""
    text: str
    recall: float | None = None
    """ROUGE-L recall of the right answer, [0, 1]; this and the next two: None where unknown."""
    gold_rank: int | None = None
    """Rank of the right answer's first token, 1 is best."""
    gold_logprob: float | None = None
    """Log-probability of the whole right answer, nats."""


@dataclass(frozen=True)
class Question:
    """A question with the replies to it, as they were when it was asked."""

    prompt: str
    replies: tuple[Reply, ...]
    gold: str = ""
    """The right answer, "" if none was given."""
    verdict: str = ""
    """The verdict in words, see `probes.verdict.verdict`; "" without a right answer."""
    epoch: int | None = None
    """The epoch that was asked; None for the run's result."""
    way: str = ""
    """How it was asked: the name of a way or of a form of the question, "" for as it stands."""
    sampling: dict[str, float] = field(default_factory=dict)
    """Settings of sampling, such as temperature and seed; empty for greedy replies."""
    begun: str = ""
    """The beginning of the answer, which every model continued."""
    earlier: tuple[str, ...] = ()
    """The turns before it, which every model answered itself."""
    strips: tuple[Strip, ...] = ()
    """The replies token by token, in their order; () where only texts were kept."""
    time: float = 0.0
    """When it was asked, in seconds since 1970; set by `keep`."""


@dataclass(frozen=True)
class Ways:
    """A fact asked in all ways, with the replies as they were."""

    fact: str
    """The fact's id."""
    epoch: int
    """The epoch that was asked, also where it is the run's result."""
    kinds: tuple[str, ...]
    """How each prompt asks, see `Prompt.kind`."""
    asked: tuple[Asked, ...]
    """Each prompt with both models' replies."""
    beside: dict[str, tuple[Answer, ...]] = field(default_factory=dict)
    """The replies of each further column, by its name."""
    time: float = 0.0
    """When it was asked, as in `Question`."""

    @property
    def columns(self) -> dict[str, list[Asked]]:
        """Each further column's replies beside the original's."""
        return {
            name: [replace(one, unlearned=its) for one, its in zip(self.asked, replies)]
            for name, replies in self.beside.items()
        }

    @property
    def questions(self) -> list[Question]:
        """Each way as a question, for a table."""
        further = [dict(zip(self.beside, row)) for row in zip(*self.beside.values())]
        rows = zip(self.kinds, self.asked, further or [{}] * len(self.asked))
        return [
            replace(question_of(answers, self.epoch, kind, others), time=self.time)
            for kind, answers, others in rows
        ]


def question_of(
    answers: Asked,
    epoch: int | None = None,
    way: str = "",
    others: Mapping[str, Answer] | None = None,
    sampling: Mapping[str, float] | None = None,
) -> Question:
    """The question to keep, from what `ask` returned. others: replies of further models by name,
    such as the oracle's."""
    sides = {"original": answers.original, "unlearned": answers.unlearned, **(others or {})}
    replies = tuple(
        Reply(name, side.text, side.recall, side.gold_rank, side.gold_logprob)
        for name, side in sides.items()
    )
    words = verdict(answers).text if answers.gold else ""
    about = epoch, way, dict(sampling or {})
    return Question(answers.prompt, replies, answers.gold, words, *about)


def keep(run: Run, question: Kept) -> Kept:
    """Adds what was asked to the run's file, stamped with the time, and returns it. Raises
    RunError: the run is shown to every visitor and keeps no one's questions, the file has `MOST`
    already or cannot be written."""
    file = WAYS_FILE if isinstance(question, Ways) else FILE
    if run.shared:
        reason = f"Run {run.id} is shown to every visitor, so it keeps nobody's questions."
        raise RunError(reason, "Start a run of your own.")
    path = run.folder / file
    if path.exists() and path.stat().st_size >= MOST:
        fix = f"Export them and move {file} away."
        raise RunError(f"Run {run.id} keeps {MOST / 2**20:g} MB of questions already.", fix)
    stamped = replace(question, time=time.time())
    files.append(path, json.dumps(asdict(stamped), ensure_ascii=False, allow_nan=False))
    return stamped


def read(run: Run) -> tuple[Question, ...]:
    """The run's questions in the order in which they were asked; () without any. An incomplete last
    line is ignored. Raises RunError: a line is damaged."""
    return _lines(run, FILE, Question)


def read_ways(run: Run) -> tuple[Ways, ...]:
    """The facts of the run that were asked in all ways, as `read`."""
    return _lines(run, WAYS_FILE, Ways)


def everything(run: Run) -> list[Question]:
    """All that was asked, each way as a question, in the order in which it was asked."""
    ways = (question for one in read_ways(run) for question in one.questions)
    return sorted((*read(run), *ways), key=lambda one: one.time)


def as_rows(questions: Sequence[Question]) -> list[dict[str, Any]]:
    """A flat row a question: each model's values under names such as `unlearned_text`."""
    rows = []
    for question in questions:
        nested = "replies", "strips"
        row = {name: value for name, value in asdict(question).items() if name not in nested}
        for reply in question.replies:
            values = asdict(reply)
            model = values.pop("model")
            row |= {f"{model}_{name}": value for name, value in values.items()}
        rows.append(row)
    return rows


def to_csv(questions: Sequence[Question]) -> str:
    """The questions as CSV; text that a spreadsheet would run as a formula is escaped."""
    return as_csv(as_rows(questions))


def to_json(questions: Sequence[Question]) -> str:
    """The questions as a JSON list, exactly as they are kept."""
    return json.dumps([asdict(one) for one in questions], ensure_ascii=False, indent=1)


KINDS = {"csv": to_csv, "json": to_json}  # ending of a file -> how the questions are written


def _lines(run: Run, file: str, kind: type[Kept]) -> tuple[Kept, ...]:
    fix = "Delete this file: only what you asked is in it."
    return lines_of(run.folder / file, lambda line: as_kind(parse_json(line), kind), tuple, fix)
