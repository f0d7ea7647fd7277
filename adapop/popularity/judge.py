"""Popularity as an LLM's estimate of how common a fact is in pretraining text.

Facts are sent in batches of eight, in three passes over the whole set, each in an order of its own,
because a judge favours positions in a list. A score is the mean of three numbers. A reply must have
exactly the requested form; otherwise the batch is sent once more, then each half of it. A fact
without a number even when sent alone is unknown until the next look-up. Nothing is padded, rounded
or clamped. Replies and numbers are cached, so a later look-up sends only the rest."""

import json
import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache as once
from math import ceil
from statistics import fmean
from typing import Any
from urllib.parse import urlsplit

from adapop.errors import ConfigError, NetworkError
from adapop.facts.fact import Fact
from adapop.online.cache import Cache, Cached
from adapop.online.client import LATER, THIS_MACHINE, UnsupportedField, Web
from adapop.paths import ASSETS
from adapop.popularity.base import JUDGE_PACE, Score
from adapop.progress import Progress

Ask = Callable[[str, str, int], str]  # (system, user, seed) -> the model's reply, "" if it is empty

BATCH = 8
SEEDS = (1, 42, 219)  # paper: three passes
HIGHEST = 10_000
MAX_TOKENS = 2048  # of a reply with its reasoning; with the prompt it fits a context of 4,096
READ_SECONDS = 300.0  # the paper's judge took 43 s a batch
OPENROUTER = "https://openrouter.ai/api/v1"

# the paper's prompt in our words; its "do not repeat values" is left out, because it forbids ties
SYSTEM = (ASSETS / "popularity" / "judge.txt").read_text("utf-8").rstrip("\n")


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
        self.source = f"LLM judge {name}, mean of {len(SEEDS)} passes, 0 to {HIGHEST:,}"

    def requests(self, facts: Sequence[Fact]) -> int:
        """How many requests `scores` makes if each batch is answered at the first try."""
        requests = 0
        for seed in SEEDS:
            new = [fact for fact in facts if self._cache.get(*self._key(fact, seed)) is None]
            requests += ceil(len(set(map(_line, new))) / BATCH)
        return requests

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
        done = 0
        for fact in order:
            entry = self._cache.get(*self._key(fact, seed))
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
            return Score(fact.id, None, self.source, oldest, raw, reason)
        return Score(fact.id, fmean(values), self.source, oldest, raw)

    def _numbers_for(self, facts: Sequence[Fact], seed: int) -> list[Cached]:
        """A number for each fact, or None, with the date of the reply."""
        user = prompt(facts)
        for tried in range(self._tries):
            reply = self._reply(user, seed + tried)  # the same seed would give the same reply
            values = numbers(reply.value, len(facts))
            if values is not None:
                keys = [self._key(fact, seed) for fact in facts]
                return [self._cache.put(value, *key) for key, value in zip(keys, values)]
        if len(facts) == 1:
            return [Cached(None, reply.date)]
        half = len(facts) // 2
        return self._numbers_for(facts[:half], seed) + self._numbers_for(facts[half:], seed)

    def _reply(self, user: str, seed: int) -> Cached:
        """The model's reply, cached for the record: later look-ups use the cached numbers."""
        self._progress.wait(0)
        reply = self.ask(self.system, user, seed)
        return self._cache.put(reply, "judge", self.name, self.system, user, str(seed))

    def _key(self, fact: Fact, seed: int) -> tuple[str, ...]:
        """The cache key of a fact's number, which does not depend on the rest of its batch."""
        return "judge", self.name, self.system, "number", _line(fact), str(seed)


def prompt(facts: Sequence[Fact]) -> str:
    """The facts, numbered, each a JSON object on one line: no name can look like another fact."""
    lines = [f"{number}. {_line(fact)}" for number, fact in enumerate(facts, start=1)]
    return "\n".join([*lines, "", f"Answer with a JSON array of {len(facts)} integers."])


def numbers(reply: str, count: int) -> list[int] | None:
    """The numbers in a reply's array; None unless these are `count` integers in range."""
    values = array_in(reply)
    # a bool is an int to isinstance
    valid = all(type(value) is int and 0 <= value <= HIGHEST for value in values)
    return values if valid and len(values) == count else None


