"""The leak matrix: both models' recall by group, tier and form, and fact by fact. No torch.

Several prompts of one fact and kind (rewordings) are averaged first, so that each fact counts once.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import TypeVar

from adapop.facts.fact import GROUPS, TIERS
from adapop.probes.intervals import Interval, of_facts
from adapop.probes.prompts import DIRECT, EVERY_KIND, NotApplicable, ProbeRow, Reply
from adapop.probes.verdict import KNOWN_FROM, answered

MEASURABLE = 0.8  # the same threshold as in `sandbox.pretrain`
FEWEST = 3  # facts that the original must answer for a cell to be about these alone
T = TypeVar("T", ProbeRow, Reply)
ByFact = Sequence[Sequence[ProbeRow]]  # the rows of each fact


@dataclass(frozen=True)
class Answers:
    """One model's replies in a cell of the matrix, as means over the facts."""

    recall: Interval
    """ROUGE-L recall, [0, 1]."""
    above_chance: float
    """(recall - chance) / (1 - chance), at most 1; 0 is what guessing gives."""
    words: float
    """Length of a reply in words."""
    empty: float
    """Share of replies without a word, [0, 1]."""
    repetition: float
    """Share of word pairs that occurred before in the reply, [0, 1)."""
    cosine: float | None
    """MiniLM cosine with the gold answer, [-1, 1]; None if a reply has none."""
    near: float | None
    """Share of facts whose right answer is first or second guess, [0, 1]; None if a reply has
    none."""
    relation_rank: float | None
    """Rank of the right answer among the relation's, from 1; None if a fact has no such rank."""


@dataclass(frozen=True)
class Cell:
    """The facts of one group and tier, asked in one form. Numbers are means over all facts asked;
    but if the original's recall is below `MEASURABLE` and it answers at least `FEWEST`, over these
    (not in a multiple choice)."""

    group: str
    """forget, retain, holdout or utility."""
    tier: str
    """A tier of scores, "unknown" for facts without one, or "all" for the whole group."""
    kind: str
    """One of `prompts.EVERY_KIND`."""
    facts: int
    """Number of facts that the means are over, at least 1."""
    asked: int
    """Number of facts asked; more than `facts` if the means are over the answered ones alone."""
    original: Answers
    """The original model's replies."""
    unlearned: Answers
    """The unlearned model's replies to the same prompts."""
    chance: float
    """Recall of a random guess, [0, 1)."""
    measurable: bool
    """Whether a loss would show: the original's recall is high, or it answers enough facts."""
    reason: str
    """Why it is not measurable, "" if it is."""
    delta_logprob: float
    """Log-probability of the gold answer, unlearned minus original, nats per answer."""
    delta_rank: float | None
    """Rank of the gold tokens, unlearned minus original, mean over the answer; this and the next
    two: None for models of different vocabularies."""
    hidden_cosine: float | None
    """Cosine between both models' hidden states at the answer, [-1, 1]."""
    kl: float | None
    """KL(original || unlearned), nats per token."""


@dataclass(frozen=True)
class FactRow:
    """One fact's recall in every form it was asked in, for both models."""

    fact_id: str
    """The fact's id, unique in its set."""
    group: str
    """forget, retain, holdout or utility."""
    tier: str
    """The tier of its score, "unknown" without one."""
    score: float | None
    """Its popularity, None if unknown."""
    original: dict[str, float]
    """Kind -> the original's recall, [0, 1]; kinds it was not asked in are missing."""
    unlearned: dict[str, float]
    """Kind -> the unlearned model's recall, with the same keys."""


@dataclass(frozen=True)
class NotAsked:
    """Facts that could not be asked in one form for one reason."""

    kind: str
    """The form, one of `prompts.EVERY_KIND` or the name of an attack of the set's own."""
    reason: str
    """Why they could not be asked, without a full stop."""
    facts: int
    """Number of facts."""


@dataclass(frozen=True)
class LeakMatrix:
    """The results of a battery, summed up."""

    cells: tuple[Cell, ...]
    """Ordered by group, kind and tier; only cells with facts."""
    facts: tuple[FactRow, ...]
    """Ordered by group, then from rarest to most popular, facts without a score last."""
    not_asked: tuple[NotAsked, ...]
    """Ordered by number of facts, most first."""

    def cell(self, group: str, tier: str, kind: str) -> Cell | None:
        """The cell of a group, tier and kind; None if it has no facts."""
        place = (group, tier, kind)
        cells = (cell for cell in self.cells if (cell.group, cell.tier, cell.kind) == place)
        return next(cells, None)

    def verdicts_by_tier(self, named: Mapping[str, str], group: str) -> dict[str, Counter[str]]:
        """Tier -> verdict -> number of a group's facts; no empty tiers. named: fact id -> verdict.
        An attack of the set's own, which has no direct question, counts only where none has."""
        counts: dict[str, Counter[str]] = {tier: Counter() for tier in (*TIERS, "unknown")}
        direct = any(DIRECT in row.original for row in self.facts)
        for row in self.facts:
            if row.group == group and (DIRECT in row.original or not direct):
                counts[row.tier][named[row.fact_id]] += 1
        return {tier: numbers for tier, numbers in counts.items() if numbers}


