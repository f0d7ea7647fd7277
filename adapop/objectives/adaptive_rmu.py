"""Adaptive RMU."""

from __future__ import annotations

from dataclasses import dataclass

from adapop.objectives.steering import Steering


@dataclass(frozen=True)
class AdaptiveRmu(Steering):
    """The forget states of one block are steered to `scale` * norm * u, see `Steering`.

    Dang et al., AAAI 2025, arXiv 2408.06223. The norm is measured once, on the original model, as in the authors'
    code; over 64 forget facts instead of one batch, and without position 0, whose norm is huge in models like Llama.
    Relations: RMU with coefficient = scale * norm.
    """

    scale: float = 5.0
    name = "adaptive-rmu"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("scale", self.scale > 0, "above 0")

    def length(self, norm: float) -> float:
        """scale * norm."""
        return self.scale * norm
