"""Splits into a validation split, which may choose settings, and a reported test split. No torch.

Holdout facts and utility questions are split by fact, rewordings by position, so that settings
chosen on some phrasings are reported on others. The splits depend on the facts alone. Retained
facts and facts to forget are the same in both splits, as they are trained on.
"""

import hashlib
from collections.abc import Mapping, Sequence
from statistics import fmean

from adapop.facts.fact import TIERS, Fact, FactSet
from adapop.probes.prompts import REWORDED

VALIDATION, TEST = "validation", "test"
SPLITS = (VALIDATION, TEST)


def facts_of(facts: Sequence[Fact], split: str) -> tuple[Fact, ...]:
    """The facts of one split, in their order. Facts go alternately to both splits, ordered by
    score, then by relation, so that sizes differ by at most one, overall and for each score."""

    def order(fact: Fact) -> tuple[bool, float, str, str]:
        # Sorted by a hash last: a fixed pseudo-random order, independent of file order and
        # alphabet.
        drawn = hashlib.sha256(fact.id.encode()).hexdigest()
        return fact.score is None, fact.score or 0.0, fact.relation, drawn

    by_level = sorted(facts, key=order)
    chosen = {fact.id for place, fact in enumerate(by_level) if SPLITS[place % 2] == split}
    return tuple(fact for fact in facts if fact.id in chosen)


def wordings_of(fact: Fact, split: str) -> tuple[str, ...]:
    """Rewordings of one split: first, third, ... for validation; a single one is in both."""
    return fact.paraphrases[SPLITS.index(split) :: 2] or fact.paraphrases


def questions_of(facts: FactSet, split: str) -> dict[str, list[tuple[Fact, tuple[str, ...]]]]:
    """Result column without its tier -> facts with their questions in this split."""
    holdout = facts_of(facts.holdout, split)
    return {
        f"forget_{REWORDED}": _reworded(facts.forget, split),
        "holdout_direct": [(fact, (fact.question,)) for fact in holdout],
        "holdout_reworded": _reworded(holdout, split),
        "utility": [(fact, (fact.question,)) for fact in facts_of(facts.utility, split)],
    }


def _reworded(facts: Sequence[Fact], split: str) -> list[tuple[Fact, tuple[str, ...]]]:
    return [(fact, wordings_of(fact, split)) for fact in facts if fact.paraphrases]


def by_tier(
    members: Sequence[tuple[Fact, Sequence[str]]], recall: Mapping[tuple[str, str], float]
) -> dict[str, float]:
    """Tier or "all" -> the mean over its facts. recall: by fact id and question."""
    values: dict[str, list[float]] = {tier: [] for tier in ("all", *TIERS)}
    for fact, questions in members:
        mean = fmean(recall[fact.id, question] for question in questions)
        for tier in {"all", fact.tier} & values.keys():
            values[tier].append(mean)
    return {tier: fmean(some) for tier, some in values.items() if some}
