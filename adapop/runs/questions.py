"""Questions of one's own that were asked about a run: kept in its folder, read back, as a table.

RUN/questions.jsonl has a line for each, append-only; each line carries its own SHA-256, as events
do. Torch-free.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from adapop import sums
from adapop.assets import as_kind, parse_json
from adapop.errors import RunError
from adapop.facts.formulas import as_csv
from adapop.probes.verdict import verdict
from adapop.runs import files
from adapop.runs.log import lines_of
from adapop.runs.run import Run

if TYPE_CHECKING:
    from adapop.probes.ask import Answer, Asked

FILE = "questions.jsonl"
MOST = 10_000  # questions of a run: a program that asks for days must not fill the disk


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
    time: float = 0.0
    """When it was asked, in seconds since 1970; set by `keep`."""


def question_of(
    asked: Asked,
    epoch: int | None = None,
    way: str = "",
    others: Mapping[str, Answer] | None = None,
    sampling: Mapping[str, float] | None = None,
) -> Question:
    """The question to keep, from what `ask` returned. others: replies of further models by name,
    such as the oracle's."""
    sides = {"original": asked.original, "unlearned": asked.unlearned, **(others or {})}
    replies = tuple(
        Reply(name, side.text, side.recall, side.gold_rank, side.gold_logprob)
        for name, side in sides.items()
    )
    words = verdict(asked).text if asked.gold else ""
    about = epoch, way, dict(sampling or {})
    return Question(asked.prompt, replies, asked.gold, words, *about)


def keep(run: Run, question: Question) -> Question:
    """Adds a question to the run's file, stamped with the time, and returns it. Raises RunError:
    the run is shown to every visitor and keeps no one's questions, it has `MOST` already, or the
    file cannot be written."""
    if run.shared:
        reason = f"Run {run.id} is shown to every visitor, so it keeps nobody's questions."
        raise RunError(reason, "Start a run of your own.")
    if len(read(run)) >= MOST:
        fix = f"Export them and move {FILE} away."
        raise RunError(f"Run {run.id} keeps {MOST:,} questions already.", fix)
    stamped, path = replace(question, time=time.time()), run.folder / FILE
    line = json.dumps(asdict(stamped), ensure_ascii=False, allow_nan=False)
    with files.writing(path):
        files.cut_torn_line(path)
        with open(path, "a", encoding="utf-8") as log:
            log.write(sums.sealed(line) + "\n")
        files.sync(path)
    return stamped


def read(run: Run) -> tuple[Question, ...]:
    """The run's questions in the order in which they were asked; () without any. An incomplete last
    line is ignored. Raises RunError: a line is damaged."""
    fix = "Delete this file: only the questions of your own are in it."
    return lines_of(run.folder / FILE, _from_json, tuple, fix)


def as_rows(questions: Sequence[Question]) -> list[dict[str, Any]]:
    """A flat row a question: each model's values under names such as `unlearned_text`."""
    rows = []
    for question in questions:
        row = {name: value for name, value in asdict(question).items() if name != "replies"}
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


def _from_json(line: str) -> Question:
    content = parse_json(line)
    content.pop(sums.FIELD, None)
    return as_kind(content, Question)