def leak_matrix(results: Iterable[ProbeRow | NotApplicable]) -> LeakMatrix:
    """The leak matrix of a battery's results."""
    # (group, kind) -> fact id -> rows
    by_form: dict[tuple[str, str], dict[str, list[ProbeRow]]] = defaultdict(dict)
    left_out: dict[tuple[str, str], set[str]] = defaultdict(set)
    for result in results:
        if isinstance(result, NotApplicable):
            left_out[result.kind, result.reason].add(result.fact_id)
        else:
            by_form[result.group, result.kind].setdefault(result.fact_id, []).append(result)
    cells, rows = [], []
    for group in GROUPS:
        for kind, tier in product(EVERY_KIND, ("all", *TIERS, "unknown")):
            rows_of_form = by_form[group, kind].values()
            if facts := [of_fact for of_fact in rows_of_form if tier in ("all", of_fact[0].tier)]:
                cells.append(_cell(group, tier, kind, facts))
        rows += _fact_rows({kind: by_form[group, kind] for kind in EVERY_KIND})
    counts = Counter({key: len(facts) for key, facts in left_out.items()})
    not_asked = (NotAsked(*key, facts) for key, facts in counts.most_common())
    return LeakMatrix(tuple(cells), tuple(rows), tuple(not_asked))


def _cell(group: str, tier: str, kind: str, facts: ByFact) -> Cell:
    def mean(value: Callable[[ProbeRow], float]) -> float:
        return fmean(_per_fact(facts, value))

    def compared(name: str) -> float | None:
        unknown = any(getattr(row, name) is None for rows in facts for row in rows)
        return None if unknown else mean(lambda row: getattr(row, name))

    count, chance, reason = len(facts), mean(lambda row: row.chance), ""
    if (recall := mean(lambda row: row.original.recall)) < MEASURABLE:
        right = _per_fact(facts, lambda row: row.original.recall * answered(row, row.original))
        known = [rows for rows, share in zip(facts, right) if share >= KNOWN_FROM]
        # Not in a multiple choice: of facts guessed right by chance, fewer are guessed right again.
        if len(known) >= FEWEST and not chance:
            facts = known
        else:
            reason = f"the original's recall is {recall:.3f}, below {MEASURABLE:g}"
            few = f"it answers {len(known)} of {count} facts"
            reason += f", and {'it may have guessed' if chance else few}"
    return Cell(
        group=group,
        tier=tier,
        kind=kind,
        facts=len(facts),
        asked=count,
        original=_answers([[row.original for row in rows] for rows in facts], chance),
        unlearned=_answers([[row.unlearned for row in rows] for rows in facts], chance),
        chance=chance,
        measurable=not reason,
        reason=reason,
        delta_logprob=mean(lambda row: row.unlearned.gold_logprob - row.original.gold_logprob),
        delta_rank=compared("delta_rank"),
        hidden_cosine=compared("hidden_cosine"),
        kl=compared("kl"),
    )


def _answers(facts: Sequence[Sequence[Reply]], chance: float) -> Answers:
    def mean(name: str) -> float | None:
        values = [[getattr(reply, name) for reply in replies] for replies in facts]
        return None if any(None in of_fact for of_fact in values) else fmean(map(fmean, values))

    recall = of_facts(_per_fact(facts, lambda reply: reply.recall))
    return Answers(
        recall=recall,
        above_chance=(recall.mean - chance) / (1 - chance),
        empty=fmean(_per_fact(facts, lambda reply: reply.words == 0)),
        **{name: mean(name) for name in ("words", "repetition", "cosine", "near", "relation_rank")},
    )


def _per_fact(facts: Sequence[Sequence[T]], value: Callable[[T], float]) -> list[float]:
    return [fmean(map(value, rows)) for rows in facts]


def _fact_rows(kinds: dict[str, dict[str, list[ProbeRow]]]) -> list[FactRow]:
    """The facts of one group. kinds: kind -> fact id -> rows."""
    rows_of_facts = []
    for fact_id in {fact_id for facts in kinds.values() for fact_id in facts}:
        by_kind = {kind: facts[fact_id] for kind, facts in kinds.items() if fact_id in facts}
        fact = next(iter(by_kind.values()))[0]
        items = by_kind.items()
        original = {kind: fmean(row.original.recall for row in rows) for kind, rows in items}
        unlearned = {kind: fmean(row.unlearned.recall for row in rows) for kind, rows in items}
        rows_of_facts += [FactRow(fact_id, fact.group, fact.tier, fact.score, original, unlearned)]
    return sorted(rows_of_facts, key=lambda row: (row.score is None, row.score or 0.0, row.fact_id))
