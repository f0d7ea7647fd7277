"""Weighted gradient ascent."""

from dataclasses import dataclass

import torch

from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective


@dataclass(frozen=True)
class WeightedGradientAscent(Objective):
    """L_f = -(1/N) sum sg[p^beta] * nll with one beta for all facts.

    Wang et al., ICLR 2025, arXiv 2502.19301. Relations: AdaPop with a constant beta. beta = 0 is
    GD's forget loss.
    """

    beta: float = 1.0
    name = "wga"
    not_negative = ("beta",)

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per token, [N], in nats; non-positive."""
        nll = model.score(batch.tokens).nll
        return Loss(-torch.exp(-self.beta * nll).detach() * nll, nll)
