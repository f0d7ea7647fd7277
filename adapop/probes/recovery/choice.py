"""The recovery probes by name: their cost, running one on a run's facts, and which facts they brought back.

Loads no torch until a probe is run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from adapop.errors import ConfigError
from adapop.facts.fact import FactSet
from adapop.probes.plan import evenly
from adapop.progress import Progress

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel

RECOVERY = ("relearn", "quantise", "sampling", "lens")
PER_TIER = 100  # facts; more would take longer and add little precision


def cost(name: str, facts: FactSet) -> str:
    """The cost of a probe in words. Imports torch."""
    from adapop.probes.recovery import lens, quantise, relearn, sampling

    forget, retain = evenly(facts.forget, PER_TIER), evenly(facts.retain, PER_TIER)
    costs = {
        "relearn": lambda: relearn.relearn_cost(forget),
        "quantise": lambda: quantise.quantise_cost(forget, retain),
        "sampling": lambda: sampling.sampling_cost(forget),
        "lens": lambda: lens.lens_cost(forget),
    }
    return str(costs[name]())


def recover(name: str, model: AdaptedModel, facts: FactSet, max_new_tokens: int, progress: Progress) -> dict:
    """The result of a probe on at most `PER_TIER` facts per tier, as JSON values.

    Raises:
        ConfigError: there is no such probe.
        AdaPopError: raised by the probe.
    """
    from adapop.probes.recovery import lens, quantise, relearn, sampling

    forget, retain = evenly(facts.forget, PER_TIER), evenly(facts.retain, PER_TIER)
    probes = {
        "relearn": lambda: relearn.relearn(model, forget, max_new_tokens, progress),
        "quantise": lambda: quantise.quantise(model, forget, retain, max_new_tokens, progress),
        "sampling": lambda: sampling.sample(model, forget, max_new_tokens, progress),
        "lens": lambda: lens.lens(model, forget, progress),
    }
    if name not in probes:
        raise ConfigError(f"There is no recovery probe {name!r}.", f"Choose {', '.join(RECOVERY)}.")
    return asdict(probes[name]())


def recovered(results: Mapping[str, Mapping]) -> dict[str, frozenset[str]]:
    """Fact id -> names of the probes that brought the fact back. results: probe -> its result."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, result in results.items():
        for fact in result.get("returned", ()):
            found[fact].add(name)
    return {fact: frozenset(names) for fact, names in found.items()}
