"""Wikidata's items and properties: searched for by label, requested, and cached. Requests are
serial and back off when the servers lag, as Wikimedia asks. Only labels are sent."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from adapop.errors import NetworkError
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
            raise NetworkError(f"Wikidata refuses a question ({code}).", fix)
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
