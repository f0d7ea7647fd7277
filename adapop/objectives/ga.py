"""Gradient ascent."""

from dataclasses import dataclass

from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective


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
