"""Wikidata's items and properties: searched for by label, requested, and cached. Requests are
serial and back off when the servers lag, as Wikimedia asks. Only labels are sent.

`link` decides which items a fact is about. The first search hit is not enough: in DUET, the town of
Duran became Dante Alighieri. These decide, best first; without any, the item stays unknown:

    - a statement between a candidate subject and a candidate object, if only one pair has any
    - the types (P31) of the items that such statements linked for the same relation, if only
      one candidate has them
    - the candidate itself, if it is the only one
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from adapop.errors import NetworkError
from adapop.facts.fact import Fact
from adapop.online.cache import Cache, Cached
from adapop.online.client import Web
from adapop.progress import Progress

ENTITY = "entity with article"  # a cache key; entities kept without their article have another
NEAR = 5  # search hits whose other names are checked as well
BATCH = 50  # the limit for ids per request and hits per search, except for bots
# the server refuses requests above this replication lag; Wikimedia's recommended value
LAG_SECONDS = 5
LONGEST_LABEL = 250  # characters; no item has a longer name, and a search for one is refused
QID = re.compile(r"Q[1-9]\d*")
ID = {"item": QID, "property": re.compile(r"P[1-9]\d*")}
CODE = re.compile(r"[\w\\-]{1,120}")
# error codes, with status 200, of a busy MediaWiki
BUSY = re.compile(
    r"maxlag|readonly|internal_api_error.*|.*(ratelimit|too-busy|timeout|backend-error).*"
)
LATER = "Try again later; what was found is kept."


@dataclass(frozen=True)
class Entity:
    """The part of a Wikidata item that is used.

    qid: its id, such as "Q90". sitelinks: number of wiki pages about it. statements: their number,
    identifiers included, as in `wikibase:statements`. identifiers: those that are external
    identifiers. links: property -> ids of the items in its statements that are not deprecated.
    names: label and aliases, casefolded. article: its title in the language's Wikipedia, or ""."""

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
        """The entity in a row of a `wbgetentities` reply; if the item was merged, with its new id.
        Raises KeyError, TypeError, AttributeError, ValueError: the row is not built as an item."""
        groups, sites = _mapping(row["claims"]), _mapping(row["sitelinks"])
        snaks = [statement["mainsnak"] for group in groups.values() for statement in group]
        label = _mapping(row["labels"]).get(language, {}).get("value", "")
        aliases = [alias["value"] for alias in _mapping(row["aliases"]).get(language, [])]
        return cls(
            qid=QID.fullmatch(row["id"]).group(),
            label=label,
            description=_mapping(row["descriptions"]).get(language, {}).get("value", ""),
            sitelinks=len(sites),
            statements=len(snaks),
            identifiers=sum(snak.get("datatype") == "external-id" for snak in snaks),
            links={pid: items for pid, group in groups.items() if (items := _items(group))},
            names=[plain(name).casefold() for name in (label, *aliases)],
            article=str(sites.get(f"{language.replace('-', '_')}wiki", {}).get("title", "")),
        )


