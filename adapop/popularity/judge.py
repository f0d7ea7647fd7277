"""Popularity as an LLM's estimate of how common a fact is in pretraining text.

Facts are sent in batches of eight, in three passes over the whole set, each in an order of its own,
because a judge favours positions in a list. A score is the mean of three numbers. A reply must have
exactly the requested form; otherwise the batch is sent once more, then each half of it. A fact
without a number even when sent alone is unknown until the next look-up. Nothing is padded, rounded
or clamped. Replies and numbers are cached, so a later look-up sends only the rest.

Whatever stands beside a fact may move its number, an instruction to the judge above all. So a
cached number is used only where every fact of its batch is in the set: no stranger's fact has a
part in it."""

import hashlib
import json
import os
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache as once
from math import ceil
from statistics import fmean
from typing import Any
from urllib.parse import urlsplit

from adapop.errors import ConfigError, NetworkError
from adapop.facts.fact import Fact
from adapop.online.cache import Cache, Cached
from adapop.online.client import LATER, THIS_MACHINE, Refused, Web
from adapop.paths import ASSETS
from adapop.popularity.base import JUDGE_PACE, Score
from adapop.progress import Progress

Ask = Callable[[str, str, int], str]  # (system, user, seed) -> the model's reply, "" if it is empty

BATCH = 8
SEEDS = (1, 42, 219)  # paper: three passes
HIGHEST = 10_000
MAX_TOKENS = 2048  # of a reply with its reasoning; with the prompt it fits a context of 4,096
TOKENS = "ADAPOP_JUDGE_TOKENS"  # another limit
BRACKETS = 1000  # a reply with more of them is no list, and would take long to read
THINKS = re.compile("</?think>")
READ_SECONDS = 300.0  # the paper's judge took 43 s a batch
OPENROUTER = "https://openrouter.ai/api/v1"

# the paper's prompt in our words; its "do not repeat values" is left out, because it forbids ties
SYSTEM = (ASSETS / "popularity" / "judge.txt").read_text("utf-8").rstrip("\n")


class OutOfTokens(NetworkError):
    """The judge's reply was cut before its answer."""

    def __init__(self, tokens: int) -> None:
        message = f"The judge used up its {tokens:,} tokens before it answered: it thinks too long."
        super().__init__(message, f"Raise {TOKENS}, or name a judge that thinks less.")


