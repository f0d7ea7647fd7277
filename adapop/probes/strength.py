"""What the facts look like while the adapter counts a little, fully, or too much: forgetting as a
direction along which one can walk."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import torch

from adapop.facts.fact import Fact, FactSet
from adapop.model.adapted import AdaptedModel
from adapop.probes.plan import evenly, in_tiers
from adapop.probes.tokenwise import at_strength

PER_TIER, NEIGHBOURS = 24, 6  # facts; more would make the slider wait


@dataclass(frozen=True)
class Group:
    """Facts at one strength of the adapter."""

    name: str
    """"This fact", "similar facts", a tier, or "held out"."""
    facts: int
    probability: float
    """Mean probability of their right answers, [0, 1]: the geometric mean over an answer's tokens.
    """


@dataclass(frozen=True)
class AtStrength:
    """All groups at one strength, 0 for the original and 1 for the model as unlearned."""

    strength: float
    groups: tuple[Group, ...]


@torch.no_grad()
def at(
    model: AdaptedModel, facts: FactSet, strengths: Sequence[float], fact_id: str | None = None
) -> tuple[AtStrength, ...]:
    """The facts to forget and the held-out ones, evenly over the tiers, at each strength. fact_id:
    of the fact that is looked at, with its neighbours: facts of the same relation, of the same
    answer first."""
    members = groups_of(facts, fact_id)
    every, results = [fact for group in members.values() for fact in group], []
    for strength in strengths:
        with at_strength(model, strength):
            model.network.eval()
            batch = model.batch(model.rows(every))  # each of two models may have its own tokens
            scored = model.score(batch)
        probabilities = (-scored.row_mean(scored.nll, batch.content)).exp().tolist()
        groups, start = [], 0
        for name, group in members.items():
            part = probabilities[start : start + len(group)]
            groups.append(Group(name, len(group), fmean(part)))
            start += len(group)
        results.append(AtStrength(strength, tuple(groups)))
    return tuple(results)


def groups_of(facts: FactSet, fact_id: str | None) -> dict[str, Sequence[Fact]]:
    """Name -> the facts that are looked at, without empty groups."""
    every = [*facts.forget, *facts.holdout, *facts.retain]
    own = [fact for fact in every if fact.id == fact_id][:1]
    groups = {"This fact": own}
    if own:
        kind = own[0].relation
        related = [fact for fact in every if kind and fact.relation == kind and fact not in own]
        related.sort(key=lambda fact: fact.answer != own[0].answer)
        groups["similar facts"] = related[:NEIGHBOURS]
    chosen = evenly(facts.forget, PER_TIER)
    tiers = in_tiers(chosen, chosen)
    groups |= {name: tiers[name] for name in tiers if name != "all"} or {"to forget": chosen}
    groups["held out"] = evenly(facts.holdout, PER_TIER // 3)
    return {name: group for name, group in groups.items() if group}
