"""The sixteen unlearning methods, by name.

A new method is a file with an `Objective`, a line here and in `adapop.config.methods`, and a test of its identity with
a related method.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from adapop.errors import ConfigError
from adapop.objectives.adapop import AdaPop
from adapop.objectives.altpo import AlternatePreference
from adapop.objectives.ceu import CrossEntropyUnlearning
from adapop.objectives.flat import Flat
from adapop.objectives.ga import GradientAscent, GradientDifference
from adapop.objectives.npo import NegativePreference
from adapop.objectives.npo_sam import SharpnessAwarePreference
from adapop.objectives.objective import ForgetBatch, Loss, Objective
from adapop.objectives.pdu import PrimalDualUnlearning
from adapop.objectives.rmu import AdaptiveRmu, Rmu
from adapop.objectives.satimp import SaturationImportance
from adapop.objectives.simnpo import SimpleNegativePreference
from adapop.objectives.tpo import TargetedPreference
from adapop.objectives.undial import Undial
from adapop.objectives.wga import WeightedGradientAscent

OBJECTIVES: tuple[type[Objective], ...] = (
    AdaPop,
    WeightedGradientAscent,
    GradientDifference,
    NegativePreference,
    GradientAscent,
    Undial,
    Rmu,
    AdaptiveRmu,
    PrimalDualUnlearning,
    SharpnessAwarePreference,
    SimpleNegativePreference,
    SaturationImportance,
    AlternatePreference,
    Flat,
    TargetedPreference,
    CrossEntropyUnlearning,
)


def make_objective(name: str, arguments: dict[str, Any] | None = None) -> Objective:
    """The named method with its arguments.

    Raises:
        ConfigError: no such method, or it has no such argument, or an argument is out of range.
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


__all__ = ["OBJECTIVES", "ForgetBatch", "Loss", "Objective", "make_objective"]
