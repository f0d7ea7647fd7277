"""NPO with sharpness-aware minimisation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from adapop.model.adapted import AdaptedModel
from adapop.objectives.npo import NegativePreference


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
