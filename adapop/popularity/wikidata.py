"""Popularity as the number of sitelinks and statements of subject and object in Wikidata. There are
three steps: a search for each new label; requests for the items found, fifty at a time
(`wikidata_items`); the decision which of them a fact is about too. Each reply is cached."""

import re
from collections.abc import Iterator, KeysView, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from typing import Any

from adapop.errors import ConfigError, truncated
from adapop.facts.fact import Fact
from adapop.facts.scale import WIKIDATA
from adapop.online.cache import Cache, Cached
from adapop.popularity.base import WEB_PACE, Score
from adapop.popularity.wikidata_items import (
    BATCH,
    NEAR,
    Entities,
    Entity,
    Link,
    Types,
    can_be_a_name,
    candidates,
    labels,
    link,
    plain,
)
from adapop.progress import Progress

# DUET's released scores are sitelinks + statements; its first builder counted sitelinks alone
FORMULAS = {
    "sitelinks+statements": lambda entity: entity.sitelinks + entity.statements,
    "sitelinks": lambda entity: entity.sitelinks,
}
NAMELESS = "The fact has no subject to look for."
LANGUAGE = re.compile(r"[a-z]{2,12}(-[a-z0-9]{1,12})*")


@dataclass(frozen=True)
class _Search:
    """A fact and the hits for its subject, object and relation, as `Entities.search` returns."""

    fact: Fact
    hits: tuple[Cached, ...]

    @property
    def qids(self) -> KeysView[str]:
        """All candidates for subject and object, each once, in order."""
        return dict.fromkeys(chain.from_iterable(map(_ids, self.hits[:2]))).keys()


class Wikidata:
    """A `Proxy` that asks Wikidata. A fact's score is the sum over its subject and its object.

    formula: the score of one entity, a key of `FORMULAS`. language: of the facts' labels, and of
    the labels, descriptions and articles that are kept. Raises ConfigError: there is no such
    formula, or the language is no code such as "en"."""

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
            message = f"{truncated(language)!r} is not a language code."
            raise ConfigError(message, "Use one such as en, de or zh.")
        self.source = f"{WIKIDATA} {formula.replace('+', ' + ')}, subject + object"
        self._popularity = FORMULAS[formula]
        self._entities = Entities(progress, cache, base, language)

    def requests(self, facts: Sequence[Fact]) -> int:
        """About how many requests `scores` makes: for new labels, and for the items found."""
        pairs = {pair for fact in facts if plain(fact.subject) for pair in labels(fact)}
        new = [kind for kind, label in pairs if self._entities.is_new(kind, label)]
        return len(new) + ceil(NEAR * new.count("item") / BATCH)

    def scores(self, facts: Sequence[Fact]) -> Iterator[Score]:
        """One score per fact: first facts without a subject, then, as they are found, those that a
        statement decides, at the end all others. Raises as `Proxy.scores`."""
        named = [fact for fact in facts if plain(fact.subject)]
        nameless = [fact for fact in facts if not plain(fact.subject)]
        yield from (Score(fact.id, None, self.source, reason=NAMELESS) for fact in nameless)
        types, undecided = Types(), []
        for search in self._searches(named):
            linked, score = self._linked(search, types)
            if linked.stated:
                types.learn(plain(search.fact.relation), linked)
                yield score
            else:
                undecided.append(search)
        yield from (self._linked(search, types)[1] for search in undecided)

    def _searches(self, facts: Sequence[Fact]) -> Iterator[_Search]:
        """Each fact's search, as soon as all its candidates are cached. Entities are requested in
        full batches, and the rest at the end: n new ones take ceil(n / 50) requests."""
        pairs = {pair for fact in facts for pair in labels(fact)}
        self._entities.begin(sum(can_be_a_name(label) for _, label in pairs))
        waiting: list[_Search] = []
        pending: list[str] = []
        for fact in facts:
            hits = (self._entities.search(kind, label) for kind, label in labels(fact))
            search = _Search(fact, tuple(hits))
            new = [qid for qid in search.qids if qid not in pending]
            pending += [qid for qid in new if self._entities.known(qid) is None]
            if search.qids.isdisjoint(pending):
                yield search
                continue
            waiting.append(search)
            if len(pending) < BATCH:
                continue
            while len(pending) >= BATCH:
                self._entities.fetch(pending[:BATCH])
                del pending[:BATCH]
            ready = [search for search in waiting if search.qids.isdisjoint(pending)]
            waiting = [search for search in waiting if not search.qids.isdisjoint(pending)]
            yield from ready
        if pending:
            self._entities.fetch(pending)
        yield from waiting

    def _linked(self, search: _Search, types: Types) -> tuple[Link, Score]:
        fact = search.fact
        known_entities = ((qid, self._entities.known(qid)) for qid in search.qids)
        cached = {qid: entry for qid, entry in known_entities if entry is not None}

        def named_so(hits: Cached, label: str) -> list[Entity]:
            rows = [(qid, row) for qid in _ids(hits) if (row := cached[qid].value)]
            exact, name = hits.value["exact"], label.casefold()
            named = (row for qid, row in rows if qid in exact or name in row["names"])
            return candidates(Entity(**row) for row in named)

        *sides, properties = search.hits
        subjects, objects = (named_so(hits, label) for hits, (_, label) in zip(sides, labels(fact)))
        relation = plain(fact.relation)
        linked = link(subjects, objects, properties.value["exact"], relation, types)
        entities = [choice.entity for choice in linked.sides.values() if choice.entity]
        whole = len(entities) == len(linked.sides)
        value = float(sum(map(self._popularity, entities))) if whole else None
        dates = (entry.date for entry in (*search.hits, *cached.values()) if entry.date)
        day = min(dates) if entities else ""
        raw = _raw(linked, {"subject": subjects, "object": objects})
        return linked, Score(fact.id, value, self.source, day, raw, linked.reason)


def _ids(hits: Cached) -> list[str]:
    """Ids of the hits, with those whose names are still to be checked."""
    return hits.value["exact"] + hits.value["near"]


def _raw(linked: Link, candidates: dict[str, Sequence[Entity]]) -> dict[str, Any]:
    """`Score.raw`: counts, how each side was decided, properties between them, all candidates."""
    raw: dict[str, Any] = {}
    counts = "qid label article sitelinks statements identifiers"
    for side, choice in linked.sides.items():
        if choice.entity:
            raw[side] = _part(choice.entity, counts) | {"linked": choice.how}
    if linked.properties:
        raw["statement"] = list(linked.properties)
    for side, entities in candidates.items():
        raw[f"{side}_candidates"] = [_part(entity, "qid label description") for entity in entities]
    return raw


def _part(entity: Entity, names: str) -> dict[str, object]:
    return {name: getattr(entity, name) for name in names.split()}
