"""Decides which Wikidata items a fact is about, from candidates and their statements; no network.

The first search hit is not enough: in DUET, the town of Duran became Dante Alighieri. These decide,
best first; without any, the item stays unknown:

    - a statement between a candidate subject and a candidate object, if only one pair has any
    - the types (P31) of the items that such statements linked for the same relation, if only
      one candidate has them
    - the candidate itself, if it is the only one"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adapop.facts.fact import Fact
from adapop.popularity.wikidata_items import Entity, plain

# disambiguation page, category, template, list: pages that have a thing's name but are not it
PAGES = frozenset({"Q4167410", "Q4167836", "Q11266439", "Q13406463"})
STATED = "statement found"
TOLD_APART = "statement found, told apart by type"
FITS = "type fits, statement not found"
ALONE = "only candidate, statement not found"
NOT_FOUND = "not found: no item has this name"
SAME = "subject and object are the same item"


@dataclass(frozen=True)
class Choice:
    """The item on one side of a fact, None if undecided. how: what decided, or why nothing did."""

    entity: Entity | None
    how: str


@dataclass(frozen=True)
class Link:
    """The items on both sides of a fact. properties: of the statements between them."""

    subject: Choice
    object: Choice
    properties: tuple[str, ...] = ()

    @property
    def stated(self) -> bool:
        """Whether exactly one pair of candidates has a statement between them."""
        return self.subject.how == self.object.how == STATED

    @property
    def sides(self) -> dict[str, Choice]:
        return {"subject": self.subject, "object": self.object}

    @property
    def reason(self) -> str:
        """Why a side is unknown, or a doubt about the link; "" without either."""
        sides = self.sides.items()
        reasons = [f"{side} {choice.how}" for side, choice in sides if choice.entity is None]
        if not reasons:
            reasons += dict.fromkeys(choice.how for _, choice in sides if choice.how != STATED)
            reasons += [SAME] if self.subject.entity.qid == self.object.entity.qid else []
        return f"{'; '.join(reasons).capitalize()}." if reasons else ""


@dataclass(frozen=True)
class _Pair:
    subject: Entity
    object: Entity
    properties: frozenset[str]


class Types:
    """The types of each relation's subjects and objects, from links that a statement decided."""

    def __init__(self) -> None:
        self._types: dict[tuple[str, str], set[str]] = defaultdict(set)

    def learn(self, relation: str, link: Link) -> None:
        """Adds both sides of a stated link as examples of the relation, unless that is ""."""
        if relation:
            self._types[relation, "subject"] |= link.subject.entity.types
            self._types[relation, "object"] |= link.object.entity.types

    def fitting(self, relation: str, side: str, candidates: Sequence[Entity]) -> list[Entity]:
        """The candidates that share a type with the examples."""
        types = self._types.get((relation, side), set())
        return [entity for entity in candidates if entity.types & types]


def labels(fact: Fact) -> tuple[tuple[str, str], ...]:
    """(kind, label) pairs to search for: subject, object, relation."""
    object_ = plain(fact.object) or plain(fact.answer)
    return ("item", plain(fact.subject)), ("item", object_), ("property", plain(fact.relation))


def candidates(entities: Iterable[Entity]) -> list[Entity]:
    """The items that a fact can be about, each once (two ids may be one item), no wiki pages."""
    return list({entity.qid: entity for entity in entities if not entity.types & PAGES}.values())


def link(
    subjects: Sequence[Entity],
    objects: Sequence[Entity],
    properties: Iterable[str],
    relation: str,
    types: Types,
) -> Link:
    """The items on both sides of a fact. subjects, objects: the candidates. properties: ids of the
    properties with the relation's name. types: those seen with other facts."""
    pairs = _stated_pairs(subjects, objects, frozenset(properties))
    if not pairs:
        subject = _by_type(subjects, relation, "subject", types)
        return Link(subject, _by_type(objects, relation, "object", types))
    subjects = candidates(pair.subject for pair in pairs)
    objects = candidates(pair.object for pair in pairs)
    fit_subjects = types.fitting(relation, "subject", subjects) or subjects
    fit_objects = types.fitting(relation, "object", objects) or objects
    fitting = [pair for pair in pairs if pair.subject in fit_subjects]
    fitting = [pair for pair in fitting if pair.object in fit_objects]
    if len(fitting) != 1:
        return Link(_if_one(subjects), _if_one(objects))
    how = STATED if len(pairs) == 1 else TOLD_APART
    pair = fitting[0]
    return Link(Choice(pair.subject, how), Choice(pair.object, how), tuple(sorted(pair.properties)))


def _stated_pairs(
    subjects: Sequence[Entity], objects: Sequence[Entity], named: frozenset[str]
) -> list[_Pair]:
    """Pairs with a statement in either direction, by a property in `named` or, if none, by any."""
    pairs = [
        _Pair(subject, object_, properties)
        for subject in subjects
        for object_ in objects
        if (properties := _between(subject, object_) | _between(object_, subject))
    ]
    by_relation = [_Pair(pair.subject, pair.object, pair.properties & named) for pair in pairs]
    return [pair for pair in by_relation if pair.properties] or pairs


def _between(first: Entity, second: Entity) -> frozenset[str]:
    return frozenset(pid for pid, named in first.links.items() if second.qid in named)


def _by_type(candidates: Sequence[Entity], relation: str, side: str, types: Types) -> Choice:
    fitting = types.fitting(relation, side, candidates)
    if len(fitting) == 1:
        return Choice(fitting[0], FITS)
    return Choice(candidates[0], ALONE) if len(candidates) == 1 else _undecided(candidates)


def _if_one(candidates: Sequence[Entity]) -> Choice:
    return Choice(candidates[0], STATED) if len(candidates) == 1 else _undecided(candidates)


def _undecided(candidates: Sequence[Entity]) -> Choice:
    return Choice(None, f"ambiguous: {len(candidates)} candidates" if candidates else NOT_FOUND)
