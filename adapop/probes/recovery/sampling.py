"""Sampling: whether the answer is among many sampled replies (Scholten et al., ICLR 2025, arXiv
2410.03523).

Greedy decoding shows only the most likely answer; one that was pushed to second place appears in a
few samples. But a model that guesses among a few dozen answers of the right kind also draws the
right one sometimes. The control is therefore a wrong answer of the same relation, looked for in the
same samples.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import torch

from adapop.errors import ConfigError
from adapop.facts.fact import Fact
from adapop.model.adapted import AdaptedModel
from adapop.model.chat import encode_prompt
from adapop.model.generation import replies
from adapop.probes.metrics import gold_rank
from adapop.probes.recall import best_recall
from adapop.probes.recovery import base
from adapop.progress import Progress

SAMPLES, TEMPERATURE = 16, 1.0
TOPS = (1, 5, 20)
ROWS = 256


@dataclass(frozen=True)
class Tally:
    """How often an answer was drawn. samples: how many contain all its words. rank: of its first
    token, from 1."""

    samples: int
    rank: int


@dataclass(frozen=True)
class SampledRow:
    """Share of the facts of a tier, or of "all", [0, 1], whose answer is found in one place: "16
    samples" or "top 5".

    control: the share for a wrong answer in the unlearned model; None where no fact has one."""

    tier: str
    place: str
    facts: int
    original: float
    unlearned: float
    control: float | None


@dataclass(frozen=True)
class Sampled:
    """The result of sampling. facts: a `Tally` of each answer.

    returned: ids of the facts whose answer the unlearned model draws at least twice, and more often
    than the wrong one. samples: of each fact. temperature: of the softmax, no top-k or top-p."""

    rows: tuple[SampledRow, ...]
    returned: tuple[str, ...]
    facts: tuple[base.Found, ...]
    samples: int
    temperature: float


def sample(
    model: AdaptedModel,
    facts: Sequence[Fact],
    max_new_tokens: int,
    progress: Progress,
    samples: int = SAMPLES,
    temperature: float = TEMPERATURE,
    seed: int = 0,
) -> Sampled:
    """How often both models sample the answer to each trained question, and its first token's rank.

    An answer is found in a sample with all its words in order (ROUGE-L recall 1): among many
    samples, partial matches are too easy. Both models use the same random numbers; the caller's
    random state is not changed. Raises ConfigError: samples or temperature are not above 0."""
    base.check(model, facts)
    if samples < 1 or not (temperature > 0 and math.isfinite(temperature)):
        fix = "Both must be above 0."
        raise ConfigError(f"{samples} samples at temperature {temperature} cannot be drawn.", fix)
    drawn = {"temperature": temperature, "top_k": 0, "top_p": 1.0, "num_return_sequences": samples}

    def tallies_of(
        facts: Sequence[Fact], others: Sequence[Fact], part: Progress
    ) -> tuple[list[Tally], list[Tally]]:
        right, instead = _first_ranks(model, facts, others, part)
        texts = _draw(model, facts, max_new_tokens, seed, part, **drawn)
        return _tallies(facts, texts, right), _tallies(others, texts, instead)

    by_fact = base.found_in_both(model, facts, seed, progress, tallies_of)
    drawn_wrong = (fact.control.samples if fact.control else 0 for fact in by_fact)
    pairs = zip(by_fact, drawn_wrong)
    returned = tuple(fact.id for fact, most in pairs if fact.unlearned.samples > max(1, most))
    return Sampled(_rows(facts, by_fact, samples), returned, by_fact, samples, temperature)


@torch.no_grad()
def _draw(
    model: AdaptedModel, facts: Sequence[Fact], most: int, seed: int, progress: Progress, **drawn
) -> list[list[str]]:
    """The sampled replies for each fact, at most ROWS at once, but all of one fact together. most:
    tokens of a reply. drawn: sampling arguments of transformers' `generate`."""
    tokenizer, samples, texts_of_facts = model.tokenizer, drawn["num_return_sequences"], []
    at_once = max(1, ROWS // samples)
    model.network.eval()
    with torch.random.fork_rng(devices=model.gpus):
        torch.manual_seed(seed)
        for start in range(0, len(facts), at_once):
            progress.say(f"Drew for {start:,} of {len(facts):,} questions.")
            chosen = facts[start : start + at_once]
            prompts = [encode_prompt(tokenizer, fact.question, model.system) for fact in chosen]
            way = {"ends": model.ends, **drawn}
            written = replies(model.network, prompts, most, model.pad_id, **way)
            texts = tokenizer.batch_decode(written, skip_special_tokens=True)
            texts_of_facts += [texts[at : at + samples] for at in range(0, len(texts), samples)]
    return texts_of_facts


@torch.no_grad()
def _first_ranks(
    model: AdaptedModel, facts: Sequence[Fact], others: Sequence[Fact], progress: Progress
) -> tuple[list[int], list[int]]:
    """Ranks of the first tokens of the answers of `facts`, and of `others`, to their questions."""
    ranks: tuple[list[int], list[int]] = ([], [])
    for batches in base.opening_batches(model, facts, others, progress, ROWS):
        scored = model.score(batches[0], logits=True)
        base.check_logits(scored.logits)
        for batch, own in zip(batches, ranks):
            own += gold_rank(scored, batch.target).tolist()
    return ranks


def _tallies(
    facts: Sequence[Fact], texts: Sequence[Sequence[str]], ranks: Sequence[int]
) -> list[Tally]:
    return [
        Tally(sum(best_recall(fact.answers, text) == 1 for text in replies), rank)
        for fact, replies, rank in zip(facts, texts, ranks)
    ]


def _rows(
    facts: Sequence[Fact], by_fact: Sequence[base.Found], samples: int
) -> tuple[SampledRow, ...]:
    places = {f"{samples} samples": lambda one: one.samples > 0}
    places |= {f"top {top}": lambda one, top=top: one.rank <= top for top in TOPS}
    rows = []
    for tier, count, sides in base.sides_by_tier(facts, by_fact):
        for place, is_in in places.items():
            shares = (fmean(map(is_in, side)) if side else None for side in sides)
            rows.append(SampledRow(tier, place, count, *shares))
    return tuple(rows)
