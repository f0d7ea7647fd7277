"""NPO with sharpness-aware minimisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from adapop.model.adapted import AdaptedModel
from adapop.objectives.npo import NegativePreference


@dataclass(frozen=True)
class SharpnessAwarePreference(NegativePreference):
    """NPO's forget gradient, taken at theta + rho * g / |g| where g is its gradient at theta.

    Fan et al., ICML 2025, arXiv 2502.05374. One norm over all adapter weights, and the gradient of the whole optimiser
    step, not of each micro-batch. The weights are put back from a copy: subtracting what was added would round. The
    retain gradient is taken at theta. beta = 0.1 as in its authors' scripts. Relations: rho = 0 is NPO.
    """

    beta: float = 0.1
    rho: float = 0.01
    name = "npo-sam"
    joins = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("rho", self.rho >= 0, "at least 0")

    def backward(self, model: AdaptedModel, accumulate: Callable[[], Any]) -> Any:
        """Two passes over the step's forget rows; loss and nll are those of the first, at theta."""
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
