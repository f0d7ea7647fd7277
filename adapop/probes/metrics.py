"""Metrics of an answer: the six of the paper, and those of open-unlearning by its names.

The paper's, two on generated text, four teacher-forced on the answer's content tokens:

| metric | forget: better is | retain: better is |
|---|---|---|
| ROUGE-L recall of the generation | lower | higher |
| cosine of MiniLM embeddings | lower | higher |
| delta_logprob, nats per answer | more negative | 0 |
| delta_rank of the gold token | higher | 0 |
| hidden_cosine, last four layers | lower | higher |
| kl(original || unlearned), nats per token | higher | lower |

`memorised` and `truth_ratios` follow github.com/locuslab/open-unlearning (`src/evals/metrics`),
over the answer's tokens alone: its `probability` also counts the end of the text. For an answer of
one token `extraction_strength` is 1 by that formula, whatever the model says.
`adapop.probes.distance` combines the values of many facts.

The second guess tells whether a forgotten answer is the next best, which a greedy reply hides.
Answers are identified by their first token. The right answer is ranked among the answers of the
fact's relation; without a relation, or with fewer than `FEWEST` different first tokens, among all
tokens.
"""

import math
import os
import random
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, log_softmax

from adapop.errors import ModelError
from adapop.facts.fact import Fact, OwnAnswer
from adapop.facts.pool import Pool
from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import AnswerTokens, Row, Scored, encode_facts
from adapop.probes.distance import truth_ratio
from adapop.probes.ways import place_of

EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
# Share of an answer's tokens that min-k looks at: open-unlearning's setting for TOFU and MUSE.
LEAST_TOKENS = 0.4
LEAST_VARIANCE = 1e-6
WRONG_ANSWERS = 5  # per fact, as in TOFU
FEWEST = 3
Guesses = dict[tuple[str, str], float]
Rivals = Mapping[str, frozenset[int]]


def cosines(gold: Sequence[str], generations: Sequence[str]) -> list[float]:
    """Cosines of all-MiniLM-L6-v2 embeddings, in [-1, 1]. An empty generation has an embedding and
    is not skipped. Raises ModelError: sentence-transformers or its weights are missing."""
    embedder = _embedder(os.environ.get("ADAPOP_EMBEDDER", EMBEDDER))
    embed = partial(embedder.encode, normalize_embeddings=True)
    left, right = embed(list(gold)), embed(list(generations))
    return [float(value) for value in (left * right).sum(axis=1)]


def delta_logprob(original: Scored, unlearned: Scored) -> Tensor:
    """Sum over the answer of log p(unlearned) - log p(original), nats, [B]."""
    return unlearned.per_row(original.nll - unlearned.nll)


def gold_rank(scored: Scored, target: Tensor) -> Tensor:
    """Rank of each gold token, 1 is best, [N]. Needs logits."""
    return rank_of(scored.logits, target)


def rank_of(logits: Tensor, target: Tensor) -> Tensor:
    """1 + the number of strictly more likely tokens, [N]. logits: [N, V]. target: ids, [N]."""
    return 1 + (logits > logits.gather(1, target.unsqueeze(1))).sum(1)


def delta_rank(original: Scored, unlearned: Scored, target: Tensor) -> Tensor:
    """Mean over the answer of rank(unlearned) - rank(original), [B]. Needs logits."""
    change = (gold_rank(unlearned, target) - gold_rank(original, target)).float()
    return unlearned.row_mean(change)


def hidden_cosine(original: Scored, unlearned: Scored) -> Tensor:
    """Cosine between mean hidden states of the answer, last four layers, [B]. Needs hidden."""
    return cosine_similarity(original.hidden, unlearned.hidden, dim=1)


def kl(original: Scored, unlearned: Scored) -> Tensor:
    """Mean over the answer of KL(original || unlearned) in nats, [B]. Needs logits."""
    before, after = log_softmax(original.logits, dim=-1), log_softmax(unlearned.logits, dim=-1)
    return unlearned.row_mean((before.exp() * (before - after)).sum(-1))