class Entities:
    """Wikidata's items and properties, in one language."""

    def __init__(self, progress: Progress, cache: Cache, base: str, language: str) -> None:
        self._web = Web(base, "Wikidata", progress)
        self._progress = progress
        self._cache = cache
        self._language = language
        self.begin(0)

    def begin(self, labels: int) -> None:
        """Starts the progress of a look-up of this many labels."""
        self._labels, self._fetched = labels, 0
        self._searched: set[tuple[str, str]] = set()

    def is_new(self, kind: str, label: str) -> bool:
        """Whether `search` would send a request for this label."""
        return can_be_a_name(label) and self._cache.get(*self._key(kind, label)) is None

    def search(self, kind: str, label: str) -> Cached:
        """Ids of the items or properties with this label or alias in any case, searched for once.

        "exact": hits that match by the label. "near": the first hits for an item, which may have
        the label as an alias. A hit reports one match only: a search for Washington finds
        Washington, D.C. by its label, not by its alias Washington."""
        if not can_be_a_name(label):
            return Cached({"exact": [], "near": []}, "")
        self._searched.add((kind, label))
        key = self._key(kind, label)
        if known := self._cache.get(*key):
            return known
        sought = {"type": kind, "search": label, "limit": BATCH, "language": self._language}
        hits = self._ask("wbsearchentities", uselang=self._language, **sought).get("search")
        if not isinstance(hits, list):
            raise _strange("search")
        exact = [hit["id"] for hit in hits if _is_called(hit, ID[kind], label)]
        first = [hit.get("id") for hit in hits if isinstance(hit, dict) and kind == "item"][:NEAR]
        near = [qid for qid in first if QID.fullmatch(str(qid))]
        known = self._cache.put({"exact": exact, "near": near}, *key)
        self._say()
        return known

    def known(self, qid: str) -> Cached | None:
        """The cached fields of an `Entity` (value None: it is deleted); None if not cached."""
        return self._cache.get("wikidata", ENTITY, self._language, qid)

    def fetch(self, qids: Sequence[str]) -> None:
        """Requests and caches entities. Those missing from a reply are requested again, half at a
        time."""
        props = "sitelinks|claims|labels|aliases|descriptions"
        language = {"languages": self._language, "languagefallback": 1}
        reply = self._ask("wbgetentities", ids="|".join(qids), props=props, **language)
        try:
            rows = _mapping(reply["entities"])
        except (KeyError, ValueError):
            raise _strange("entities") from None
        for qid in filter(rows.__contains__, qids):
            self._keep(qid, _record(rows[qid], self._language))
        missing = [qid for qid in qids if qid not in rows]
        if len(qids) == len(missing) == 1:
            self._keep(missing.pop(), None)
        self._say()
        middle = len(missing) // 2
        for half in filter(None, (missing[:middle], missing[middle:])):
            self.fetch(half)

    def _key(self, kind: str, label: str) -> tuple[str, ...]:
        return "wikidata", "search", self._language, kind, label

    def _keep(self, qid: str, record: dict | None) -> None:
        self._cache.put(record, "wikidata", ENTITY, self._language, qid)
        self._fetched += 1

    def _ask(self, action: str, **params: object) -> dict:
        params |= {"action": action, "format": "json", "maxlag": LAG_SECONDS}
        reply = self._web.get("/w/api.php", lambda reply: BUSY.fullmatch(_fault(reply)), **params)
        if code := _fault(reply):
            own = code in ("badvalue", "unknown_language")
            fix = f"Is {self._language} a language of Wikidata?" if own else LATER
            raise NetworkError(f"Wikidata rejects a request ({code}).", fix)
        return reply if isinstance(reply, dict) else {}

    def _say(self) -> None:
        searched = f"labels {len(self._searched):,} of {self._labels:,}"
        self._progress.say(f"Wikidata: {searched}, entities {self._fetched:,}")


def plain(label: str) -> str:
    """A label as Wikidata stores it: in NFC, with single spaces between words only."""
    return " ".join(unicodedata.normalize("NFC", label).split())


def can_be_a_name(label: str) -> bool:
    """Whether a label can be an item's name: not empty, not too long, and without control
    characters or surrogates. Wikidata refuses to search for some labels that cannot."""
    kinds = map(unicodedata.category, label)
    return 0 < len(label) <= LONGEST_LABEL and {"Cc", "Cs"}.isdisjoint(kinds)


def _is_called(hit: object, form: re.Pattern[str], label: str) -> bool:
    """Whether a search hit has a valid id and was found by this label or alias in full."""
    match = hit.get("match") if isinstance(hit, dict) else None
    if not isinstance(match, dict) or match.get("type") not in ("label", "alias"):
        return False
    same = plain(str(match.get("text"))).casefold() == label.casefold()
    return same and form.fullmatch(str(hit.get("id"))) is not None


def _mapping(value: object) -> dict:
    """A JSON object of MediaWiki, which writes {} as []. Raises ValueError: it is no object."""
    if value == []:
        return {}
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _items(statements: Sequence[dict]) -> list[str]:
    """Ids of the items that are the main value of statements."""
    snaks = [statement["mainsnak"] for statement in statements if statement["rank"] != "deprecated"]
    items = [snak for snak in snaks if snak.get("datatype") == "wikibase-item"]
    return [snak["datavalue"]["value"]["id"] for snak in items if snak["snaktype"] == "value"]


def _fault(reply: object) -> str:
    """The code of an error in a reply with status 200, or "". The error's text may quote labels."""
    if not isinstance(reply, dict) or "error" not in reply:
        return ""
    code = reply["error"].get("code") if isinstance(reply["error"], dict) else None
    return code if isinstance(code, str) and CODE.fullmatch(code) else "no code"


def _record(row: dict, language: str) -> dict | None:
    """The fields of `Entity` to cache for a row; None if the entity is missing or deleted."""
    try:
        return None if "missing" in row else asdict(Entity.read(row, language))
    except (KeyError, TypeError, AttributeError, ValueError):  # its text may quote the row
        raise _strange("entities") from None


def _strange(part: str) -> NetworkError:
    return NetworkError(f"Wikidata's answer has no {part} that we can read.", LATER)


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