class Judge:
    """A `Proxy` that asks a language model.

    name: the model and where it runs, for users and the cache. ask: sends one question to the
    model. tries: how often the same batch is sent, each time with another seed. system: its
    instructions; numbers are cached separately for other instructions, such as the paper's."""

    pace = JUDGE_PACE

    def __init__(
        self, name: str, ask: Ask, progress: Progress, cache: Cache, tries: int = 2
    ) -> None:
        self.name, self.ask = name, ask
        self.system = SYSTEM
        self._tries, self._progress, self._cache = tries, progress, cache
        self._cut: OutOfTokens | None = None  # of the last reply
        self.source = f"LLM judge {name}, mean of {len(SEEDS)} passes, 0 to {HIGHEST:,}"

    def requests(self, facts: Sequence[Fact]) -> int:
        """How many requests `scores` makes if each batch is answered at the first try."""
        lines = {_line(fact) for fact in facts}
        names = set(map(_digest, lines))
        new = (sum(self._known(line, seed, names) is None for line in lines) for seed in SEEDS)
        return sum(ceil(count / BATCH) for count in new)

    def scores(self, facts: Sequence[Fact]) -> Iterator[Score]:
        """One score per fact as soon as it is known: after the last pass, or at once if a pass
        gives no number. Raises as `Proxy.scores`, and ModelError: no local model."""
        passes: dict[str, list[Cached]] = {fact.id: [] for fact in facts}
        lost: set[str] = set()
        for number, seed in enumerate(SEEDS, start=1):
            order = sorted(facts, key=lambda fact: fact.id)
            random.Random(seed).shuffle(order)
            left = [fact for fact in order if fact.id not in lost]
            for fact, known in self._pass(left, number, seed):
                passes[fact.id].append(known)
                if known.value is None:
                    lost.add(fact.id)
                if known.value is None or number == len(SEEDS):
                    yield self._score(fact, passes[fact.id])

    def _pass(self, order: Sequence[Fact], number: int, seed: int) -> Iterator[tuple[Fact, Cached]]:
        """(fact, its number or None), first from the cache, then by batches; equal facts are sent
        once."""
        new: dict[str, list[Fact]] = defaultdict(list)
        names, done = {_digest(_line(fact)) for fact in order}, 0
        for fact in order:
            entry = self._known(_line(fact), seed, names)
            if entry is None:
                new[_line(fact)].append(fact)
            else:
                done += 1
                yield fact, entry
        groups = list(new.values())
        for start in range(0, len(groups), BATCH):
            passes = f"pass {number} of {len(SEEDS)}"
            self._progress.say(f"Judge: {passes}, {done} of {len(order)} facts")
            batch = groups[start : start + BATCH]
            for group, entry in zip(batch, self._numbers_for([group[0] for group in batch], seed)):
                done += len(group)
                yield from ((fact, entry) for fact in group)

    def _score(self, fact: Fact, passes: list[Cached]) -> Score:
        values = [known.value for known in passes]
        raw = {"model": self.name, "passes": dict(zip(map(str, SEEDS), values))}
        oldest = min(known.date for known in passes)
        if values[-1] is None:
            reason = (
                f"In pass {len(values)} of {len(SEEDS)}, asked for this fact alone, the judge did "
                f"not answer with one whole number from 0 to {HIGHEST:,}."
            )
            reason = f"{reason} {self._cut}" if self._cut else reason
            return Score(fact.id, None, self.source, oldest, raw, reason)
        return Score(fact.id, fmean(values), self.source, oldest, raw)

    def _numbers_for(self, facts: Sequence[Fact], seed: int) -> list[Cached]:
        """A number for each fact, or None, with the date of the reply."""
        user, names = prompt(facts), sorted({_digest(_line(fact)) for fact in facts})
        for tried in range(self._tries):
            reply = self._reply(user, seed + tried)  # the same seed would give the same reply
            values = numbers(reply.value, len(facts))
            if values is not None:
                keys = [self._key(_line(fact), seed) for fact in facts]
                entries = [{"number": value, "batch": names} for value in values]
                dates = [self._cache.put(entry, *key).date for key, entry in zip(keys, entries)]
                return list(map(Cached, values, dates))
            if self._cut:
                break  # a second try would take as long
        if len(facts) == 1:
            return [Cached(None, reply.date)]
        half = len(facts) // 2
        return self._numbers_for(facts[:half], seed) + self._numbers_for(facts[half:], seed)

    def _reply(self, user: str, seed: int) -> Cached:
        """The model's reply, cached for the record: later look-ups use the cached numbers."""
        self._progress.wait(0)
        self._cut, reply = None, ""
        try:
            reply = self.ask(self.system, user, seed)
        except OutOfTokens as cut:
            self._cut = cut
        return self._cache.put(reply, "judge", self.name, self.system, user, str(seed))

    def _known(self, line: str, seed: int, names: Set[str]) -> Cached | None:
        """The cached number of a fact, if all that stood beside it is in the set. names: digests
        of the set's lines."""
        entry = self._cache.get(*self._key(line, seed))
        if entry is None or not names >= {*entry.value["batch"]}:
            return None
        return Cached(entry.value["number"], entry.date)

    def _key(self, line: str, seed: int) -> tuple[str, ...]:
        return "judge", self.name, self.system, "number and batch", line, str(seed)


def prompt(facts: Sequence[Fact]) -> str:
    """The facts, numbered, each a JSON object on one line: no name can look like another fact."""
    lines = [f"{number}. {_line(fact)}" for number, fact in enumerate(facts, start=1)]
    return "\n".join([*lines, "", f"Answer with a JSON array of {len(facts)} integers."])


def numbers(reply: str, count: int) -> list[int] | None:
    """The numbers in a reply's last array of `count` items; None unless all are integers in
    range."""
    fitting = [values for values in arrays_in(reply) if len(values) == count]
    if not fitting:
        return None
    # a bool is an int to isinstance
    valid = all(type(value) is int and 0 <= value <= HIGHEST for value in fitting[-1])
    return fitting[-1] if valid else None