def array_in(reply: str) -> list:
    """The JSON array at a reply's first "[", after any reasoning; [] if none begins there."""
    answer = reply.rpartition("</think>")[2].partition("<think>")[0]
    start = answer.find("[")
    try:
        return json.JSONDecoder().raw_decode(answer, start)[0] if start >= 0 else []
    except (ValueError, RecursionError):
        return []


def judge_from_environment(progress: Progress, cache: Cache) -> Judge:
    """A model at an OpenAI-compatible endpoint: ADAPOP_JUDGE_MODEL at ADAPOP_JUDGE_URL, with
    ADAPOP_JUDGE_KEY. Raises ConfigError: no model, a URL not safe for a key, or a bad key.

    A setting that the endpoint says it does not support is left out from then on: OpenAI's
    reasoning models take neither temperature 0 nor a limit under its older name."""
    base = os.environ.get("ADAPOP_JUDGE_URL") or OPENROUTER
    model = os.environ.get("ADAPOP_JUDGE_MODEL", "").strip()
    key = os.environ.get("ADAPOP_JUDGE_KEY", "").strip()
    if not model:
        names = "ADAPOP_JUDGE_MODEL (the paper: openai/gpt-oss-20b) and ADAPOP_JUDGE_KEY"
        fix = f"Set {names}, and ADAPOP_JUDGE_URL for another service than OpenRouter."
        raise ConfigError("No model is named that could judge.", fix)
    if not (key.isascii() and key.isprintable()):
        raise ConfigError("ADAPOP_JUDGE_KEY has characters that no key has.", "Copy the key again.")
    host = _host(base)
    web = Web(base, "The judge", progress, key, read_seconds=READ_SECONDS)
    settings = {"temperature": 0, "max_tokens": MAX_TOKENS}

    def ask(system: str, user: str, seed: int) -> str:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        body = {"model": model, "messages": messages, "seed": seed, **settings}
        try:
            reply = web.post("/chat/completions", body, busy=lambda reply: _fault(reply) in LATER)
        except UnsupportedField as refused:
            if refused.field not in settings:
                raise
            del settings[refused.field]
            if refused.field == "max_tokens":
                settings["max_completion_tokens"] = MAX_TOKENS
            return ask(system, user, seed)
        return _content(reply)

    return Judge(f"{model} at {host}", ask, progress, cache)


def local_judge(model: str, load: Callable[[str], Any], progress: Progress, cache: Cache) -> Judge:
    """A model on this machine: a Hub id, a folder, or "sandbox". load: returns its
    `AdaptedModel`."""

    @once
    def loaded() -> Any:
        progress.say(f"Judge: loading {model}")
        return load(model)

    def ask(system: str, user: str, seed: int) -> str:
        judge = loaded()
        judge.system = system
        with judge.original():
            return judge.generate([user], max_new_tokens=MAX_TOKENS)[0]

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


def _host(base: str) -> str:
    """Host and port of a URL that a key may go to: https, or this machine. Raises ConfigError."""
    try:
        parts = urlsplit(base)
        at_home = parts.hostname in THIS_MACHINE
        safe = parts.scheme == "https" or (parts.scheme == "http" and at_home)
    except ValueError:
        safe = False
    if not safe or not parts.hostname or "@" in parts.netloc:
        fix = "Use https:// without a user name; http:// is only for this machine (localhost)."
        raise ConfigError("ADAPOP_JUDGE_URL is not an address that a key can be sent to.", fix)
    return parts.netloc


def _fault(reply: object) -> object:
    """The code of an error in a reply with status 200: 0 if it is no number, None if no error."""
    error = reply.get("error") if isinstance(reply, dict) else None
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    return code if type(code) is int else 0


def _content(reply: object) -> str:
    """A chat reply's text; "" if its tokens ran out in reasoning. Raises NetworkError."""
    fault = _fault(reply)
    if fault is not None:
        code = f" ({fault})" if fault else ""
        message = f"The judge reports an error{code}."
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
