"""Gradient difference."""

from __future__ import annotations

from dataclasses import dataclass

from adapop.objectives.ga import GradientAscent


@dataclass(frozen=True)
class GradientDifference(GradientAscent):
    """L = -(1/N) sum nll_forget + alpha * mean nll_retain.

    Liu, Liu and Stone, CoLLAs 2022, arXiv 2203.12817. Relations: GA's forget loss plus the retain term every other
    method has.
    """

    name = "gd"
    retains = True
