"""Wrong answers of the right kind, which controls look for, or train on, instead of the right ones."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from adapop.facts.fact import Fact
from adapop.facts.text import asked


def dealt(facts: Sequence[Fact], pool: Sequence[Fact], seed: int) -> list[str | None]:
    """A wrong answer for each fact: the facts' own answers, exchanged among subjects of the same relation.

    So wrong answers are as common among the facts as right ones. Where no exchange is possible, it is another answer of
    the relation in the pool; None if all of those are right. Every answer that the pool has for a subject is right.
    Case and white space are ignored.
    """
    rng = random.Random(seed)
    right: dict[str, set[str]] = defaultdict(set)
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    for fact in pool:
        right[asked(fact.subject)].add(asked(fact.answer))
        answers[fact.relation].setdefault(asked(fact.answer), fact.answer)
    found: list[str | None] = [None] * len(facts)
    for members in _by_relation(facts, rng):
        # in a list sorted by answer, a rotation by the most frequent answer's count changes every answer, if possible
        turn = max(len(same) for same in members)
        order = [i for same in members for i in same]
        for i, other in zip(order, order[turn:] + order[:turn]):
            fact = facts[i]
            known = (right[asked(fact.subject)] if fact.subject else set()) | {asked(fact.answer)}
            wrong = [answer for key, answer in answers[fact.relation].items() if key not in known]
            if asked(facts[other].answer) not in known:
                found[i] = facts[other].answer
            elif wrong:
                found[i] = rng.choice(wrong)
    return found


def _by_relation(facts: Sequence[Fact], rng: random.Random) -> list[list[list[int]]]:
    """Indices of the facts, by relation and by answer; the answers of a relation come in random order."""
    relations: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for i, fact in enumerate(facts):
        relations[fact.relation][asked(fact.answer)].append(i)
    return [rng.sample(list(same.values()), len(same)) for same in relations.values()]


def with_answers(facts: Sequence[Fact], answers: Sequence[str | None]) -> list[Fact]:
    """The facts with other answers; where that is None, with their own."""
    return [replace(fact, answer=fact.answer if answer is None else answer) for fact, answer in zip(facts, answers)]
