"""The results of a forward pass at its answer tokens, and one pass shared by several batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import LogitsProcessor

from adapop.model.tokens import AnswerTokens


@dataclass(frozen=True)
class Scored:
    """Results of a forward pass at its N answer tokens; float32, or float64 if the model is."""

    nll: Tensor
    """-log p of each gold token, [N], nats."""
    row: Tensor
    """The batch row of each token, [N]."""
    rows: int
    """Number of batch rows, B."""
    logits: Tensor | None = None
    """Logits that predict each token, [N, V]; like the next two fields, None unless asked for."""
    hidden: Tensor | None = None
    """Mean of the hidden states over the answer's positions and the last four layers, [B, D]."""
    states: Tensor | None = None
    """One block's output where each token is predicted and where it is read, [2, N, D]."""
    gold: Tensor | None = None
    """Raw logit of each gold token, [N]."""

    def per_row(self, values: Tensor) -> Tensor:
        """Sum of a per-token tensor over each row: [N] -> [B]."""
        return values.new_zeros(self.rows).index_add(0, self.row, values)

    def row_mean(self, values: Tensor, counted: Tensor | None = None) -> Tensor:
        """Mean of a per-token tensor over each row's tokens: [N] -> [B]. counted: [N], bool; the
        mean is over these tokens only, 0 for a row without one."""
        weight = torch.ones_like(values) if counted is None else counted.to(values.dtype)
        return self.per_row(values * weight) / self.per_row(weight).clamp(min=1)

    def confidence(self, batch: AnswerTokens) -> list[tuple[float, int]]:
        """(p, rank) for each row. p: probability of its answer, [0, 1], the geometric mean over
        content tokens. rank: of the answer's first token in the vocabulary, 1 is the most likely.
        Needs logits."""
        p = (-self.row_mean(self.nll, batch.content)).exp()
        first = batch.place == 0
        rank = 1 + (self.logits[first] > self.gold[first].unsqueeze(1)).sum(1)
        return list(zip(p.tolist(), rank.tolist()))

    def part(self, batch: AnswerTokens, token: int, row: int) -> Scored:
        """The results for `batch` alone, whose tokens and rows begin at these indices."""
        tokens, rows = slice(token, token + batch.count), slice(row, row + batch.rows)
        logits = None if self.logits is None else self.logits[tokens]
        hidden = None if self.hidden is None else self.hidden[rows]
        states = None if self.states is None else self.states[:, tokens]
        nll, gold = self.nll[tokens], self.gold[tokens]
        return Scored(nll, batch.row, batch.rows, logits, hidden, states, gold)


class FirstToken(LogitsProcessor):
    """How likely each reply of a batch was to begin with a given token; changes nothing."""

    def __init__(self, tokens: Sequence[int]) -> None:
        """tokens: id of a token for each reply."""
        self._tokens = tokens
        self.confidences: tuple[list[float], list[int]] = ([], [])
        """(probabilities, ranks) of the tokens, 1 is the most likely; a value for each reply."""

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """The scores unchanged. They are logits in float32, [B, V]."""
        if not self.confidences[0]:
            gold = scores.gather(1, torch.tensor(self._tokens, device=scores.device).unsqueeze(1))
            p = (gold - scores.logsumexp(1, keepdim=True)).exp()
            self.confidences = p.squeeze(1).tolist(), (1 + (scores > gold).sum(1)).tolist()
        return scores


class JointPass:
    """One forward pass over several batches, run when the first of them is scored."""

    def __init__(self, whole: AnswerTokens, parts: Sequence[AnswerTokens]) -> None:
        self.whole, self.parts = whole, parts
        self._result: tuple[tuple, Scored] | None = None

    def share(
        self, batch: AnswerTokens, settings: tuple, score: Callable[[AnswerTokens], Scored]
    ) -> Scored | None:
        """The results for one part; None if the batch is not in the pass, or a requested result is
        not. settings: (block, hidden, logits), as in `AdaptedModel.score`."""
        token = row = 0
        for part in self.parts:
            if part is batch:
                break
            token, row = token + part.count, row + part.rows
        else:
            return None
        if self._result is None:
            self._result = settings, score(self.whole)
        settings_used, scored = self._result
        fits = settings_used[:2] == settings[:2] and settings_used[2] >= settings[2]
        return scored.part(batch, token, row) if fits else None


def pooled(layers: tuple[Tensor, ...], batch: AnswerTokens) -> Tensor:
    """Mean over layers and over each row's answer positions, [B, D]."""
    tokens = torch.stack([batch.at(layer, batch.reads).float() for layer in layers]).mean(0)
    total = tokens.new_zeros(batch.rows, tokens.shape[1]).index_add(0, batch.row, tokens)
    return total / torch.bincount(batch.row, minlength=batch.rows).unsqueeze(1)
