"""The unlearning methods, by name: nineteen of the literature and one of ours.

A new method needs: an `Objective`, in its own file or beside its relatives; its name here; an entry
in `assets/methods.json`; a test that it equals a related method where the two must agree.
"""

from dataclasses import fields
from importlib import import_module
from typing import Any

from adapop.config.run import SETTINGS
from adapop.errors import ConfigError, did_you_mean, truncated
from adapop.objectives.altpo import AlternatePreference, CounterfactualPreference
from adapop.objectives.ascent import (
    AdaPop,
    GradientAscent,
    GradientDifference,
    SaturationImportance,
    WeightedGradientAscent,
)
from adapop.objectives.logits import CrossEntropyUnlearning, PrimalDualUnlearning, Undial
from adapop.objectives.npo import (
    NegativePreference,
    SharpnessAwarePreference,
    SimpleNegativePreference,
)
from adapop.objectives.objective import REDUCE, USES, ForgetBatch, Loss, Objective
from adapop.objectives.redirect import Redirect
from adapop.objectives.refusal import Flat, RefusalPreference, RejectionTuning
from adapop.objectives.rmu import AdaptiveRmu, Rmu
from adapop.objectives.tpo import TargetedPreference

OBJECTIVES: tuple[type[Objective], ...] = (
    AdaPop, WeightedGradientAscent, GradientDifference, NegativePreference, GradientAscent, Undial,
    Rmu, AdaptiveRmu, PrimalDualUnlearning, SharpnessAwarePreference, SimpleNegativePreference,
    SaturationImportance, AlternatePreference, Flat, TargetedPreference, CrossEntropyUnlearning,
    RefusalPreference, CounterfactualPreference, RejectionTuning, Redirect,
)  # fmt: skip

ALIKE = 0.8  # how alike a setting of the run must be to be suggested for an argument


def objective_class(name: str) -> type[Objective]:
    """The class of a method: one of `OBJECTIVES` by its name, or a user's own as
    "package.module:Class".

    The user's module is imported, which runs it: never pass a name that a visitor may have written.
    Raises ConfigError: no such method, module or `Objective`, or one with unknown `uses` or
    `reduce`."""
    by_name = {objective.name: objective for objective in OBJECTIVES}
    if name in by_name:
        return by_name[name]
    module, separator, class_name = name.partition(":")
    if not separator:
        message = f"Unknown method {name!r}."
        fix = f"Use one of {', '.join(by_name)}, or package.module:Class."
        raise ConfigError(message, did_you_mean(name, by_name) + fix)
    try:
        method = getattr(import_module(module), class_name, None)
    # a name that begins with a dot raises TypeError
    except (ImportError, ValueError, TypeError) as error:
        message = f"The module of the method {name} cannot be imported ({error})."
        script = "other programs cannot import a class that a script defines"
        fix = f"Start from the folder that holds it, or install it; {script}."
        raise ConfigError(message, fix) from None
    if not (isinstance(method, type) and issubclass(method, Objective)):
        message = f"{module} has no method {class_name!r}."
        raise ConfigError(message, "Name a class there that is a subclass of Objective.")
    if method.reduce not in REDUCE or not method.uses <= USES:
        used = ", ".join(sorted(method.uses)) or "nothing"
        fix = f"A method may use {', '.join(sorted(USES))}, and reduce by {' or '.join(REDUCE)}."
        raise ConfigError(f"{name} uses {used} and reduces by {method.reduce!r}.", fix)
    return method


def make_objective(name: str, arguments: dict[str, Any] | None = None) -> Objective:
    """The named method with its arguments, see `objective_class`. Raises ConfigError: no such
    method, or it has no such argument, or an argument is out of range."""
    objective = objective_class(name)
    known = {item.name for item in fields(objective)}
    if unknown := set(arguments or {}) - known:
        first, *_ = names = sorted(map(str, unknown))
        near = did_you_mean(first, known) or did_you_mean(first, SETTINGS, ALIKE)
        near = f"{first} is a setting of the run. " if first in SETTINGS else near
        fix = f"{near}Its arguments: {', '.join(sorted(known)) or 'none'}."
        raise ConfigError(f"{name} has no {', '.join(names)}.", fix)
    for item in fields(objective):
        kind = str(getattr(item.type, "__name__", item.type))  # text with `from __future__`
        known_types: dict[str, type] = {"float": float, "int": int, "bool": bool, "str": str}
        usual = known_types.get(kind, object)
        value = (arguments or {}).get(item.name, usual())
        accepted = (float, int) if usual is float else usual
        if not isinstance(value, accepted) or (isinstance(value, bool) and usual in (float, int)):
            message = f"The argument {item.name} of {name} is {truncated(repr(value))}."
            raise ConfigError(message, f"Its type is {usual.__name__}.")
    return objective(**(arguments or {}))


__all__ = ["OBJECTIVES", "ForgetBatch", "Loss", "Objective", "make_objective", "objective_class"]
