"""Popularity as the number of sitelinks and statements of subject and object in Wikidata.

Three steps, with every reply cached at once: a search for each new label; a request for the items
found, fifty at a time; and the decision which of them the fact is about (`linking`). Requests are
serial and back off when the servers lag, as Wikimedia asks. Only labels are sent.
"""

import re
from collections.abc import Iterator, KeysView, Sequence
from dataclasses import asdict, dataclass
from math import ceil

from adapop.errors import ConfigError, NetworkError, truncated
from adapop.facts.fact import Fact
from adapop.facts.scale import WIKIDATA
from adapop.online.cache import Cache, Cached
from adapop.online.client import Web
from adapop.popularity import linking
from adapop.popularity.base import WEB_PACE, Score
from adapop.popularity.linking import Link, can_be_a_name, labels, plain
from adapop.progress import Progress

# DUET's released scores are sitelinks + statements; its first builder counted sitelinks alone
FORMULAS = {
    "sitelinks+statements": lambda entity: entity.sitelinks + entity.statements,
    "sitelinks": lambda entity: entity.sitelinks,
}
ENTITY = "entity with article"  # in the cache, where older versions kept entities without
NEAR = 5  # search hits whose other names are checked as well
BATCH = 50  # the limit for ids per request and hits per search, except for bots
# the server refuses requests above this replication lag; Wikimedia's recommended value
LAG_SECONDS = 5
ID = {"item": linking.QID, "property": re.compile(r"P[1-9]\d*")}
NAMELESS = "The fact has no subject to look for."
CODE = re.compile(r"[\w\\-]{1,120}")
# what MediaWiki answers, with status 200, while it has no time for a question
BUSY = re.compile(
    r"maxlag|readonly|internal_api_error.*|.*(ratelimit|too-busy|timeout|backend-error).*"
)
LANGUAGE = re.compile(r"[a-z]{2,12}(-[a-z0-9]{1,12})*")


@dataclass(frozen=True)
class _Sought:
    """A fact and the ids found for its labels.

    exact: ids found by exactly the label of the subject, and of the object. subjects, objects: ids
    of candidates, including hits whose names are still to be checked. properties: ids of those with
    the relation's name. dates: days of the searches (ISO 8601).
    """

    fact: Fact
    exact: tuple[frozenset[str], frozenset[str]]
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    properties: tuple[str, ...]
    dates: tuple[str, ...]

    @property
    def qids(self) -> KeysView[str]:
        """All candidates, each once, in order."""
        return dict.fromkeys((*self.subjects, *self.objects)).keys()


