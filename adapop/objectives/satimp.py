"""Saturation and importance."""

from dataclasses import dataclass

import torch

from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective


@dataclass(frozen=True)
class SaturationImportance(Objective):
    """L_f = -gamma * (1/N) sum sg[p^b1 * (1 - p)^b2] * nll.

    Yang et al., ICML 2025, arXiv 2505.11953. Tokens with p near 1 get almost no weight; the smaller
    b2, the less this holds. The presets take b2 = 0.1 from the authors' README. The default here is
    from their later contribution to open-unlearning, and stays because runs were made with it.
    Relations: b2 = 0 is WGA(beta=b1).
    """

    b1: float = 5.0
    b2: float = 1.0
    gamma: float = 1.0
    name = "satimp"
    above_zero = ("gamma",)
    not_negative = ("b1", "b2")

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per token, [N], in nats; non-positive. 1 - p is -expm1(-nll), exact where p is near 1."""
        nll = model.score(batch.tokens).nll
        weight = (torch.exp(-self.b1 * nll) * (-torch.expm1(-nll)) ** self.b2).detach()
        return Loss(-self.gamma * weight * nll, nll)
