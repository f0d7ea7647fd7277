"""Gradient ascent."""

from __future__ import annotations

from dataclasses import dataclass

from adapop.model import AdaptedModel
from adapop.objectives.base import ForgetBatch, ForgetLoss, Objective


@dataclass(frozen=True)
class GradientAscent(Objective):
    """L = -(1/N) sum nll, with nothing to hold the rest of the model in place.

    Relations: AdaPop with beta == 0 and alpha = 0. Collapse at high rates is the expected, documented result.
    """

    name, title, paper = "ga", "Gradient ascent", "Jang et al., ACL 2023, arXiv 2210.01504"
    retains = False

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> ForgetLoss:
        """Per token, [N], in nats; non-positive."""
        nll = model.score(batch.tokens).nll
        return ForgetLoss(-nll, nll)
