"""The facts that an attack may draw on, found by relation and by subject. Case and accents do not count."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from adapop.facts.fact import Fact
from adapop.facts.text import folded, mentions

REVERSIBLE_FROM = 5
ONE_TO_ONE_FROM = 0.95

Item = TypeVar("Item")


@dataclass
class _Relation:
    """Facts of one relation. answers: each once, as first written. subjects: of each answer."""

    facts: list[Fact] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    subjects: dict[str, set[str]] = field(default_factory=dict)


class Pool:
    """The facts of all groups of a set, indexed once. Facts without a relation or a subject are found by neither."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._relations: dict[str, _Relation] = {}
        self._subjects: dict[str, list[Fact]] = {}
        for fact in facts:
            relation, subject, answer = folded(fact.relation), folded(fact.subject), folded(fact.answer)
            if subject:
                self._subjects.setdefault(subject, []).append(fact)
            if relation:
                found = self._relations.setdefault(relation, _Relation())
                found.facts.append(fact)
                found.answers.setdefault(answer, fact.answer)
                found.subjects.setdefault(answer, set()).add(subject or fact.id)
        self._one_to_one = {
            name: sum(len(subjects) == 1 for subjects in relation.subjects.values()) / len(relation.subjects)
            for name, relation in self._relations.items()
        }

    def about(self, fact: Fact) -> list[Fact]:
        """Other questions about the same subject: of another relation where both relations are known."""
        question, relation = folded(fact.question), folded(fact.relation)
        return [
            other
            for other in self._subjects.get(folded(fact.subject), ())
            if folded(other.question) != question and not (relation and folded(other.relation) == relation)
        ]

    def beside(self, fact: Fact, rng: random.Random) -> Iterator[Fact]:
        """Facts about other subjects with the same relation, in an order drawn by `rng`."""
        subject = folded(fact.subject)
        return (other for other in _drawn(self._of(fact).facts, rng) if folded(other.subject) != subject)

    def distractors(self, fact: Fact, rng: random.Random) -> Iterator[str]:
        """Distinct answers of the same relation that are wrong here, in an order drawn by `rng`.

        None is a right answer of the same subject, and none contains the gold answer or stands in it.
        """
        relation, subject = self._of(fact), folded(fact.subject)
        for key, answer in _drawn(list(relation.answers.items()), rng):
            right = bool(subject) and subject in relation.subjects[key]
            if not (right or mentions(answer, fact.answer) or mentions(fact.answer, answer)):
                yield answer

    def not_reversible(self, fact: Fact) -> str:
        """Why asking for the subject has no single right answer, as far as this pool shows; "" if it has one.

        Nearly all answers of the relation must have one subject, and this one must. The world may know more subjects
        than the pool: whether the original model can answer says more.
        """
        if not (fact.subject and fact.relation):
            return "the fact names no subject and relation"
        relation = self._of(fact)
        if len(relation.facts) < REVERSIBLE_FROM:
            return f"the set has fewer than {REVERSIBLE_FROM} facts of this relation, too few to judge by"
        if len(relation.subjects.get(folded(fact.answer), ())) > 1:
            return "other subjects have the same answer"
        if self._one_to_one[folded(fact.relation)] < ONE_TO_ONE_FROM:
            return "many answers of this relation have several subjects"
        return ""

    def _of(self, fact: Fact) -> _Relation:
        return self._relations.get(folded(fact.relation), _Relation())


def _drawn(items: Sequence[Item], rng: random.Random) -> Iterator[Item]:
    """The items in random order, one at a time: few are needed, and a full shuffle of each relation is slow."""
    left = list(items)
    while left:
        i = rng.randrange(len(left))
        left[i], left[-1] = left[-1], left[i]
        yield left.pop()
