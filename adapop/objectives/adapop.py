"""AdaPop's forget loss."""

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
