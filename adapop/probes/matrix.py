"""The leak matrix: what both models answer, by group, tier and form of the question, and fact by fact. No torch.

Several prompts of one fact and kind (rewordings) are averaged first, so that each fact counts once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from adapop.facts.fact import GROUPS, TIERS
from adapop.probes.intervals import Interval, bootstrap
from adapop.probes.prompts import KINDS, NotApplicable, ProbeRow, Reply

MEASURABLE = 0.8  # `sandbox.card` judges by the same


@dataclass(frozen=True)
class Answers:
    """How one model answered: means over the facts.

    recall: [0, 1]. above_chance: (recall - chance) / (1 - chance), at most 1; 0 is what guessing gives. words: length
    of an answer. empty: share of answers without a word. repetition: share of word pairs that came before. cosine:
    with the gold answer, None where it was not measured.
    """

    recall: Interval
    above_chance: float
    words: float
    empty: float
    repetition: float
    cosine: float | None


@dataclass(frozen=True)
class Cell:
    """The facts of one group and tier, asked in one form. tier "all" is the whole group, "unknown" has no score.

    facts: how many. chance: recall of a blind guess. measurable: the original answers well enough that a loss would
    show; reason: why not, else "". delta_logprob is in nats per answer, kl in nats per token (METHODS 3.3).
    """

    group: str
    tier: str
    kind: str
    facts: int
    original: Answers
    unlearned: Answers
    chance: float
    measurable: bool
    reason: str
    delta_logprob: float
    delta_rank: float
    hidden_cosine: float
    kl: float


@dataclass(frozen=True)
class FactRow:
    """One fact's recall by kind, for both models; kinds it was not asked in are absent."""

    fact_id: str
    group: str
    tier: str
    score: float | None
    original: dict[str, float]
    unlearned: dict[str, float]


@dataclass(frozen=True)
class NotAsked:
    """How many facts could not be asked in one way, and why."""

    kind: str
    reason: str
    facts: int


@dataclass(frozen=True)
class LeakMatrix:
    """cells: by group, kind and tier. facts: by group, rarest first, without a score last. not_asked: most first."""

    cells: tuple[Cell, ...]
    facts: tuple[FactRow, ...]
    not_asked: tuple[NotAsked, ...]

    def cell(self, group: str, tier: str, kind: str) -> Cell | None:
        """One cell, None where no fact was asked so."""
        wanted = (group, tier, kind)
        return next((cell for cell in self.cells if (cell.group, cell.tier, cell.kind) == wanted), None)

    def verdicts_by_tier(self, named: Mapping[str, str], group: str) -> dict[str, Counter[str]]:
        """How many facts of each tier of a group have which verdict, given its name by fact id; no empty tier."""
        counts = {tier: Counter() for tier in (*TIERS, "unknown")}
        for row in self.facts:
            if row.group == group:
                counts[row.tier][named[row.fact_id]] += 1
        return {tier: found for tier, found in counts.items() if found}


def leak_matrix(found: Iterable[ProbeRow | NotApplicable], seed: int = 0) -> LeakMatrix:
    """What a battery found, summed up. seed: of the resamples, the same for every cell."""
    asked: dict[tuple[str, str], dict[str, list[ProbeRow]]] = defaultdict(dict)  # by group and kind, then by fact
    left_out: dict[tuple[str, str], set[str]] = defaultdict(set)
    for result in found:
        if isinstance(result, NotApplicable):
            left_out[result.kind, result.reason].add(result.fact_id)
        else:
            asked[result.group, result.kind].setdefault(result.fact_id, []).append(result)
    counts = Counter({key: len(facts) for key, facts in left_out.items()})
    cells = [
        _cell(group, tier, kind, facts, seed)
        for group in GROUPS
        for kind in KINDS
        for tier in ("all", *TIERS, "unknown")
        if (facts := [rows for rows in asked[group, kind].values() if tier in ("all", rows[0].tier)])
    ]
    return LeakMatrix(
        tuple(cells),
        tuple(row for group in GROUPS for row in _fact_rows({kind: asked[group, kind] for kind in KINDS})),
        tuple(NotAsked(*key, facts) for key, facts in counts.most_common()),
    )


def _cell(group: str, tier: str, kind: str, facts: Sequence[Sequence[ProbeRow]], seed: int) -> Cell:
    def mean(value: Callable[[ProbeRow], float]) -> float:
        return fmean(_per_fact(facts, value))

    chance = mean(lambda row: row.chance)
    original = _answers(facts, lambda row: row.original, chance, seed)
    known = original.recall.mean
    return Cell(
        group=group,
        tier=tier,
        kind=kind,
        facts=len(facts),
        original=original,
        unlearned=_answers(facts, lambda row: row.unlearned, chance, seed),
        chance=chance,
        measurable=known >= MEASURABLE,
        reason="" if known >= MEASURABLE else f"the original's recall is {known:.3f}, below {MEASURABLE:g}",
        delta_logprob=mean(lambda row: row.unlearned.gold_logprob - row.original.gold_logprob),
        delta_rank=mean(lambda row: row.delta_rank),
        hidden_cosine=mean(lambda row: row.hidden_cosine),
        kl=mean(lambda row: row.kl),
    )


def _answers(facts: Sequence[Sequence[ProbeRow]], of: Callable[[ProbeRow], Reply], chance: float, seed: int) -> Answers:
    recall = bootstrap(_per_fact(facts, lambda row: of(row).recall), seed)
    measured = all(of(row).cosine is not None for rows in facts for row in rows)
    return Answers(
        recall=recall,
        above_chance=(recall.mean - chance) / (1 - chance),
        words=fmean(_per_fact(facts, lambda row: of(row).words)),
        empty=fmean(_per_fact(facts, lambda row: of(row).words == 0)),
        repetition=fmean(_per_fact(facts, lambda row: of(row).repetition)),
        cosine=fmean(_per_fact(facts, lambda row: of(row).cosine)) if measured else None,
    )


def _per_fact(facts: Sequence[Sequence[ProbeRow]], value: Callable[[ProbeRow], float]) -> list[float]:
    return [fmean(map(value, rows)) for rows in facts]


def _fact_rows(kinds: dict[str, dict[str, list[ProbeRow]]]) -> list[FactRow]:
    """The facts of one group, given their rows by kind and fact."""
    of_fact: dict[str, dict[str, list[ProbeRow]]] = defaultdict(dict)
    for kind, facts in kinds.items():
        for fact_id, rows in facts.items():
            of_fact[fact_id][kind] = rows
    found = []
    for fact_id, by_kind in of_fact.items():
        fact = next(iter(by_kind.values()))[0]
        original, unlearned = (
            {kind: fmean(getattr(row, side).recall for row in rows) for kind, rows in by_kind.items()}
            for side in ("original", "unlearned")
        )
        found.append(FactRow(fact_id, fact.group, fact.tier, fact.score, original, unlearned))
    return sorted(found, key=lambda row: (row.score is None, row.score or 0.0, row.fact_id))
