"""One question of each tier, and what every run of a comparison replies to it."""

from collections.abc import Sequence

from adapop.facts.fact import TIERS, Fact
from adapop.probes.prompts import DIRECT
from adapop.probes.recall import KNOWN_FROM, best_recall
from adapop.report.contestants import Contestant
from adapop.report.record import Record
from adapop.report.table import Table

Replies = dict[str, tuple[str, str]]  # fact id -> what the original and the unlearned model reply


def replies_table(compared: Sequence[Contestant]) -> Table | None:
    """The replies to one trained question of each tier, a row per contestant, of its first seed;
    None where the runs are of other facts, or no question was put to all."""
    records = [one.records[0] for one in compared]
    replies_by_run = [_replies(record) for record in records]
    if len({one.sha256 for one in compared}) != 1:
        return None
    facts_asked = [fact for fact in records[0].facts.forget if all(fact.id in replies for replies in replies_by_run)]
    known = [fact for fact in facts_asked if _right(fact, replies_by_run[0][fact.id][0])]
    chosen = [_disputed([fact for fact in known if fact.tier == tier], replies_by_run) for tier in TIERS]
    facts = [fact for fact in chosen if fact]
    if not facts:
        return None
    rows = [
        ("right answer", *(fact.answer for fact in facts)),
        ("original", *(replies_by_run[0][fact.id][0] for fact in facts)),
        *((one.label, *(replies[fact.id][1] for fact in facts)) for one, replies in zip(compared, replies_by_run)),
    ]
    head = ("", *(f"{fact.question} ({fact.tier})" for fact in facts))
    note = (
        "Of each tier the trained question that nearest to half of these runs still answer: no evidence, but examples."
    )
    return Table("One question, every run", head, tuple(rows), note)


def _replies(record: Record) -> Replies:
    """By fact to forget: from the frames of a run, else from its probes."""
    answers = [frame.answers for frame in record.frames if frame.answers]
    if len(answers) > 1 and record.frames[0].answers:
        return dict(zip((fact.id for fact in record.facts.forget), zip(answers[0], answers[-1])))
    rows = [row for row in record.rows if (row.group, row.kind) == ("forget", DIRECT)]
    return {row.fact_id: (row.original.text, row.unlearned.text) for row in rows}


def _disputed(facts: Sequence[Fact], replies_by_run: Sequence[Replies]) -> Fact | None:
    """The fact that nearest to half of the runs still answer, the first of equals."""

    def from_half(fact: Fact) -> float:
        return abs(sum(_right(fact, replies[fact.id][1]) for replies in replies_by_run) / len(replies_by_run) - 0.5)

    return min(facts, key=from_half, default=None)


def _right(fact: Fact, reply: str) -> bool:
    return best_recall(fact.answers, reply) >= KNOWN_FROM