@cache
def _embedder(name: str):
    try:
        from sentence_transformers import SentenceTransformer

        from adapop.model.loading import READING

        with READING:
            return SentenceTransformer(name, device="cpu")
    except (ImportError, OSError, ValueError) as error:
        reason = f"The embedding model {name!r} cannot be loaded ({str(error).splitlines()[0]})."
        fix = "Install sentence-transformers and let it download once, or set ADAPOP_EMBEDDER to a"
        raise ModelError(reason, f"{fix} folder.") from error


@torch.no_grad()
def by_fact(
    model: AdaptedModel,
    facts: Sequence[Fact],
    of: Callable[[AnswerTokens, Sequence[str]], dict[str, list[float]]],
) -> dict[str, list[float]]:
    """Metric -> a value per fact, from its own question. of: the metrics of a batch, given its
    answers' texts."""
    rows = model.rows(facts)
    model.network.eval()

    def piece(pairs: Sequence[tuple[Row, Fact]]) -> dict[str, list[float]]:
        return of(model.batch([row for row, _ in pairs]), [fact.answer for _, fact in pairs])

    pieces = list(model.in_pieces(list(zip(rows, facts)), model.at_once(rows), piece))
    names = pieces[0] if pieces else ()
    return {name: [value for piece in pieces for value in piece[name]] for name in names}


def memorised(
    scored: Scored, batch: AnswerTokens, texts: Sequence[str], least: float = LEAST_TOKENS
) -> dict[str, list[float]]:
    """Metric -> its value for each row of a batch. scored: with logits. texts: the rows' answers.
    least: share of an answer's tokens that min-k looks at.

    probability: of the answer, the geometric mean over its tokens, [0, 1]. exact_memorization:
    share of its tokens that are the likeliest, [0, 1]. extraction_strength: 1 - k/n with the least
    k such that after k of the n tokens all others are the likeliest, [1/n, 1]. mia_loss, mia_min_k:
    -log p of the answer, and of its least likely tokens, nats per token. mia_min_k_plus_plus: min-k
    in standard deviations over the vocabulary. mia_zlib: mia_loss divided by the bytes of the
    compressed answer. A higher mia score means that a fact looks less trained on."""
    log_p = log_softmax(scored.logits, dim=-1)
    gold = log_p.gather(1, batch.target.unsqueeze(1)).squeeze(1)
    p = log_p.exp()
    mean = (p * log_p).sum(-1)
    variance = (p * log_p.square()).sum(-1) - mean.square()
    normalised = (gold - mean) / variance.clamp(min=LEAST_VARIANCE).sqrt()
    right = scored.logits.argmax(-1) == batch.target
    counts = batch.row.bincount().tolist()  # tokens are in the order of the rows
    columns = (tensor.cpu().split(counts) for tensor in (gold, normalised, right))
    rows = []
    for text, *parts in zip(texts, *columns, strict=True):
        values, scaled, likeliest = (part.tolist() for part in parts)
        nll = -sum(values) / len(values)
        row = {
            "probability": math.exp(-nll),
            "exact_memorization": sum(likeliest) / len(likeliest),
            "extraction_strength": _extraction_strength(likeliest),
            "mia_loss": nll,
            "mia_min_k": -_mean_of_least(values, least),
            "mia_min_k_plus_plus": -_mean_of_least(scaled, least),
            "mia_zlib": nll / len(zlib.compress(text.encode())),
        }
        rows.append(row)
    return {name: [row[name] for row in rows] for name in rows[0]}


def wrong_answers(facts: Sequence[Fact], others: Sequence[Fact]) -> list[tuple[str, ...]]:
    """Up to `WRONG_ANSWERS` wrong answers of each fact: its own alternates, or else answers of the
    same relation among facts and others, which may have facts again. The same facts get the same
    answers."""
    pool, rng = Pool([*facts, *others]), random.Random(0)
    drawn = [fact.alternates or tuple(pool.distractors(fact, rng)) for fact in facts]
    return [answers[:WRONG_ANSWERS] for answers in drawn]


