"""The methods. A new one is a file with an `Objective`, a line here, and an identity test to a sibling."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from adapop.errors import ConfigError
from adapop.objectives.adapop import AdaPop
from adapop.objectives.base import ForgetBatch, ForgetLoss, Objective
from adapop.objectives.ga import GradientAscent
from adapop.objectives.gd import GradientDifference
from adapop.objectives.npo import NegativePreference
from adapop.objectives.wga import WeightedGradientAscent

OBJECTIVES: tuple[type[Objective], ...] = (
    AdaPop,
    WeightedGradientAscent,
    NegativePreference,
    GradientDifference,
    GradientAscent,
)


def make_objective(name: str, arguments: dict[str, Any] | None = None) -> Objective:
    """The named method with its arguments.

    Raises:
        ConfigError: no such method, or it has no such argument.
    """
    by_name = {objective.name: objective for objective in OBJECTIVES}
    if name not in by_name:
        raise ConfigError(f"Unknown method {name!r}.", f"Use one of {', '.join(by_name)}.")
    known = {item.name for item in fields(by_name[name])}
    if unknown := set(arguments or {}) - known:
        raise ConfigError(
            f"{name} has no {', '.join(sorted(unknown))}.", f"Its arguments: {', '.join(sorted(known)) or 'none'}."
        )
    return by_name[name](**(arguments or {}))


__all__ = ["OBJECTIVES", "ForgetBatch", "ForgetLoss", "Objective", "make_objective"]
