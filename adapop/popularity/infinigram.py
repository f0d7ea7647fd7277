"""Popularity as the number of occurrences in a public pretraining corpus, from the infini-gram API.

https://infini-gram.readthedocs.io/en/latest/api.html: matches respect case and the borders of
Llama-2 tokens. The API reads " AND " and " OR " in a string as operators, so names with these words
are not counted. An empty string would count the whole corpus and is never sent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adapop.errors import ConfigError, NetworkError
from adapop.facts.fact import Fact
from adapop.facts.text import has_no_spaces
from adapop.online.cache import Cache
from adapop.online.client import Web
from adapop.popularity.base import WEB_PACE, Score, check_not_all_zero
from adapop.popularity.corpus import COMBINE, MENTIONED, labels_of, parts_of
from adapop.progress import Progress

INDEXES = {
    "v4_piletrain_llama": ("Pile-train", "383 billion tokens"),
    "v4_rpj_llama_s4": ("RedPajama", "1.4 trillion tokens"),
    "v4_dolma-v1_7_llama": ("Dolma 1.7", "2.6 trillion tokens"),
    "v4_dclm-baseline_llama": ("DCLM-baseline", "4.3 trillion tokens"),
    "v4_olmo-mix-1124_llama": ("OLMo-mix-1124", "4.6 trillion tokens"),
    "v4_c4train_llama": ("C4-train", "198 billion tokens"),
    "v4_pileval_llama": ("Pile-val", "394 million tokens"),
}
OPERATORS = frozenset({"AND", "OR"})
REASON_SHOWN = 120


@dataclass(frozen=True)
class Count:
    """The result of one query: the number of occurrences, or None and a reason. approx: whether the
    number is an estimate from a sample. date: day of the reply (ISO 8601), or ""."""

    number: int | None
    approx: bool = False
    date: str = ""
    reason: str = ""

    @property
    def unknown(self) -> str:
        """Why the number cannot be used, or "". 0 in a sample need not be 0 in the corpus."""
        if self.approx and not self.number:
            return "None was found, but only a sample was looked at."
        return self.reason

    @property
    def raw(self) -> dict[str, object]:
        """The part of `Score.raw` about this query."""
        if self.number is None:
            return {"reason": self.reason}
        return {"count": self.number, "approx": self.approx}


class InfiniGram:
    """A `Proxy`: occurrences of subject and object in one index, and of both within 100 tokens of
    each other. All three counts are kept; combine says which are summed for the score. A count of 0
    gives a score of 0; if the count is an estimate from a sample, the score is unknown."""

    pace = WEB_PACE

    def __init__(
        self,
        progress: Progress,
        cache: Cache,
        index: str = "v4_piletrain_llama",
        combine: str = "subject+object",
        base: str = "https://api.infini-gram.io/",
    ) -> None:
        if index not in INDEXES:
            message = f"infini-gram has no index {index!r}."
            raise ConfigError(message, f"Use one of {', '.join(INDEXES)}.")
        self._progress = progress
        self._cache = cache
        self._index = index
        self._parts = parts_of(combine)
        self._web = Web(base, "infini-gram", progress)
        # refusals may be temporary, so they are remembered for this look-up only
        self._refused: dict[str, Count] = {}
        counted = " + ".join(MENTIONED[part] for part in self._parts)
        self.source = f"occurrences of {counted} in {INDEXES[index][0]} (infini-gram {index})"

    def requests(self, facts: Sequence[Fact]) -> int:
        """The most requests that `scores` makes: one for each new name and each fact's pair."""
        names = [[name for name in labels_of(fact) if name] for fact in facts]
        queries = {query for pair in names for query in (*pair, " AND ".join(pair)) if query}
        return sum(self._cache.get("infini-gram", self._index, query) is None for query in queries)

    def scores(self, facts: Sequence[Fact]) -> Iterator[Score]:
        """One score per fact, in order, held back until one is above 0. Raises DataError: all known
        ones are 0."""
        held, counted = [], False
        for done, fact in enumerate(facts):
            self._progress.say(f"infini-gram: {done} of {len(facts)} facts")
            held.append(score := self._score(fact))
            counted = counted or bool(score.value)
            if counted:
                yield from held
                held.clear()
        others = f"Or count other names (combine: {', '.join(COMBINE)})."
        fix = f"Are names written as in that text? {others}"
        check_not_all_zero(held, INDEXES[self._index][0], fix)
        yield from held

    def _score(self, fact: Fact) -> Score:
        subject, object_ = labels_of(fact)
        no_subject, no_object = _unasked("subject", subject), _unasked("object", object_)
        counts = {
            "subject": no_subject or self._count(subject),
            "object": no_object or self._count(object_),
            "both": no_subject or no_object or self._count(f"{subject} AND {object_}"),
        }
        raw = {"index": self._index, **{part: count.raw for part, count in counts.items()}}
        used = [counts[part] for part in self._parts]
        oldest = min((count.date for count in used if count.date), default="")
        if reason := next(filter(None, (count.unknown for count in used)), ""):
            return Score(fact.id, None, self.source, oldest, raw, reason)
        reason = "Estimated from a sample." if any(count.approx for count in used) else ""
        value = float(sum(count.number or 0 for count in used))
        return Score(fact.id, value, self.source, oldest, raw, reason)

    def _count(self, query: str) -> Count:
        if query in self._refused:
            return self._refused[query]
        known = self._cache.get("infini-gram", self._index, query)
        if known is None:
            body = {"index": self._index, "query_type": "count", "query": query}
            reply = self._web.post("/", body)
            if isinstance(reply, dict) and isinstance(reply.get("error"), str):
                reason = f"infini-gram rejects the request: {reply['error'][:REASON_SHOWN]}"
                self._refused[query] = Count(None, reason=reason)
                return self._refused[query]
            known = self._cache.put(_checked(reply), "infini-gram", self._index, query)
        return Count(known.value["count"], known.value["approx"], known.date)


def _unasked(what: str, label: str) -> Count | None:
    """The result for a name that cannot be counted, with the reason; None for others."""
    if not label:
        return Count(None, reason=f"The fact has no {what} to look for.")
    if has_no_spaces(label):
        where = "but infini-gram expects a space before a name"
        return Count(None, reason=f"The {what} is in a script without spaces, {where}.")
    if OPERATORS & set(label.split()):
        why = "which infini-gram takes for an operator"
        return Count(None, reason=f"The {what} has the word AND or OR in it, {why}.")
    return None


def _checked(reply: object) -> dict[str, object]:
    """A reply's count, and whether it is approximate. Raises NetworkError: the reply has none."""
    if isinstance(reply, dict):
        count, approx = reply.get("count"), reply.get("approx")
        if type(count) is int and count >= 0 and type(approx) is bool:
            return {"count": count, "approx": approx}
    message = "infini-gram did not answer with a count."
    raise NetworkError(message, "Try again later; what was found is kept.")
