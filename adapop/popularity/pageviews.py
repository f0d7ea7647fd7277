"""Popularity as the monthly number of views of the Wikipedia article about a fact's subject.

The article belongs to the Wikidata item that the subject means (`wikidata_items.link`); if no item
has the subject's name, the article with that title is used. Views are by people, without known
robots. Months without a count are left out of the mean.
https://doc.wikimedia.org/generated-data-platform/aqs/analytics-api"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from statistics import fmean
from typing import Any
from urllib.parse import quote

from adapop.errors import ConfigError, NetworkError
from adapop.facts.fact import Fact
from adapop.online.cache import Cache, Cached
from adapop.online.client import NotThere, Web
from adapop.popularity.base import WEB_PACE, Score
from adapop.popularity.wikidata import Wikidata
from adapop.popularity.wikidata_items import LATER, STATED, plain
from adapop.progress import Progress

FIRST_YEAR = 2016  # the first year with counts for every month
VIEWS = "/api/rest_v1/metrics/pageviews/per-article/{}/all-access/user/{}/monthly/{}/{}"
LONGEST_TITLE = 255  # bytes, MediaWiki's limit
# MediaWiki allows no title with these; "." and ".." would be steps in an address
NO_TITLE = re.compile(r"^\.{1,2}$|[#<>\[\]{}|\x00-\x1f\x7f\ud800-\udfff]")
MONTHS = 12


class PageViews:
    """A `Proxy` that asks Wikidata which articles are meant, and Wikimedia for their page views.

    language: of the facts' labels and of the Wikipedia, such as "en". year: whose months are
    averaged; None for the last whole year. Raises ConfigError: no such language or year."""

    pace = WEB_PACE

    def __init__(
        self,
        progress: Progress,
        cache: Cache,
        language: str = "en",
        year: int | None = None,
        base: str = "https://wikimedia.org",
        wikidata: str = "https://www.wikidata.org",
    ) -> None:
        last = date.today().year - 1
        self._year = last if year is None else year
        if not FIRST_YEAR <= self._year <= last:
            fix = f"Use {FIRST_YEAR} to {last}."
            raise ConfigError(f"{year} is not a whole year of page views.", fix)
        self._linked = Wikidata(progress, cache, base=wikidata, language=language)
        self._project = f"{language}.wikipedia"
        self._web = Web(base, "Wikimedia", progress)
        self._progress = progress
        self._cache = cache
        self.source = f"page views a month in {self._year}, {self._project}, subject"

    def requests(self, facts: Sequence[Fact]) -> int:
        """About how many requests `scores` makes: Wikidata's, and one for each article."""
        subjects = {title for fact in facts if (title := plain(fact.subject))}
        places = [self._key(title.replace(" ", "_")) for title in subjects]
        new = sum(self._cache.get(*place) is None for place in places)
        return self._linked.requests(facts) + new

    def scores(self, facts: Sequence[Fact]) -> Iterator[Score]:
        """One score per fact, in the order of linking. Raises as `Proxy.scores`."""
        subjects = {fact.id: plain(fact.subject) for fact in facts}
        for done, linked in enumerate(self._linked.scores(facts)):
            self._progress.say(f"Page views: {done:,} of {len(facts):,} facts")
            yield self._score(subjects[linked.fact_id], linked)

    def _score(self, subject: str, linked: Score) -> Score:
        """A fact's score. linked: its score by Wikidata, whose `raw` says which item is meant."""
        about = {name: value for name, value in linked.raw.items() if name.startswith("subject")}
        raw = {"project": self._project, "year": self._year, **about}
        title, reason = _title(subject, linked)
        if not title:
            return Score(linked.fact_id, None, self.source, "", raw, reason)
        known = self._views(title.replace(" ", "_"))
        raw |= {"article": title, "months": known.value}
        day = min(filter(None, (linked.date, known.date)))
        if not known.value:
            reason = f"The article has no counted views in {self._year}, or does not exist."
            return Score(linked.fact_id, None, self.source, day, raw, reason)
        if len(known.value) < MONTHS:
            reason = f"{reason} Counted in {len(known.value)} of {MONTHS} months.".strip()
        return Score(linked.fact_id, fmean(known.value), self.source, day, raw, reason)

    def _key(self, title: str) -> tuple[str, ...]:
        return "pageviews", self._project, str(self._year), title

    def _views(self, title: str) -> Cached:
        """The views of an article in each month that has a count."""
        key = self._key(title)
        if known := self._cache.get(*key):
            return known
        start, end = f"{self._year}010100", f"{self._year}123100"
        # safe="": a slash in a title must not become a step in the address
        place = VIEWS.format(self._project, quote(title, safe=""), start, end)
        try:
            views = _counts(self._web.get(place))
        except NotThere:
            views = []
        return self._cache.put(views, *key)


def _title(subject: str, linked: Score) -> tuple[str, str]:
    """(the article's title, a note on it), or ("", why there is none)."""
    if item := linked.raw.get("subject"):
        title, doubt = item["article"], f"Subject: {item['linked']}."
        note = "" if item["linked"] == STATED else doubt
    elif linked.raw.get("subject_candidates") or not subject:
        return "", linked.reason
    else:
        title = subject[:1].upper() + subject[1:]
        note = "No item has this name: the article of this title was taken."
    if item and not title:
        return "", "The item has no article in this language."
    if NO_TITLE.search(title) or len(title.encode()) > LONGEST_TITLE:
        return "", "Subject not found: neither an item nor an article can have this name."
    return title, note


def _counts(reply: Any) -> list[int]:
    try:
        counts = [row["views"] for row in reply["items"]]
    except (TypeError, KeyError):
        counts = [None]
    if len(counts) > MONTHS or not all(type(count) is int and count >= 0 for count in counts):
        raise NetworkError("Wikimedia's answer has no page views that we can read.", LATER)
    return counts
