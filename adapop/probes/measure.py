"""Measurements during and after a run: recall and other metrics by group, tier and form of the question.

`quick` is for every epoch: recall of generated answers to forget facts. `full` adds retain, holdout and utility, every
rewording, and the teacher-forced metrics against the original model. Replies end at `budget` tokens.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain
from statistics import fmean

import torch

from adapop.facts.fact import GROUPS, TIERS, Fact, FactSet
from adapop.model.adapted import AdaptedModel
from adapop.model.chat import plain
from adapop.model.tokens import Row, encode_facts
from adapop.probes.metrics import cosines, delta_logprob, delta_rank, hidden_cosine, kl, rouge_l_recall
from adapop.probes.plan import evenly
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.progress import Progress

EVAL_BATCH = 256
TIMES, SPARE = 2, 8  # a reply may have so many times the longest answer's tokens, and so many more


@dataclass(frozen=True)
class Measurement:
    """Means over the facts of one group and tier, asked in one form. Metrics that were not measured are None."""

    group: str
    """One of `facts.fact.GROUPS`."""
    tier: str
    """A tier of scores, or "all" for the whole group."""
    form: str
    """`DIRECT` or `REWORDED`."""
    facts: int
    """Their number, at least 1."""
    recall: float
    """ROUGE-L recall of the greedy reply, [0, 1]."""
    words: float
    """Length of a reply in words."""
    strict: float | None = None
    """The recall without folding accents and letters that are not Latin, see `rouge_l_recall`."""
    cosine: float | None = None
    """MiniLM cosine with the gold answer, [-1, 1]."""
    nll: float | None = None
    """-log p of the gold answer, nats per token."""
    delta_logprob: float | None = None
    """Log-probability of the gold answer, unlearned minus original, nats per answer."""
    delta_rank: float | None = None
    """Rank of the gold tokens, unlearned minus original, mean over the answer."""
    hidden_cosine: float | None = None
    """Cosine between both models' hidden states at the answer, [-1, 1]."""
    kl: float | None = None
    """KL(original || unlearned), nats per token."""


@dataclass(frozen=True)
class Quick:
    """What is measured after an epoch: of the facts to forget, their own questions and their first rewordings."""

    rows: list[Measurement]
    answers: list[str]
    """To each fact's own question."""
    confidence: dict[str, list[tuple[float, int] | None]]
    """What `confidence` would give by form, read off on the way; None for an answer of several tokens, and
    where the replies' logits are not in float32."""


def thinned(facts: FactSet, per_tier: int) -> FactSet:
    """The set with at most so many facts of each group and tier, spread evenly over their scores; 0 for all."""
    if not per_tier:
        return facts
    return replace(facts, **{group: tuple(evenly(getattr(facts, group), per_tier)) for group in GROUPS})


def questions_of(facts: FactSet, whole: bool) -> int:
    """How many questions `full` asks, or if not whole `quick`."""
    if not whole:
        return sum(1 + bool(fact.paraphrases) for fact in facts.forget)
    return sum(1 + len(fact.paraphrases) for group in GROUPS for fact in getattr(facts, group))


def budget(model: AdaptedModel, facts: Iterable[Fact], most: int) -> int:
    """Tokens that a reply to these facts' questions may have: what the longest of their answers can need, with room for
    words around it, but not more than `most`. A model that no longer knows an answer may otherwise ramble on."""
    if most <= SPARE:
        return most
    longest = max((len(plain(model.tokenizer, answer)) for answer in {fact.answer for fact in facts}), default=0)
    return min(most, TIMES * longest + SPARE)


def _every(facts: FactSet) -> Iterable[Fact]:
    return chain.from_iterable(getattr(facts, group) for group in GROUPS)


def quick(model: AdaptedModel, facts: FactSet, max_new_tokens: int) -> Quick:
    """Recall of the forget facts by tier: the trained question, and each fact's first rewording."""
    reworded = [replace(fact, question=fact.paraphrases[0]) for fact in facts.forget if fact.paraphrases]
    measured, answers, seen = [], {}, {}
    tokens = budget(model, _every(facts), max_new_tokens)
    for form, members in ((DIRECT, facts.forget), (REWORDED, reworded)):
        rows = encode_facts(model.tokenizer, members, model.system)
        replies = model.replies(rows, tokens)
        answers[form] = [text for text, *_ in replies]
        seen[form] = [
            (p, rank) if len(row.answer) == 1 and not model.narrow else None for row, (_, p, rank) in zip(rows, replies)
        ]
        judged = _judged([fact.answer for fact in members], answers[form])
        measured += _by_tier("forget", form, members, judged)
    return Quick(measured, answers[DIRECT], seen)


