"""Representation misdirection for unlearning."""

from __future__ import annotations

from dataclasses import dataclass

from adapop.objectives.steering import Steering


@dataclass(frozen=True)
class Rmu(Steering):
    """The forget states of one block are steered to `coefficient` * u, see `Steering`.

    Li et al., ICML 2024, arXiv 2403.03218. The paper's runs use layer 7, coefficient 2 and alpha 1, its authors
    coefficients of 6.5 to 20 and alpha around 1200. A coefficient far below the norm of the states barely steers.
    """

    coefficient: float = 2.0
    name = "rmu"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("coefficient", self.coefficient > 0, "above 0")

    def length(self, norm: float) -> float:
        """The coefficient, whatever the norm."""
        return self.coefficient
