"""Which Wikidata items a fact is about, by candidates and their statements. No network access.

A label names many things: Paris is a city, a town in Texas, a Trojan prince. The first search hit
is therefore not enough: in DUET, the town of Duran became Dante Alighieri. What decides, best
first:

    a statement between a candidate for the subject and one for the object, if it leaves one pair
    the types (P31) of items that statements have linked for the same relation, if they leave one
    candidate there being only one candidate

Otherwise it stays unknown.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from adapop.facts.fact import Fact

# disambiguation page, category, template, list: pages with a thing's name that are not it
PAGES = frozenset({"Q4167410", "Q4167836", "Q11266439", "Q13406463"})
LONGEST_LABEL = 250  # characters; no item has a longer name, and a search for one is refused
QID = re.compile(r"Q[1-9]\d*")

STATED = "statement found"
TOLD_APART = "statement found, told apart by type"
FITS = "type fits, statement not found"
ALONE = "only candidate, statement not found"
NOT_FOUND = "not found: no item has this name"
SAME = "subject and object are the same item"


@dataclass(frozen=True)
class Entity:
    """The part of a Wikidata item that is used.

    qid: its id, such as "Q90". sitelinks: number of wiki pages about it. statements: their number,
    identifiers included, as in `wikibase:statements`. identifiers: number of statements that are
    external identifiers. links: property -> ids of the items in its statements, without deprecated
    ones. names: label and aliases, casefolded. article: title of its page in the Wikipedia of the
    look-up's language, "" without one.
    """

    qid: str
    label: str
    description: str
    sitelinks: int
    statements: int
    identifiers: int
    links: Mapping[str, Sequence[str]]
    names: Sequence[str]
    article: str = ""

    @property
    def types(self) -> frozenset[str]:
        """Ids of the items that it is an instance of."""
        return frozenset(self.links.get("P31", ()))

    @classmethod
    def read(cls, row: dict, language: str) -> Entity:
        """The entity in a row of a `wbgetentities` reply; of a merged item, with another id.

        Raises:
            KeyError, TypeError, AttributeError, ValueError: the row is not built as an item.
        """
        groups = mapping(row["claims"])
        statements = [statement for group in groups.values() for statement in group]
        label = mapping(row["labels"]).get(language, {}).get("value", "")
        sites = mapping(row["sitelinks"])
        aliases = [alias["value"] for alias in mapping(row["aliases"]).get(language, [])]
        return cls(
            qid=QID.fullmatch(row["id"]).group(),
            label=label,
            description=mapping(row["descriptions"]).get(language, {}).get("value", ""),
            sitelinks=len(sites),
            statements=len(statements),
            identifiers=sum(
                statement["mainsnak"].get("datatype") == "external-id" for statement in statements
            ),
            links={pid: items for pid, group in groups.items() if (items := _items(group))},
            names=[plain(name).casefold() for name in (label, *aliases)],
            article=str(sites.get(f"{language.replace('-', '_')}wiki", {}).get("title", "")),
        )


@dataclass(frozen=True)
class Choice:
    """The item on one side of a fact, None if undecided; and what decided, or why nothing did."""

    entity: Entity | None
    how: str


@dataclass(frozen=True)
class Link:
    """The items on both sides of a fact, and the properties of the statements between them."""

    subject: Choice
    object: Choice
    properties: tuple[str, ...] = ()

    @property
    def stated(self) -> bool:
        """Whether exactly one pair of candidates has a statement between them."""
        return self.subject.how == self.object.how == STATED

    @property
    def sides(self) -> dict[str, Choice]:
        """The name of each side -> the choice on it."""
        return {"subject": self.subject, "object": self.object}

    @property
    def reason(self) -> str:
        """Why a side is unknown, or what is doubtful about the link; "" if nothing is."""
        reasons = [
            f"{side} {choice.how}" for side, choice in self.sides.items() if choice.entity is None
        ]
        if not reasons:
            reasons += dict.fromkeys(
                choice.how for choice in self.sides.values() if choice.how != STATED
            )
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
        self._seen: dict[tuple[str, str], set[str]] = defaultdict(set)

    def learn(self, relation: str, link: Link) -> None:
        """Adds both sides of a stated link as examples of the relation, if it is not ""."""
        if relation:
            self._seen[relation, "subject"] |= link.subject.entity.types
            self._seen[relation, "object"] |= link.object.entity.types

    def fitting(self, relation: str, side: str, candidates: Sequence[Entity]) -> list[Entity]:
        """The candidates that share a type with the examples."""
        return [
            entity
            for entity in candidates
            if entity.types & self._seen.get((relation, side), set())
        ]


def plain(label: str) -> str:
    """A label as Wikidata stores it: in NFC, with single spaces between words only."""
    return " ".join(unicodedata.normalize("NFC", label).split())


def can_be_a_name(label: str) -> bool:
    """Whether a label can be an item's name: not empty, not too long, without control characters or
    surrogates. Wikidata refuses to search for some of the others."""
    return 0 < len(label) <= LONGEST_LABEL and not any(
        unicodedata.category(sign) in ("Cc", "Cs") for sign in label
    )


def labels(fact: Fact) -> tuple[tuple[str, str], ...]:
    """(kind, label) pairs to search for: subject, object, relation."""
    return (
        ("item", plain(fact.subject)),
        ("item", plain(fact.object) or plain(fact.answer)),
        ("property", plain(fact.relation)),
    )


def is_called(hit: object, form: re.Pattern[str], label: str) -> bool:
    """Whether a search hit has a valid id and is found by just this label or alias, no prefix."""
    match = hit.get("match") if isinstance(hit, dict) else None
    if not isinstance(match, dict) or match.get("type") not in ("label", "alias"):
        return False
    same = plain(str(match.get("text"))).casefold() == label.casefold()
    return same and form.fullmatch(str(hit.get("id"))) is not None


def mapping(value: object) -> dict:
    """A JSON object of MediaWiki, which writes an empty one as []. Raises ValueError for others."""
    if value == []:
        return {}
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def candidates(entities: Iterable[Entity]) -> list[Entity]:
    """The items that a fact can be about, each once (two ids may lead to one), no wiki pages."""
    return list({entity.qid: entity for entity in entities if not entity.types & PAGES}.values())


def link(
    subjects: Sequence[Entity],
    objects: Sequence[Entity],
    properties: Iterable[str],
    relation: str,
    types: Types,
) -> Link:
    """The items on both sides of a fact. subjects, objects: the candidates. properties: ids of the
    properties with the relation's name. types: examples of other facts' types."""
    pairs = _joined(subjects, objects, frozenset(properties))
    if not pairs:
        return Link(
            _by_type(subjects, relation, "subject", types),
            _by_type(objects, relation, "object", types),
        )
    subjects = candidates(pair.subject for pair in pairs)
    objects = candidates(pair.object for pair in pairs)
    fit_subjects = types.fitting(relation, "subject", subjects) or subjects
    fit_objects = types.fitting(relation, "object", objects) or objects
    fitting = [
        pair for pair in pairs if pair.subject in fit_subjects and pair.object in fit_objects
    ]
    if len(fitting) != 1:
        return Link(_if_one(subjects), _if_one(objects))
    how = STATED if len(pairs) == 1 else TOLD_APART
    pair = fitting[0]
    return Link(Choice(pair.subject, how), Choice(pair.object, how), tuple(sorted(pair.properties)))


def _joined(
    subjects: Sequence[Entity], objects: Sequence[Entity], named: frozenset[str]
) -> list[_Pair]:
    """Pairs with a statement in either direction: of the relation's properties, or else of any."""
    pairs = [
        _Pair(subject, object_, properties)
        for subject in subjects
        for object_ in objects
        if (properties := _between(subject, object_) | _between(object_, subject))
    ]
    by_relation = [_Pair(pair.subject, pair.object, pair.properties & named) for pair in pairs]
    return [pair for pair in by_relation if pair.properties] or pairs


def _items(statements: Sequence[dict]) -> list[str]:
    """Ids of the items that are the main value of statements."""
    snaks = [statement["mainsnak"] for statement in statements if statement["rank"] != "deprecated"]
    return [
        snak["datavalue"]["value"]["id"]
        for snak in snaks
        if snak.get("datatype") == "wikibase-item" and snak["snaktype"] == "value"
    ]


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
