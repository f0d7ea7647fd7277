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
from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, log_softmax

from adapop.errors import ModelError
from adapop.model.adapted import Scored
from adapop.probes.recall import rouge_l_recall as rouge_l_recall

EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"


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
