"""The six metrics of the paper: two on generated text, four teacher-forced on the answer's content tokens.

| metric | forget: better is | retain: better is |
|---|---|---|
| ROUGE-L recall of the generation | lower | higher |
| cosine of MiniLM embeddings | lower | higher |
| delta_logprob, nats per answer | more negative | 0 |
| delta_rank of the gold token | higher | 0 |
| hidden_cosine, last four layers | lower | higher |
| kl(original || unlearned), nats per token | higher | lower |
"""

import os
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache

import torch
from rouge_score import rouge_scorer
from torch import Tensor
from torch.nn.functional import cosine_similarity, log_softmax

from adapop.errors import ModelError
from adapop.facts.text import folded
from adapop.model.adapted import Scored

EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"


@lru_cache(maxsize=2**16)  # a run gives few distinct answers
def rouge_l_recall(gold: str, generation: str, fold: bool = True) -> float:
    """|LCS(words)| / |gold words|, in [0, 1], as `rouge_score` computes it with stemming.

    fold=True first removes accents and case and falls back to Unicode words where nothing Latin is left; fold=False
    is the strict original, which splits words at accents and scores non-Latin gold answers 0.
    """
    if fold:
        gold, generation = _spelled(gold), _spelled(generation)
    return _scorer().score(gold, generation)["rougeL"].recall


def cosines(gold: Sequence[str], generations: Sequence[str]) -> list[float]:
    """Cosines of all-MiniLM-L6-v2 embeddings, in [-1, 1]. An empty generation has an embedding and is not skipped.

    Raises:
        ModelError: sentence-transformers or its weights are missing.
    """
    embedder = _embedder(os.environ.get("ADAPOP_EMBEDDER", EMBEDDER))
    left, right = (embedder.encode(list(texts), normalize_embeddings=True) for texts in (gold, generations))
    return [float(value) for value in (left * right).sum(axis=1)]


def delta_logprob(original: Scored, unlearned: Scored) -> Tensor:
    """Sum over the answer of log p(unlearned) - log p(original), nats, [B]."""
    return unlearned.per_row(original.nll - unlearned.nll)


def gold_rank(scored: Scored, target: Tensor) -> Tensor:
    """Rank of each gold token: 1 + the number of strictly more likely tokens, [N]. Needs logits."""
    gold = scored.logits.gather(1, target.unsqueeze(1))
    return 1 + (scored.logits > gold).sum(1)


def delta_rank(original: Scored, unlearned: Scored, target: Tensor) -> Tensor:
    """Mean over the answer of rank(unlearned) - rank(original), [B]. Needs logits."""
    change = (gold_rank(unlearned, target) - gold_rank(original, target)).float()
    return unlearned.per_row(change) / unlearned.per_row(torch.ones_like(change))


def hidden_cosine(original: Scored, unlearned: Scored) -> Tensor:
    """Cosine between mean hidden states of the answer, last four layers, [B]. Needs hidden."""
    return cosine_similarity(original.hidden, unlearned.hidden, dim=1)


def kl(original: Scored, unlearned: Scored) -> Tensor:
    """Mean over the answer of KL(original || unlearned) over the vocabulary, nats, [B]. Needs logits."""
    before, after = log_softmax(original.logits, dim=-1), log_softmax(unlearned.logits, dim=-1)
    divergence = (before.exp() * (before - after)).sum(-1)
    return unlearned.per_row(divergence) / unlearned.per_row(torch.ones_like(divergence))


@cache
def _scorer() -> rouge_scorer.RougeScorer:
    return rouge_scorer.RougeScorer(["rougeL"], use_stemmer=True)


@cache
def _embedder(name: str):
    try:
        from sentence_transformers import SentenceTransformer

        from adapop.model.loading import READING

        with READING:
            return SentenceTransformer(name, device="cpu")
    except (ImportError, OSError, ValueError) as error:
        raise ModelError(
            f"The embedding model {name!r} cannot be loaded ({str(error).splitlines()[0]}).",
            "Install sentence-transformers and let it download once, or set ADAPOP_EMBEDDER to a folder.",
        ) from error


def _spelled(text: str) -> str:
    # rouge_score reads [a-z0-9] only; other letters are replaced by their code points, so that a word stays one word
    known = folded(text)
    return "".join(f"u{ord(c):x}" if not c.isascii() and unicodedata.category(c)[0] in "LMN" else c for c in known)
