"""Weighted gradient ascent."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from adapop.errors import ConfigError
from adapop.model import AdaptedModel
from adapop.objectives.base import ForgetBatch, ForgetLoss, Objective


@dataclass(frozen=True)
class WeightedGradientAscent(Objective):
    """L_f = -(1/N) sum sg[p^beta] * nll with one beta for all facts.

    Relations: AdaPop with a constant beta. beta = 0 is GD's forget loss.
    """

    beta: float = 1.0
    name, title, paper = "wga", "WGA", "Wang et al., ICLR 2025, arXiv 2502.19301"

    def __post_init__(self) -> None:
        if self.beta < 0:
            raise ConfigError(f"WGA's beta is {self.beta}.", "It must be at least 0.")

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> ForgetLoss:
        """Per token, [N], in nats; non-positive."""
        nll = model.score(batch.tokens).nll
        return ForgetLoss(-torch.exp(-self.beta * nll).detach() * nll, nll)
