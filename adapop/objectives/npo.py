"""Negative preference optimisation: as published, with sharpness-aware minimisation, and without a
reference model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import logsigmoid

from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective


@dataclass(frozen=True)
class NegativePreference(Objective):
    """L_f = -(2/beta) mean_i log sigmoid(-beta * [log pi(y_i|x_i) - log pi_ref(y_i|x_i)]).

    Zhang, Lin, Bai and Mei, COLM 2024, arXiv 2404.05868. Log-probabilities are sums over the
    answer. At the start the ratio is 0 and L_f = (2/beta) ln 2. Relations: its gradient tends to
    GA's (on sequence sums) as beta -> 0. NPO's authors take beta = 0.1, the AdaPop paper 0.5.
    """

    beta: float = 0.5
    name = "npo"
    uses = frozenset({"reference"})
    reduce = "row"
    above_zero = ("beta",)

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]; positive."""
        scored = model.score(batch.tokens)
        log_ratio = scored.per_row(batch.reference_nll - scored.nll)
        return Loss(-(2 / self.beta) * logsigmoid(-self.beta * log_ratio), scored.nll)


@dataclass(frozen=True)
class SharpnessAwarePreference(NegativePreference):
    """NPO's forget gradient, taken at theta + rho * g / |g| where g is its gradient at theta.

    Fan et al., ICML 2025, arXiv 2502.05374. The norm is that of the gradient of the whole optimiser
    step, not of a micro-batch, over all adapter weights. The weights are restored from a copy,
    because subtracting the offset would round. The retain gradient is taken at theta. beta = 0.1 as
    in the authors' scripts. Relations: rho = 0 is NPO.
    """

    beta: float = 0.1
    rho: float = 0.01
    name = "npo-sam"
    joins = False
    not_negative = ("rho",)

    def backward(self, model: AdaptedModel, accumulate: Callable[[], Any]) -> Any:
        """Adds the forget gradient in two passes over the rows; returns the first pass's result."""
        first = accumulate()
        weights = [weight for weight in model.parameters if weight.grad is not None]
        saved = [weight.detach().clone() for weight in weights]
        try:
            with torch.no_grad():
                norm = torch.stack([weight.grad.norm() for weight in weights]).norm()
                for weight in weights:
                    weight.add_(self.rho / (norm + 1e-12) * weight.grad)
                    weight.grad = None
            accumulate()
        finally:
            with torch.no_grad():
                for weight, value in zip(weights, saved):
                    weight.copy_(value)
        return first


@dataclass(frozen=True)
class SimpleNegativePreference(Objective):
    """L_f = gamma * -(2/beta) mean_i log sigmoid(beta * (NLL_i / n_i - delta)).

    Fan et al., NeurIPS 2025, arXiv 2410.07163. NLL_i is summed over the n_i answer tokens; there is
    no reference model. The margin of that paper is beta * delta here.
    """

    beta: float = 4.5
    delta: float = 0.0
    gamma: float = 0.125
    name = "simnpo"
    reduce = "row"
    above_zero = ("beta", "gamma")

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]; positive."""
        scored = model.score(batch.tokens)
        margin = scored.row_mean(scored.nll) - self.delta
        return Loss(-self.gamma * (2 / self.beta) * logsigmoid(self.beta * margin), scored.nll)