class Wikidata:
    """A `Proxy` that asks Wikidata. A fact's score is the sum over its subject and its object.

    formula: the score of one entity, a key of `FORMULAS`. language: of the facts' labels, and of
    the labels, descriptions and articles that are kept.

    Raises:
        ConfigError: there is no such formula, or the language is no code such as "en".
    """

    pace = WEB_PACE

    def __init__(
        self,
        progress: Progress,
        cache: Cache,
        formula: str = "sitelinks+statements",
        base: str = "https://www.wikidata.org",
        language: str = "en",
    ) -> None:
        if formula not in FORMULAS:
            message = f"There is no Wikidata formula {formula!r}."
            raise ConfigError(message, f"Choose one of {', '.join(FORMULAS)}.")
        if not LANGUAGE.fullmatch(language):
            message = f"{truncated(language)!r} is no code of a language."
            raise ConfigError(message, "Use one such as en, de or zh.")
        self.source = f"{WIKIDATA} {formula.replace('+', ' + ')}, subject + object"
        self._popularity = FORMULAS[formula]
        self._web = Web(base, "Wikidata", progress)
        self._progress = progress
        self._cache = cache
        self._language = language
        self._searched: set[tuple[str, str]] = set()
        self._labels = self._fetched = 0

    def requests(self, facts: Sequence[Fact]) -> int:
        """About how many requests `scores` makes: searches for new labels, and the items found."""
        pairs = {pair for fact in facts if plain(fact.subject) for pair in labels(fact)}
        new = [
            pair
            for pair in pairs
            if can_be_a_name(pair[1]) and self._cache.get(*self._place(*pair)) is None
        ]
        return len(new) + ceil(NEAR * sum(kind == "item" for kind, _ in new) / BATCH)

    def scores(self, facts: Sequence[Fact]) -> Iterator[Score]:
        """One score per fact: first those decided by a statement, as they are found; the others at
        the end, by type. Raises as `Proxy.scores`."""
        named = [fact for fact in facts if plain(fact.subject)]
        nameless = [fact for fact in facts if not plain(fact.subject)]
        yield from (Score(fact.id, None, self.source, reason=NAMELESS) for fact in nameless)
        types, undecided = linking.Types(), []
        for sought in self._found(named):
            linked, score = self._linked(sought, types)
            if linked.stated:
                types.learn(plain(sought.fact.relation), linked)
                yield score
            else:
                undecided.append(sought)
        yield from (self._linked(sought, types)[1] for sought in undecided)

    def _found(self, facts: Sequence[Fact]) -> Iterator[_Sought]:
        """Facts, as soon as all their candidates are cached. Entities are requested in full
        batches, and the rest at the end: n new ones take ceil(n / 50) requests."""
        self._labels = len(
            {label for fact in facts for label in labels(fact) if can_be_a_name(label[1])}
        )
        self._searched, self._fetched = set(), 0
        waiting: list[_Sought] = []
        pending: list[str] = []
        for fact in facts:
            sought = self._sought(fact)
            pending += [
                qid for qid in sought.qids if qid not in pending and self._known(qid) is None
            ]
            if sought.qids.isdisjoint(pending):
                yield sought
                continue
            waiting.append(sought)
            if len(pending) < BATCH:
                continue
            while len(pending) >= BATCH:
                self._fetch(pending[:BATCH])
                del pending[:BATCH]
            ready = [sought for sought in waiting if sought.qids.isdisjoint(pending)]
            waiting = [sought for sought in waiting if not sought.qids.isdisjoint(pending)]
            yield from ready
        if pending:
            self._fetch(pending)
        yield from waiting

    def _sought(self, fact: Fact) -> _Sought:
        searches = [self._search(kind, label) for kind, label in labels(fact)]
        dates = tuple(known.date for known in searches if known.date)
        exact = tuple(frozenset(known.value["exact"]) for known in searches[:2])
        ids = [
            tuple(dict.fromkeys((*known.value["exact"], *known.value["near"])))
            for known in searches
        ]
        return _Sought(fact, exact, *ids, dates)

    def _search(self, kind: str, label: str) -> Cached:
        """Ids of the items or properties with this label or alias in any case, searched for once.

        "exact": hits that match by the label. "near": the first hits for an item, which may have it
        as another name: a hit reports one match only, and Washington, D.C. is found by its label,
        not by its alias Washington.
        """
        if not can_be_a_name(label):
            return Cached({"exact": [], "near": []}, "")
        self._searched.add((kind, label))
        key = self._place(kind, label)
        if known := self._cache.get(*key):
            return known
        language = {"language": self._language, "uselang": self._language}
        hits = self._ask("wbsearchentities", type=kind, search=label, limit=BATCH, **language).get(
            "search"
        )
        if not isinstance(hits, list):
            raise _strange("search")
        exact = [hit["id"] for hit in hits if linking.is_called(hit, ID[kind], label)]
        first = [hit.get("id") for hit in hits if isinstance(hit, dict)][
            : NEAR if kind == "item" else 0
        ]
        near = [qid for qid in first if linking.QID.fullmatch(str(qid))]
        known = self._cache.put({"exact": exact, "near": near}, *key)
        self._say()
        return known

    def _place(self, kind: str, label: str) -> tuple[str, ...]:
        """The cache key of a search."""
        return "wikidata", "search", self._language, kind, label

    def _known(self, qid: str) -> Cached | None:
        """The cached fields of an `Entity`, None as value if deleted; None if it is not cached."""
        return self._cache.get("wikidata", ENTITY, self._language, qid)

    def _keep(self, qid: str, record: dict | None) -> None:
        self._cache.put(record, "wikidata", ENTITY, self._language, qid)
        self._fetched += 1

    def _fetch(self, qids: Sequence[str]) -> None:
        """Requests entities and caches them; what a reply has no room for, again in halves."""
        props = "sitelinks|claims|labels|aliases|descriptions"
        reply = self._ask(
            "wbgetentities",
            ids="|".join(qids),
            props=props,
            languages=self._language,
            languagefallback=1,
        )
        try:
            rows = linking.mapping(reply["entities"])
        except (KeyError, ValueError):
            raise _strange("entities") from None
        for qid in (qid for qid in qids if qid in rows):
            self._keep(qid, _record(rows[qid], self._language))
        missing = [qid for qid in qids if qid not in rows]
        if len(qids) == len(missing) == 1:
            self._keep(qids[0], None)
            missing = []
        self._say()
        middle = len(missing) // 2
        for half in filter(None, (missing[:middle], missing[middle:])):
            self._fetch(half)

    def _ask(self, action: str, **params: object) -> dict:
        params |= {"action": action, "format": "json", "maxlag": LAG_SECONDS}
        reply = self._web.get(
            "/w/api.php", busy=lambda reply: bool(BUSY.fullmatch(_error_code(reply))), **params
        )
        if code := _error_code(reply):
            fix = "Try again later; what was found is kept."
            if code in ("badvalue", "unknown_language"):
                fix = f"Is {self._language} a language of Wikidata?"
            raise NetworkError(f"Wikidata refuses a question ({code}).", fix)
        return reply if isinstance(reply, dict) else {}

    def _say(self) -> None:
        self._progress.say(
            f"Wikidata: labels {len(self._searched):,} of {self._labels:,}, entities "
            f"{self._fetched:,}"
        )

    def _linked(self, sought: _Sought, types: linking.Types) -> tuple[Link, Score]:
        fact = sought.fact
        known = [
            {qid: self._known(qid) for qid in side} for side in (sought.subjects, sought.objects)
        ]
        subjects, objects = (
            linking.candidates(
                linking.Entity(**row.value)
                for qid, row in side.items()
                if row.value and (qid in exact or label.casefold() in row.value["names"])
            )
            for side, exact, (_, label) in zip(known, sought.exact, labels(fact))
        )
        linked = linking.link(subjects, objects, sought.properties, plain(fact.relation), types)
        counted = [
            self._popularity(choice.entity) for choice in linked.sides.values() if choice.entity
        ]
        dates = (*sought.dates, *(row.date for side in known for row in side.values()))
        score = Score(
            fact.id,
            float(sum(counted)) if len(counted) == len(linked.sides) else None,
            self.source,
            min(dates) if counted else "",
            _raw(linked, {"subject": subjects, "object": objects}),
            linked.reason,
        )
        return linked, score


