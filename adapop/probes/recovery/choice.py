"""The recovery probes by name: what each costs, running one on a run's facts, and which facts came
back. No torch until a probe is run."""

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

RECOVERY = ("relearn", "quantise", "sampling", "lens", "patch", "two-hop")
PER_TIER = 100  # facts; more would take longer and add little precision


def applicable(facts: FactSet) -> tuple[str, ...]:
    """The probes that a set's facts allow."""
    chained = any(fact.has_chain for fact in facts.forget)
    return tuple(name for name in RECOVERY if name != "two-hop" or chained)


def cost(name: str, facts: FactSet) -> str:
    """The cost of a probe in words, "" for a set that does not allow it. Imports torch."""
    from adapop.probes.recovery import base, quantise, relearn, sampling, two_hop

    forget, retain = evenly(facts.forget, PER_TIER), evenly(facts.retain, PER_TIER)
    costs = {
        "relearn": relearn.relearn_cost(forget, unrelated=bool(facts.utility)),
        "quantise": quantise.quantise_cost(forget, retain),
        "sampling": sampling.sampling_cost(forget),
        "lens": base.Cost(prompts=2 * len(forget)),  # both models read every question
        "patch": base.Cost(prompts=4 * len(forget)),  # with own and with patched states
        "two-hop": base.Cost(answers=6 * len(two_hop.chained(forget))),  # three questions a chain
    }
    return str(costs[name])


def recover(
    name: str,
    model: AdaptedModel,
    facts: FactSet,
    max_new_tokens: int,
    progress: Progress,
    world: str = "",
) -> dict:
    """The result of a probe on at most `PER_TIER` facts per tier, as JSON values. world: the name
    of the original model; if it ships, its oracle is a control. Raises ConfigError: there is no
    such probe. AdaPopError: as the probe."""
    from adapop.probes.oracle import oracle_of
    from adapop.probes.recovery import lens, patch, quantise, relearn, sampling, two_hop

    forget, retain = evenly(facts.forget, PER_TIER), evenly(facts.retain, PER_TIER)
    shared, unrelated = (max_new_tokens, progress), {"unrelated": facts.utility}
    probes = {
        "relearn": lambda: relearn.relearn(model, forget, *shared, **unrelated),
        "quantise": lambda: quantise.quantise(model, forget, retain, *shared),
        "sampling": lambda: sampling.sample(model, forget, *shared),
        "lens": lambda: lens.lens(model, forget, progress),
        "patch": lambda: patch.patch(model, forget, progress, oracle=oracle_of(world, facts)),
        "two-hop": lambda: two_hop.two_hop(model, forget, *shared),
    }
    if name not in probes:
        raise ConfigError(f"There is no recovery probe {name!r}.", f"Choose {', '.join(RECOVERY)}.")
    return asdict(probes[name]())


def recovered(results: Mapping[str, Mapping]) -> dict[str, frozenset[str]]:
    """Fact id -> names of the probes that brought the fact back. results: probe -> its result."""
    probes: dict[str, set[str]] = defaultdict(set)
    for name, result in results.items():
        for fact in result.get("returned", ()):
            probes[fact].add(name)
    return {fact: frozenset(names) for fact, names in probes.items()}
