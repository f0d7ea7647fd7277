"""Loss adjustment with only forget data."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective

# f-divergence -> (g(x), f*(g(x)))
DIVERGENCES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "total-variation": (lambda x: torch.tanh(x) / 2, lambda x: torch.tanh(x) / 2),
    "kl": (lambda x: x, lambda x: torch.exp(x - 1)),
    "pearson": (lambda x: x, lambda x: x.square() / 4 + x),
    "jensen-shannon": (lambda x: math.log(2) - softplus(-x), lambda x: x + softplus(-x) - math.log(2)),
}


@dataclass(frozen=True)
class Flat(Objective):
    """L_f = mean_i [-g(P_i(refusal)) + f*(g(P_i(answer)))], P_i the mean probability of a text's tokens.

    Wang et al., ICLR 2025, arXiv 2410.11143. The refusal ends with the tokenizer's end-of-sequence token, also where
    the chat template ends a turn with another one (Gemma's <end_of_turn>); the answer's end is not trained on, as in
    every method. As published there is no retain term (alpha = 0), and at high rates every question is refused,
    retained ones too; with alpha above 0 it is "FLAT + retain".
    """

    divergence: str = "total-variation"
    """A key of DIVERGENCES."""
    refusal: str = "I don't know."
    name = "flat"
    uses = frozenset({"refusal"})
    reduce = "row"

    def __post_init__(self) -> None:
        self._check("divergence", self.divergence in DIVERGENCES, f"one of {', '.join(DIVERGENCES)}")
        self._check("refusal", bool(self.refusal.strip()), "a text")

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]; dimensionless."""
        gain, loss = DIVERGENCES[self.divergence]
        gold, other = model.score(batch.tokens), model.score(batch.other)
        refused, answered = (scored.row_mean(torch.exp(-scored.nll)) for scored in (other, gold))
        return Loss(loss(answered) - gain(refused), gold.nll)
