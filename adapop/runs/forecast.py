"""How long a run will take, from a model's configuration alone and what its device was measured to do: nothing is
loaded or downloaded. What was measured of it, and how far it was off: assets/docs/speed.md.

A pass takes as long as its matrix products, its attention, the numbers it touches one by one, and the calls it makes,
one after the other; what of these a device does at once makes the run shorter than was said.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from statistics import fmean
from typing import Any

from adapop.config.run import RunConfig
from adapop.facts.benchmarks import system_prompt
from adapop.facts.fact import GROUPS, Fact, FactSet
from adapop.model.footprint import WIDTH, adapted_shapes, backward_blocks, linear_shapes, products
from adapop.runs.pace import Pace

CHARACTERS = 4  # of English in a token
TEMPLATE = 24  # tokens that a chat template puts around a system prompt, a question and an answer
ROWS = 256  # of a pass without gradients, and of one that writes: forgetting.MOST_FORWARD, measure.EVAL_BATCH
TOUCHED = 2.0  # how often a number that a block makes of a token is summed forward, as it were: fitted, see speed.md
CALLS = 100  # of layers in a block, as it were, forward: fitted like it
LOGITS = 4  # how often a logit is
BACKWARD = 2  # touched and called, for one forward


@dataclass(frozen=True)
class Rates:
    """What a device does in a second. products: floating-point operations of a large matrix product in the run's
    precision; adapter: the same in float32, which adapters are in. numbers: sums of a large vector with another, in
    float32, as norms and logits are. calls: small layers called one after the other. attention, attention_backward:
    floating-point operations of attention's forward pass over short rows in the run's precision, by the time that the
    forward or the backward pass takes. weights: bytes that products of a few rows read, in the run's precision."""

    products: float
    adapter: float
    numbers: float
    calls: float
    attention: float
    attention_backward: float
    weights: float


@dataclass(frozen=True)
class Passes:
    """What a method's optimiser step does with its rows. forget, retain: passes with gradients. original: passes of the
    forget rows, kept: of the retain rows, without. before: of all forget rows, once before training."""

    forget: int = 1
    original: int = 0
    retain: int = 1
    kept: int = 0
    before: int = 0


PASSES = {
    "npo": Passes(before=1),
    "undial": Passes(original=1),
    "rmu": Passes(kept=1),
    "adaptive-rmu": Passes(kept=1),
    "npo-sam": Passes(forget=2, before=1),
    "altpo": Passes(forget=2, before=2),
    "flat": Passes(forget=2),
    "tpo": Passes(before=1),
}


def tokens_of(text: str) -> int:
    """How many a text is assumed to have where no tokenizer is at hand."""
    return ceil(len(text) / CHARACTERS)


def forecast(
    model: Mapping[str, Any],
    config: RunConfig,
    facts: FactSet,
    rates: Rates,
    count: Callable[[str], int] = tokens_of,
    template: int = TEMPLATE,
) -> Pace:
    """The pace of a run of a model of Llama's kind, on facts that the method can use. model: its config.json. count:
    tokens of a text; template: of what is around it.

    Left out are loading, checkpoints, the cosine metric and wrong answers that the model itself has to write. Every
    answer to a question is taken to be as long as it may be.
    """
    system = config.system if config.system is not None else system_prompt(config.model, facts)
    around = template + (count(system) if system else 0)
    seconds = partial(_seconds, model, config, rates)
    written = partial(_written, model, config, rates)

    def scored(members: Sequence[Fact]) -> float:
        if not members:
            return 0.0
        tokens, answers = _padded(lengths(members), ROWS), sum(count(fact.answer) for fact in members)
        return seconds(tokens, answers, len(members), ceil(len(members) / ROWS), backward=False)

    def lengths(members: Sequence[Fact]) -> list[int]:
        return [around + count(fact.question) + count(fact.answer) for fact in members]

    def asked(members: Sequence[Fact], rewordings: int | None = None) -> float:
        reworded = [text for fact in members for text in fact.paraphrases[:rewordings]]
        asks = [[fact.question for fact in members], reworded]
        return sum(written([around + count(text) for text in texts]) for texts in asks)

    quick = asked(facts.forget, 1)
    groups = [getattr(facts, group) for group in GROUPS]
    full = 2 * sum(2 * scored(members) + asked(members) for members in groups)  # of the original, and of the unlearned
    evaluated = 0.0 if config.retain_signal == "ema" else scored(facts.retain)
    start = PASSES.get(config.method, Passes()).before * scored(facts.forget) + scored(facts.retain) + quick
    answers = fmean(count(fact.answer) for fact in facts.forget)
    step = _step(config, lengths(facts.forget), lengths(facts.retain), answers, seconds)
    return Pace(step, evaluated + quick, start + full)


