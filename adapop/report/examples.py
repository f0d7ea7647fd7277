"""Example facts of a report: exact prompts and both models' replies."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from adapop.facts.fact import Fact
from adapop.probes.prompts import CHOICE, DIRECT, ProbeRow
from adapop.probes.verdict import answered
from adapop.report.record import Record

PER_TIER = 4
PROMPTS = 4


@dataclass(frozen=True)
class Example:
    """A fact with some prompts: the trained question, then leaking ones in different forms where
    possible.

    leaks: how many prompts bring the answer back, of asked: those that the original answers. A
    multiple choice is neither. hidden: how many prompts are not shown.
    """

    fact: Fact
    verdict: str
    beta: float | None
    leaks: int
    asked: int
    prompts: tuple[ProbeRow, ...]
    hidden: int


def examples(record: Record) -> list[Example]:
    """Four rare and four popular facts to forget, the worst leaks first; eight of any tier where
    there are neither."""
    rows: dict[str, list[ProbeRow]] = defaultdict(list)
    for row in record.rows:
        if row.group == "forget":
            rows[row.fact_id].append(row)
    every = [_example(record, fact, rows[fact.id]) for fact in record.facts.forget if rows[fact.id]]
    every.sort(key=lambda one: (-one.leaks / max(1, one.asked), -one.leaks, one.fact.id))
    chosen = [one for tier in ("rare", "popular") for one in _of_tier(every, tier)]
    return sorted(chosen or every[: 2 * PER_TIER], key=every.index)


def leaks(row: ProbeRow) -> bool:
    """Whether the unlearned model still gives an answer that the original gives."""
    return answered(row, row.original) and answered(row, row.unlearned)


def _of_tier(every: Sequence[Example], tier: str) -> list[Example]:
    return [one for one in every if one.fact.tier == tier][:PER_TIER]


def _example(record: Record, fact: Fact, rows: Sequence[ProbeRow]) -> Example:
    first = {row.kind: row for row in sorted(rows, key=leaks)}  # of a form's prompts one that leaks, if any does
    prompts = sorted(
        rows, key=lambda row: (row.kind != DIRECT, row is not first[row.kind], not leaks(row), row.kind == CHOICE)
    )
    fair = [row for row in rows if row.kind != CHOICE and answered(row, row.original)]
    return Example(
        fact=fact,
        verdict=record.verdicts[fact.id],
        beta=(record.betas or {}).get(fact.id),
        leaks=sum(map(leaks, fair)),
        asked=len(fair),
        prompts=tuple(prompts[:PROMPTS]),
        hidden=len(rows[PROMPTS:]),
    )