def _error_code(reply: object) -> str:
    """The code of an error in a reply with status 200, "" without; its text may quote labels."""
    if not isinstance(reply, dict) or "error" not in reply:
        return ""
    code = reply["error"].get("code") if isinstance(reply["error"], dict) else None
    return code if isinstance(code, str) and CODE.fullmatch(code) else "no code"


def _record(row: dict, language: str) -> dict | None:
    """The fields of `Entity` to cache for a row, None if there is no such entity (any more)."""
    try:
        return None if "missing" in row else asdict(linking.Entity.read(row, language))
    except (KeyError, TypeError, AttributeError, ValueError):  # its text may quote the row
        raise _strange("entities") from None


def _raw(linked: Link, candidates: dict[str, Sequence[linking.Entity]]) -> dict[str, object]:
    """`Score.raw`: counts, how each side was decided, properties between them, all candidates."""
    raw: dict[str, object] = {
        side: {
            **_part(choice.entity, "qid label article sitelinks statements identifiers"),
            "linked": choice.how,
        }
        for side, choice in linked.sides.items()
        if choice.entity
    }
    if linked.properties:
        raw["statement"] = list(linked.properties)
    for side, entities in candidates.items():
        raw[f"{side}_candidates"] = [_part(entity, "qid label description") for entity in entities]
    return raw


def _part(entity: linking.Entity, names: str) -> dict[str, object]:
    return {name: getattr(entity, name) for name in names.split()}


def _strange(part: str) -> NetworkError:
    message = f"Wikidata's answer has no {part} that we can read."
    return NetworkError(message, "Try again later; what was found is kept.")
