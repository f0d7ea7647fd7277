"""Chooses the best way to ask a real model, and finds how it then answers: once, with the original.

A model may answer at once when it is asked as text after examples, or in the middle of a sentence
in chat. The answer must be scored where the model says it, and a reply must be long enough to
contain it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median_high
from typing import TYPE_CHECKING

from adapop.config.run import RunConfig
from adapop.facts.fact import Fact, FactSet, OwnAnswer
from adapop.facts.retain import EXAMPLES
from adapop.facts.text import span_of, word_count
from adapop.probes.judge import known_recall
from adapop.probes.plan import evenly
from adapop.probes.prompting import Prompting, Way
from adapop.probes.prompts import direct
from adapop.probes.recall import KNOWN_FROM
from adapop.progress import Progress

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from adapop.model.adapted import AdaptedModel
    from adapop.model.asking import Prompted

CHAT, TEXT = "chat", "text-examples"
# Order of preference among equally good ways. A reply as text ends with its line.
PREFERRED = (CHAT, TEXT, "chat-examples")
BENCHMARKS = ("duet", "duet-rare", "duet-popular", "rwku")  # asked as in the paper
TRIED_PER_TIER = 8  # facts
OWN_WORDS = 48  # tokens of a reply in which the model's own words are looked for
LEAST_TOKENS = 24
SPARE = 1.25  # times the tokens that the original's own answers need
ALL_BUT = 0.99  # share of the original's answers that must fit into a reply
AT_ONCE = 0.5  # below this share of answers at a reply's start, own words are scored
PIECE = 64  # facts asked at a time
Places = Sequence["tuple[int, int] | None"]  # (start, end) of the answer in each reply


def settled_prompting(
    model: AdaptedModel, facts: FactSet, config: RunConfig, progress: Progress | None = None
) -> Prompting:
    """How to ask the model about these facts, by its replies with the adapter off or untrained.
    Leaves the model set to be asked that way. Raises ModelError: no chat template and no examples.
    DataError: the configured way needs examples. Stopped: a stop was requested."""
    progress = progress or Progress()
    examples, benchmark = examples_of(model.tokenizer, facts), facts.name in BENCHMARKS
    model.ask(CHAT if model.has_template or not examples else TEXT, examples)
    tokens = max(min(config.max_new_tokens, OWN_WORDS), longest_answer(model, facts))
    tried: tuple[Way, ...] = ()
    if config.asking != "auto":
        way = config.asking
    elif benchmark or len(model.ways) == 1:
        way = CHAT if CHAT in model.ways else TEXT
    else:
        tried = _compared_ways(model, evenly(facts.forget, TRIED_PER_TIER), tokens, progress)
        best = max(tried, key=lambda one: (one.at_once, one.answered, -PREFERRED.index(one.asking)))
        way = best.asking
    model.ask(way, examples)
    replies = _replies(model, facts.forget, tokens, progress)
    places = [place_of(fact, reply) for fact, reply in zip(facts.forget, replies)]
    own_words = config.answers == "own-words"
    if config.answers == "auto" and not benchmark and way != TEXT:
        own_words = _count_at_once(replies, places) < AT_ONCE * sum(map(bool, places))
    spoken = _own_answers(model, facts, replies, tokens, progress) if own_words else {}
    unknown = [fact.id for fact, reply in zip(facts.forget, replies) if not answers(fact, reply)]
    drops = config.unknown == "drop" or (config.unknown == "auto" and not benchmark)
    limit = _limit(model, facts, replies, places, config.max_new_tokens)
    return Prompting(
        asking=way,
        examples=examples,
        own_words=own_words,
        reply_tokens=limit,
        asked=len(facts.forget),
        unknown=tuple(unknown),
        drops=drops and len(unknown) < len(facts.forget),
        cut=sum(model.length(reply) >= min(limit, tokens) for reply in replies),
        spoken=spoken,
        tried=tried,
        empty=sum(not any(map(str.isalnum, reply)) for reply in replies),
    )


def questions_to_settle(model: AdaptedModel, facts: FactSet, config: RunConfig) -> int:
    """About how many questions `settled_prompting` asks: more if the model's own words are
    scored."""
    tried = len(evenly(facts.forget, TRIED_PER_TIER)) * (1 + EXAMPLES)
    return len(facts.forget) + (tried if config.asking == "auto" else 0)


def apply_prompting(model: AdaptedModel, prompting: Prompting) -> None:
    model.ask(prompting.asking, prompting.examples, prompting.spoken)
    model.converses = prompting.asking == CHAT


def examples_of(tokenizer: PreTrainedTokenizerBase, facts: FactSet) -> tuple[tuple[str, str], ...]:
    """The first three (question, answer) examples that are plain text to the model; () if fewer."""
    from adapop.model.chat import control_free

    pairs = [(fact.question, fact.answer) for fact in facts.examples]
    usable = [pair for pair in pairs if all(control_free(tokenizer, text) for text in pair)]
    return tuple(usable[:EXAMPLES]) if len(usable) >= EXAMPLES else ()


def answers(fact: Fact, reply: str) -> bool:
    """Whether a reply answers a fact's question, by the recall that verdicts use."""
    return known_recall(replace(direct(fact), accepted=fact.accepted), reply) >= KNOWN_FROM