def arrays_in(reply: str) -> list[list]:
    """The JSON arrays in a reply, after any reasoning, in their order; not those inside others."""
    answer = reply.rpartition("</think>")[2].partition("<think>")[0]
    arrays, end, decoder = [], 0, json.JSONDecoder()
    starts = [match.start() for match in re.finditer(r"\[", answer)]
    for start in starts if len(starts) <= BRACKETS else ():
        if start >= end:
            try:
                values, end = decoder.raw_decode(answer, start)
            except (ValueError, RecursionError):
                continue
            arrays.append(values)
    return arrays


def judge_from_environment(progress: Progress, cache: Cache, tokens: int | None = None) -> Judge:
    """A model at an OpenAI-compatible endpoint: ADAPOP_JUDGE_MODEL at ADAPOP_JUDGE_URL, with
    ADAPOP_JUDGE_KEY. tokens: most tokens of a reply with its reasoning; None for
    ADAPOP_JUDGE_TOKENS, else `MAX_TOKENS`. Raises ConfigError: no model, a URL not safe for a key,
    a bad key, or a bad number of tokens."""
    base = os.environ.get("ADAPOP_JUDGE_URL") or OPENROUTER
    model = os.environ.get("ADAPOP_JUDGE_MODEL", "").strip()
    key = os.environ.get("ADAPOP_JUDGE_KEY", "").strip()
    if not model:
        names = "ADAPOP_JUDGE_MODEL (the paper: openai/gpt-oss-20b) and ADAPOP_JUDGE_KEY"
        fix = f"Set {names}, and ADAPOP_JUDGE_URL for a service other than OpenRouter."
        raise ConfigError("No model is named that could judge.", fix)
    if not (key.isascii() and key.isprintable()):
        raise ConfigError("ADAPOP_JUDGE_KEY has characters that no key has.", "Copy the key again.")
    host = _host(base, key)
    web = Web(base, "The judge", progress, key, read_seconds=READ_SECONDS, quotes=True)
    return Judge(f"{model} at {host}", _Endpoint(web, model, tokens or _tokens()), progress, cache)


def _tokens() -> int:
    """The limit in the environment. Raises ConfigError: it is no number above 0."""
    text = os.environ.get(TOKENS, "").strip() or str(MAX_TOKENS)
    if not (text.isascii() and text.isdecimal() and int(text[:9]) > 0 and len(text) < 10):
        raise ConfigError(
            f"{TOKENS} is not a number of tokens.", f"Write one such as {MAX_TOKENS}."
        )
    return int(text)


class _Endpoint:
    """Asks a chat model, as an `Ask` does. Settings that the server refuses are left out from then
    on: those that its refusal names, else one after another. A judge that uses up its tokens in
    thought is asked again with its reasoning switched off, where the server can."""

    def __init__(self, web: Web, model: str, tokens: int) -> None:
        self._web, self._model, self._tokens = web, model, tokens
        # what is sent beside the question; the last is given up first
        self._settings: dict[str, Any] = {"max_tokens": tokens, "temperature": 0, "seed": 0}
        self._thinks = True

    def __call__(self, system: str, user: str, seed: int) -> str:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        reply = self._post({"model": self._model, "messages": messages}, seed)
        if _is_cut(reply) and self._thinks:
            self._thinks, known = False, self._settings
            off: dict[str, Any] = {"reasoning": {"enabled": False}}
            if "openrouter" not in self._web.host:
                switch = {"chat_template_kwargs": {"enable_thinking": False}}
                off = switch | {"reasoning_effort": "none"}
            self._settings = {**known, **off}
            reply = self._post({"model": self._model, "messages": messages}, seed)
        if _is_cut(reply):
            raise OutOfTokens(self._tokens)
        return _content(reply, self._web.quoted)

    def _post(self, body: dict, seed: int) -> object:
        settings = self._settings
        while True:
            sent = {**settings, "seed": seed} if "seed" in settings else settings
            try:
                reply = self._web.post(
                    "/chat/completions", body | sent, busy=lambda reply: _fault(reply) in LATER
                )
            except Refused as refused:
                if not settings:  # it is the question that is refused
                    raise
                settings = _without_refused(settings, refused.words)
            else:
                self._settings = settings
                return reply


