"""Scores made wrong on purpose. A method that profits from popularity must lose something under these."""

from __future__ import annotations

import random


def shuffled(scores: dict[str, float], seed: int) -> dict[str, float]:
    """The same scores, dealt to other facts: the distribution is kept, the signal is gone."""
    values = list(scores.values())
    random.Random(seed).shuffle(values)
    return dict(zip(scores, values))


def inverted(scores: dict[str, float]) -> dict[str, float]:
    """The most popular fact gets the lowest score and so on: the distribution is kept, the signal is turned round."""
    ranked = sorted(scores, key=lambda fact: (scores[fact], fact))
    values = sorted(scores.values(), reverse=True)
    by_fact = dict(zip(ranked, values))
    return {fact: by_fact[fact] for fact in scores}