@torch.no_grad()
def truth_ratios(
    model: AdaptedModel, facts: Sequence[Fact], wrong: Sequence[Sequence[str]]
) -> list[float | None]:
    """TOFU's truth ratio of each fact, asked as trained; None for a fact without wrong answers.
    TOFU rewords the right answer; facts have no reworded one, so the answer itself is used."""
    pairs_of = zip(facts, wrong, strict=True)
    answers = [(fact.answer, *others) if others else () for fact, others in pairs_of]
    pairs = [(fact, answer) for fact, own in zip(facts, answers) for answer in own]
    rows = model.rows([Fact(fact.id, fact.question, answer) for fact, answer in pairs])
    nll = iter(nlls(model, rows))
    values = [[next(nll) for _ in own] for own in answers]
    return [truth_ratio(own[0], own[1:]) if own else None for own in values]


@torch.no_grad()
def nlls(model: AdaptedModel, rows: Sequence[Row]) -> list[float]:
    """Mean -log p per token of each row's answer, in nats."""

    def of(piece: Sequence[Row]) -> list[float]:
        scored = model.score(model.batch(piece))
        return scored.row_mean(scored.nll).tolist()

    model.network.eval()
    return [value for piece in model.in_pieces(rows, model.at_once(rows), of) for value in piece]


def _extraction_strength(likeliest: Sequence[bool]) -> float:
    count = len(likeliest)
    return 1 - next((k for k in range(count) if all(likeliest[k:])), count - 1) / count


def _mean_of_least(values: Sequence[float], share: float) -> float:
    least = sorted(values)[: max(1, int(len(values) * share))]
    return sum(least) / len(least)


def rivals(model: AdaptedModel, facts: Iterable[Fact]) -> Rivals:
    """Relation -> first tokens of its answers, behind the lead of the model's own words; only
    relations with at least `FEWEST` such tokens."""
    firsts: dict[str, set[int]] = {}
    named, spoken = [fact for fact in facts if fact.relation], {}
    for fact in named:
        if own := model.spoken.get(fact.id):
            reply = own.lead + own.answer  # of a fact to retain, all of it
            if place := place_of(fact, reply):
                spoken[fact.id] = OwnAnswer(own.gold, reply[: place[0]], reply[place[0] :])
    rows = encode_facts(model.tokenizer, named, model.system, spoken=spoken)
    for fact, row in zip(named, rows):
        firsts.setdefault(fact.relation, set()).add(row.answer[0])
    return {name: frozenset(tokens) for name, tokens in firsts.items() if len(tokens) >= FEWEST}


def guess(gold: int, others: frozenset[int] | None, logits: Tensor) -> tuple[bool, int]:
    """Whether the gold token is the first or second guess, and its rank among `others`, from 1.
    Second: at most one of `others` is likelier, and it is the likeliest token of all. others: None
    for all tokens. logits: [V]."""
    if others is None:
        rank = 1 + int((logits > logits[gold]).sum())
        return rank <= 2, rank
    greedy, known = int(logits.argmax()), sorted(others)
    values, gold_value = logits[known].tolist(), logits[gold].item()
    ahead = {other for other, value in zip(known, values) if value > gold_value}
    return gold == greedy or not ahead - {greedy}, 1 + len(ahead)


@torch.no_grad()
def second_guesses(model: AdaptedModel, facts: Sequence[Fact]) -> dict[str, Guesses]:
    """Measure -> its value by fact id and rewording: "top2", 1 if the right answer is the first or
    second guess, else 0; "rank", the second value of `guess`."""
    model.network.eval()
    pairs = [(fact, question) for fact in facts for question in fact.paraphrases]
    rows = model.rows([fact for fact, _ in pairs], [question for _, question in pairs])
    known = rivals(model, facts)

    def guessed(rows: Sequence[Row]) -> list[tuple[bool, int]]:
        batch = model.batch(rows)
        logits = model.score(batch, logits=True).logits[batch.place == 0]
        others = (known.get(pairs[row.fact][0].relation) for row in rows)
        return [guess(row.answer[0], own, of) for row, own, of in zip(rows, others, logits)]

    guesses = list(chain.from_iterable(model.in_pieces(rows, model.at_once(rows), guessed)))
    keys = [(fact.id, question) for fact, question in pairs]
    return {
        "top2": {key: float(near) for key, (near, _) in zip(keys, guesses)},
        "rank": {key: float(rank) for key, (_, rank) in zip(keys, guesses)},
    }