def _without_refused(settings: dict, words: str) -> dict:
    """The settings without the one that the words name first, else without the last. The limit of
    tokens has two names."""
    places = {name: re.search(rf"\b{name}\b", words) for name in settings}
    named = {name: match.start() for name, match in places.items() if match}
    refused = min(named, key=named.__getitem__) if named else [*settings][-1]
    left = {name: value for name, value in settings.items() if name != refused}
    if refused == "max_tokens":
        left = {"max_completion_tokens": settings[refused], **left}
    return left


def local_judge(model: str, load: Callable[[str], Any], progress: Progress, cache: Cache) -> Judge:
    """A model on this machine: a Hub id, a folder, or "sandbox". load: returns its
    `AdaptedModel`. Raises ConfigError: a bad number of tokens."""

    limit = _tokens()

    @once
    def loaded() -> Any:
        progress.say(f"Judge: loading {model}")
        return load(model)

    def ask(system: str, user: str, seed: int) -> str:
        judge = loaded()
        judge.system = system
        with judge.original():
            reply = judge.generate([user], max_new_tokens=limit)[0]
        if THINKS.findall(reply)[-1:] == ["<think>"]:
            raise OutOfTokens(limit)
        return reply

    # it decodes greedily, so a second try would give the same reply
    return Judge(f"{model} on this machine", ask, progress, cache, tries=1)


def _line(fact: Fact) -> str:
    """The fact as the judge sees it, on one line."""
    if fact.subject and fact.relation:
        shape = {"subject": fact.subject, "relation": fact.relation}
        shape["object"] = fact.object or fact.answer
    else:
        shape = {"question": fact.question, "answer": fact.answer}
    shape = {name: " ".join(text.split()) for name, text in shape.items()}
    return json.dumps(shape, ensure_ascii=False)


def _digest(line: str) -> str:
    return hashlib.sha256(line.encode("utf-8", "replace")).hexdigest()[:16]


def _host(base: str, key: str) -> str:
    """Host and port of a URL: https or this machine, or any host where no key is sent. Raises
    ConfigError."""
    try:
        parts = urlsplit(base)
        at_home = parts.hostname in THIS_MACHINE or not key
        safe = parts.scheme == "https" or (parts.scheme == "http" and at_home)
    except ValueError:
        safe = False
    if not safe or not parts.hostname or "@" in parts.netloc:
        fix = (
            "Use https:// without a user name; http:// is for this machine (localhost), or for "
            "another one where ADAPOP_JUDGE_KEY is not set."
        )
        raise ConfigError("ADAPOP_JUDGE_URL is not an address that a key can be sent to.", fix)
    return parts.netloc


def _fault(reply: object) -> object:
    """The code of an error in a reply with status 200: 0 if it is no number, None if no error."""
    error = reply.get("error") if isinstance(reply, dict) else None
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    return code if type(code) is int else 0


def _is_cut(reply: Any) -> bool:
    """Whether a reply ended at its limit of tokens, without a list."""
    try:
        choice = reply["choices"][0]
        text = choice["message"].get("content") or ""
        return choice.get("finish_reason") == "length" and not arrays_in(text)
    except (TypeError, KeyError, IndexError, AttributeError):
        return False


def _content(reply: Any, quoted: Callable[[object], str]) -> str:
    """A chat reply's text. quoted: an error in it as text. Raises NetworkError: it is none."""
    fault = _fault(reply)
    if fault is not None:
        code = f" ({fault})" if fault else ""
        message = f"The judge reports an error{code}: {quoted(reply['error'])}."
        raise NetworkError(message, "Check its model, key and credit; then try again.")
    try:
        content = reply["choices"][0]["message"]["content"]
    except (TypeError, KeyError, IndexError):
        content = 0
    if not isinstance(content, (str, type(None))):
        message = "The judge does not answer as a chat model does."
        raise NetworkError(message, "Check ADAPOP_JUDGE_URL.")
    # a lone surrogate cannot be stored
    return (content or "").encode("utf-8", "replace").decode("utf-8")