def full(model: AdaptedModel, facts: FactSet, max_new_tokens: int, cosine: bool = False) -> list[Measurement]:
    """All measurements on every group. The teacher-forced metrics are in the direct rows."""
    rows, tokens = [], budget(model, _every(facts), max_new_tokens)
    for group in GROUPS:
        members = getattr(facts, group)
        direct = _answered(model, members, _question, tokens, cosine) | _internals(model, members)
        rows += _by_tier(group, DIRECT, members, direct)
        reworded = [fact for fact in members if fact.paraphrases]
        answered = _answered(model, reworded, lambda fact: fact.paraphrases, tokens, cosine)
        rows += _by_tier(group, REWORDED, reworded, answered)
    return rows


def recall_by_fact(
    model: AdaptedModel, facts: Sequence[Fact], max_new_tokens: int, progress: Progress
) -> dict[str, float]:
    """Fact id -> recall of its trained question, by the model in its current state.

    Raises:
        Stopped: somebody asked to stop.
    """
    recall: dict[str, float] = {}
    tokens = budget(model, facts, max_new_tokens)
    for start in range(0, len(facts), EVAL_BATCH):
        progress.say(f"Asked {start:,} of {len(facts):,} questions.")
        members = facts[start : start + EVAL_BATCH]
        answered = _answered(model, members, _question, tokens)["recall"]
        recall |= {fact.id: value for fact, value in zip(members, answered)}
    return recall


@torch.no_grad()
def confidence(model: AdaptedModel, rows: Sequence[Row]) -> list[tuple[float, int]]:
    """What `Scored.confidence` says of each row, in eval mode. Where many rows begin alike it takes half the time."""
    model.network.eval()
    order = sorted(range(len(rows)), key=lambda i: rows[i].prompt)
    pieces = model.in_pieces([rows[i] for i in order], model.at_once(rows), partial(_confident, model))
    return [found for _, found in sorted(zip(order, chain.from_iterable(pieces)))]


def _confident(model: AdaptedModel, rows: Sequence[Row]) -> list[tuple[float, int]]:
    batch = model.batch(rows)
    return model.score(batch, logits=True).confidence(batch)


def _question(fact: Fact) -> tuple[str]:
    return (fact.question,)


def _answered(
    model: AdaptedModel,
    facts: Sequence[Fact],
    asks: Callable[[Fact], Sequence[str]],
    max_new_tokens: int,
    cosine: bool = False,
) -> dict[str, list[float]]:
    """Metrics of the generated answers, one value per fact: the mean over its questions."""
    asked = [(fact, question) for fact in facts for question in asks(fact)]
    answers = model.generate([question for _, question in asked], max_new_tokens)
    golds = [fact.answer for fact, _ in asked]
    values = _judged(golds, answers)
    if cosine and asked:
        values["cosine"] = cosines(golds, answers)
    ends = list(accumulate(len(asks(fact)) for fact in facts))
    spans = list(zip([0, *ends], ends))
    return {name: [fmean(column[start:end]) for start, end in spans] for name, column in values.items()}


def _judged(golds: Sequence[str], answers: Sequence[str]) -> dict[str, list[float]]:
    """Metrics of each generated answer."""
    pairs = list(zip(golds, answers))
    recall = [rouge_l_recall(gold, answer) for gold, answer in pairs]
    strict = [
        same if gold.isascii() and answer.isascii() else rouge_l_recall(gold, answer, fold=False)
        for same, (gold, answer) in zip(recall, pairs)
    ]
    return {"recall": recall, "strict": strict, "words": [len(answer.split()) for answer in answers]}


def _by_tier(group: str, form: str, facts: Sequence[Fact], values: dict[str, list[float]]) -> list[Measurement]:
    """A row for all facts and one for each tier with facts; facts without a score are in no tier."""
    rows = []
    for tier in ("all", *TIERS):
        chosen = [i for i, fact in enumerate(facts) if tier in ("all", fact.tier)]
        if chosen:
            means = {name: fmean(column[i] for i in chosen) for name, column in values.items()}
            rows.append(Measurement(group, tier, form, len(chosen), **means))
    return rows


@torch.no_grad()
def _internals(model: AdaptedModel, facts: Sequence[Fact]) -> dict[str, list[float]]:
    """The teacher-forced metrics of each fact's own question, unlearned against original."""
    rows = encode_facts(model.tokenizer, facts, model.system)
    model.network.eval()
    pieces = list(model.in_pieces(rows, model.at_once(rows), partial(_compared, model)))
    return {name: [value for piece in pieces for value in piece[name]] for name in (pieces[0] if pieces else ())}


def _compared(model: AdaptedModel, rows: Sequence[Row]) -> dict[str, list[float]]:
    """The metrics of each row."""
    batch = model.batch(rows)
    after = model.score(batch, logits=True, hidden=True)
    with model.original():
        before = model.score(batch, logits=True, hidden=True)
    found = {
        "nll": after.per_row(after.nll) / after.per_row(torch.ones_like(after.nll)),
        "delta_logprob": delta_logprob(before, after),
        "delta_rank": delta_rank(before, after, batch.target),
        "hidden_cosine": hidden_cosine(before, after),
        "kl": kl(before, after),
    }
    return {name: values.tolist() for name, values in found.items()}
