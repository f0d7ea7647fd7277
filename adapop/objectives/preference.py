"""Preference optimisation: NPO, NPO-SAM, SimNPO, AltPO, TPO."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import logsigmoid

from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective

SOURCES = ("model", "relation")


@dataclass(frozen=True)
class NegativePreference(Objective):
    """L_f = -(2/beta) mean_i log sigmoid(-beta * [log pi(y_i|x_i) - log pi_ref(y_i|x_i)]).

    Zhang, Lin, Bai and Mei, COLM 2024, arXiv 2404.05868. Log-probabilities are sums over the answer. At the start the
    ratio is 0 and L_f = (2/beta) ln 2. Relations: its gradient tends to GA's (on sequence sums) as beta -> 0. The
    AdaPop paper runs it with beta = 0.5, its own authors with 0.1.
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

    Fan et al., ICML 2025, arXiv 2502.05374. The norm is over all adapter weights, the gradient of the whole optimiser
    step, not of a micro-batch. The weights are restored from a copy, because subtracting the offset would round. The
    retain gradient is taken at theta. beta = 0.1 as in the authors' scripts. Relations: rho = 0 is NPO.
    """

    beta: float = 0.1
    rho: float = 0.01
    name = "npo-sam"
    joins = False
    not_negative = ("rho",)

    def backward(self, model: AdaptedModel, accumulate: Callable[[], Any]) -> Any:
        """Adds the forget gradient in two passes over the step's rows; returns what the first saw, at theta."""
        seen = accumulate()
        weights = model.parameters
        saved = [weight.detach().clone() for weight in weights]
        try:
            with torch.no_grad():
                norm = torch.stack([weight.grad.norm() for weight in weights]).norm()
                for weight in weights:
                    weight += self.rho / (norm + 1e-12) * weight.grad
                    weight.grad = None
            accumulate()
        finally:
            with torch.no_grad():
                for weight, value in zip(weights, saved):
                    weight.copy_(value)
        return seen


@dataclass(frozen=True)
class SimpleNegativePreference(Objective):
    """L_f = gamma * -(2/beta) mean_i log sigmoid(beta * (NLL_i / n_i - delta)).

    Fan et al., NeurIPS 2025, arXiv 2410.07163. NLL_i is summed over the n_i answer tokens; there is no reference model.
    The margin of that paper is beta * delta here.
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


@dataclass(frozen=True)
class AlternatePreference(Objective):
    """L_f = -(2/beta) mean_i log sigmoid(beta * [log (pi/pi_ref)(alternate_i) - log (pi/pi_ref)(y_i)]).

    Mekala et al., COLING 2025, arXiv 2409.13474. DPO with a plausible wrong answer preferred to the right one. Where a
    fact has several alternates, each epoch uses the next one. Relations: swapping the two answers changes the sign of
    the bracket.
    """

    beta: float = 0.5
    source: str = "model"
    """Where facts without alternates get one: written by the original "model" before training, or the answer of
    another fact of the same "relation" (see `adapop.objectives.alternates`)."""
    name = "altpo"
    uses = frozenset({"reference", "alternates"})
    reduce = "row"

    def __post_init__(self) -> None:
        self._check("beta", self.beta > 0, "above 0")
        self._check("source", self.source in SOURCES, " or ".join(SOURCES))

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]; positive."""
        gold, other = model.score(batch.tokens), model.score(batch.other)
        log_ratio = gold.per_row(batch.reference_nll - gold.nll)
        other_ratio = other.per_row(batch.other_reference_nll - other.nll)
        return Loss(-(2 / self.beta) * logsigmoid(self.beta * (other_ratio - log_ratio)), gold.nll)


@dataclass(frozen=True)
class TargetedPreference(Objective):
    """L_f = gamma * mean_i [-(2/beta) log sigmoid(beta * d_i) + mean NLL of the general tokens of y_i],
    d_i = mean over the unwanted tokens of y_i of z_ref[gold] - z[gold], on raw logits.

    Zhou et al., AAAI 2026, arXiv 2506.03142, per example and with gamma 0.1 and beta 0.2 as in its LoRA port. Unwanted
    tokens are those of words that carry the fact; general ones are stop words, punctuation and the end of the turn (see
    `adapop.objectives.fact_words`). The loss acts on logits, so its gradient does not fade as p -> 0, only once d is
    well above 1 / beta.
    """

    beta: float = 0.2
    gamma: float = 0.1
    name = "tpo"
    uses = frozenset({"reference", "words"})
    reduce = "row"
    above_zero = ("beta", "gamma")

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]; positive. A row without general tokens has no second term."""
        scored = model.score(batch.tokens)
        drop = scored.row_mean(batch.reference_gold - scored.gold, batch.unwanted)
        general = scored.row_mean(scored.nll, ~batch.unwanted)
        preference = -(2 / self.beta) * logsigmoid(self.beta * drop)
        return Loss(self.gamma * (preference + general), scored.nll)
