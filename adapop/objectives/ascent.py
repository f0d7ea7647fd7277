"""Gradient ascent on the answers' tokens, weighed by the token's probability p: GA and GD by 1, WGA
by p^beta, SatImp by p^b1 * (1 - p)^b2, AdaPop by p^beta with a beta for each fact."""

from dataclasses import dataclass

import torch

from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective


@dataclass(frozen=True)
class AdaPop(Objective):
    """Popularity-weighted ascent (Eq. 5-6): L_f = -(1/N) sum w * nll with w = sg[p^beta].

    Borisiuk et al. 2026. Relations: beta == 1 everywhere is WGA(beta=1); beta == 0 everywhere is
    GA's forget loss. With alpha fixed it is the paper's "no controller" ablation.
    """

    name = "adapop"
    uses = frozenset({"beta"})

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per token, [N], in nats; non-positive. Weight: exp(-beta * nll), because p itself may
        underflow."""
        nll = model.score(batch.tokens).nll
        weight = torch.exp(-batch.beta * nll).detach()
        return Loss(-weight * nll, nll)


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


@dataclass(frozen=True)
class GradientAscent(Objective):
    """L = -(1/N) sum nll, without a retain term.

    Jang et al., ACL 2023, arXiv 2210.01504. Relations: AdaPop with beta == 0 and alpha = 0.
    Collapse at high rates is the expected, documented result.
    """

    name = "ga"
    retains = False

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per token, [N], in nats; non-positive."""
        nll = model.score(batch.tokens).nll
        return Loss(-nll, nll)


@dataclass(frozen=True)
class GradientDifference(GradientAscent):
    """L = -(1/N) sum nll_forget + alpha * mean nll_retain.

    Liu, Liu and Stone, CoLLAs 2022, arXiv 2203.12817. Relations: GA plus a retain term.
    """

    name = "gd"
    retains = True