def _step(
    config: RunConfig, forget: Sequence[int], retain: Sequence[int], answer: float, seconds: Callable[..., float]
) -> float:
    """Of an optimiser step, the mean of an epoch's. forget, retain: tokens of each row; answer: of an answer."""
    does, rows = PASSES.get(config.method, Passes()), min(config.batch, len(forget))
    retains = config.method != "ga" and (config.alpha0 > 0 or config.controller == "primal")
    size = config.micro_batch or 2 * config.batch
    wide_forget, wide_retain = _dealt(config, forget, retain if retains else (), size)
    taken = 0.0
    for tokens, trained, asked in ((wide_forget, does.forget, does.original), (wide_retain, does.retain, does.kept)):
        if tokens:
            passes = ceil(rows / size)
            taken += trained * seconds(tokens, rows * answer, rows, passes, backward=True)
            taken += asked * seconds(tokens, rows * answer, rows, passes, backward=False)
    return taken


def _dealt(config: RunConfig, forget: Sequence[int], retain: Sequence[int], size: int) -> tuple[float, float]:
    """(tokens of the forget rows, of the retain rows) that a step computes, padding counted; the mean of an epoch
    dealt out at random, so many rows a pass."""
    rng, found = random.Random(0), []
    order = rng.sample(forget, len(forget))
    for start in range(0, len(order), config.batch):
        rows = order[start : start + config.batch]
        drawn = rng.choices(retain, k=len(rows)) if retain else []
        if config.micro_batch:
            found.append((_padded(rows, size), _padded(drawn, size)))
        else:  # one pass for all
            found.append((len(rows) * max(rows + drawn), len(drawn) * max(rows + drawn)))
    return fmean(one for one, _ in found), fmean(other for _, other in found)


def _written(model: Mapping[str, Any], config: RunConfig, rates: Rates, prompts: Sequence[int]) -> float:
    """Seconds to answer prompts of so many tokens each: all are read at once, then each answer is written by token."""
    shapes, layers, prompts = linear_shapes(model), model["num_hidden_layers"], sorted(prompts)
    cached = layers * (2 * shapes["k_proj"][1] + 4 * shapes["q_proj"][1])  # copied on, repeated for all heads, read
    weights = layers * sum(one * other for one, other in shapes.values()) + model["hidden_size"] * model["vocab_size"]
    reading = weights * WIDTH[config.precision] / rates.weights
    total = 0.0
    for start in range(0, len(prompts), ROWS):
        piece = prompts[start : start + ROWS]
        rows, width, more = len(piece), max(piece), config.max_new_tokens - 1
        total += _seconds(model, config, rates, rows * width, rows, rows, 1, backward=False)
        token = _seconds(model, config, rates, rows, rows, rows, 1, backward=False)
        token += reading + rows * (width + more / 2) * cached / rates.numbers
        total += more * token
    return total


def _seconds(
    model: Mapping[str, Any],
    config: RunConfig,
    rates: Rates,
    tokens: float,
    answers: float,
    rows: int,
    passes: int,
    backward: bool,
) -> float:
    """Seconds of passes over so many tokens in all, in so many rows of about one length."""
    shapes, layers = linear_shapes(model), model["num_hidden_layers"]
    back = backward_blocks(model, config) / layers if backward else 0.0
    base, adapter = products(model, config, tokens, answers, backward)
    block = 4 * shapes["q_proj"][1] + 3 * shapes["up_proj"][1] + 4 * model["hidden_size"]
    block += sum(one + other for one, other in adapted_shapes(shapes, config).values())
    touched = TOUCHED * tokens * layers * block + LOGITS * answers * model["vocab_size"]
    called = passes * layers * CALLS / rates.calls
    attended = 4 * tokens * (tokens / rows) * layers * shapes["q_proj"][1]
    multiplied = base / rates.products + adapter / rates.adapter
    multiplied += attended / rates.attention + back * attended / rates.attention_backward
    return multiplied + (1 + BACKWARD * back) * (touched / rates.numbers + called)


def _padded(lengths: Sequence[int], rows: int) -> int:
    """Tokens computed for rows of these lengths, so many a pass, the longest first: padding counts."""
    ordered = sorted(lengths, reverse=True)
    return sum(len(ordered[i : i + rows]) * ordered[i] for i in range(0, len(ordered), rows))