def _compared_ways(
    model: AdaptedModel, facts: Sequence[Fact], tokens: int, progress: Progress
) -> tuple[Way, ...]:
    ways = []
    for way in model.ways:
        with model.asking_as(way):
            replies = _replies(model, facts, tokens, progress)
        places = [place_of(fact, reply) for fact, reply in zip(facts, replies)]
        leads = [reply[: place[0]] for reply, place in zip(replies, places) if place]
        before = [word_count(lead) for lead in leads]
        middle = float(median_high(before)) if before else None
        ways.append(Way(way, len(facts), len(before), _count_at_once(replies, places), middle))
    return tuple(ways)


def _replies(
    model: AdaptedModel, facts: Sequence[Fact], tokens: int, progress: Progress
) -> list[str]:
    """The replies, with surrounding white space, which is part of the model's answer."""
    replies = []
    for start in range(0, len(facts), PIECE):
        progress.say(f"Asking the original model: {start:,} of {len(facts):,} questions")
        rows = model.prompts([fact.question for fact in facts[start : start + PIECE]])
        with model.original():
            replies += [text for text, *_ in model.replies(rows, tokens)]
    return replies


def place_of(fact: Fact, reply: str) -> tuple[int, int] | None:
    """(start, end) of the first right answer in a reply; None if it has none."""
    return min(filter(None, (span_of(reply, answer) for answer in fact.answers)), default=None)


def _count_at_once(replies: Sequence[str], places: Places) -> int:
    leads = [reply[: place[0]] for reply, place in zip(replies, places) if place]
    return sum(not any(map(str.isalnum, lead)) for lead in leads)


def _own_answers(
    model: AdaptedModel, facts: FactSet, replies: Sequence[str], tokens: int, progress: Progress
) -> dict[str, OwnAnswer]:
    """Fact id -> its answer in the model's words; for facts to retain the whole reply. Without
    facts whose reply is empty or lacks the answer."""
    spoken: dict[str, OwnAnswer] = {}
    held_out = zip(facts.holdout, _replies(model, facts.holdout, tokens, progress))
    for fact, reply in (*zip(facts.forget, replies), *held_out):
        if place := place_of(fact, reply):
            spoken[fact.id] = OwnAnswer(fact.answer, reply[: place[0]], reply[slice(*place)])
    for fact, reply in zip(facts.retain, _replies(model, facts.retain, tokens, progress)):
        if reply.strip():
            spoken[fact.id] = OwnAnswer(fact.answer, "", reply.rstrip())
    return spoken


def longest_answer(model: Prompted, facts: FactSet) -> int:
    """Tokens of the longest answer."""
    texts = {fact.answer for fact in facts.every}
    return max(map(model.length, texts), default=1)


def _limit(
    model: AdaptedModel, facts: FactSet, replies: Sequence[str], places: Places, most: int
) -> int:
    """Most tokens of a reply: holds 99% of the original's answers and every gold answer."""
    texts = (reply[: place[1]] for reply, place in zip(replies, places) if place)
    needed = sorted(map(model.length, texts))
    usual = needed[math.ceil(ALL_BUT * len(needed)) - 1] if needed else 0
    return max(longest_answer(model, facts), min(most, max(LEAST_TOKENS, math.ceil(SPARE * usual))))
