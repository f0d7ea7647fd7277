"""The facts of the shipped worlds, on each of which we pretrained a small Llama: `world` holds
facts, `language` words and other questions; `adapop.sandbox` makes the model."""

from functools import cache

from adapop.facts.fact import GROUPS, SANDBOX, Fact, FactSet
from adapop.facts.tiers import ON_SCALE
from adapop.facts.world import language
from adapop.facts.world.language import skills
from adapop.facts.world.world import EXPOSURES_PER_SCORE, WorldFact, facts_of, world
from adapop.paths import SHIPPED
from adapop.remark import Remark

EXPOSURES = "exposures in pretraining"  # the source of its scores


@cache
def sandbox_facts(name: str = SANDBOX) -> FactSet:
    """The set of a shipped world, its groups balanced over popularity."""
    groups = {group: tuple(map(_fact, facts_of(group, name))) for group in GROUPS}
    groups["utility"] = tuple(
        Fact(f"{family}-{i}", question, answer, relation=family)
        for i, (family, question, answer) in enumerate(skills())
    )
    notes = [Remark("scores_are_exposures", {"factor": 1 / EXPOSURES_PER_SCORE})]
    if count := len(groups["neighbours"]):
        notes.append(Remark("neighbours_kept", {"count": count}))
    return FactSet(name, **groups, notes=tuple(notes), tiers=ON_SCALE)


def other_facts(facts: FactSet) -> tuple[Fact, ...]:
    """Facts whose names may contain the name of a fact to forget, as "Last Tango in Paris" contains
    Paris. These are the set's other facts, and for a shipped world also its teacher facts."""
    forgotten = {fact.id for fact in facts.forget}
    worlds = [name for name in SHIPPED if any(fact.id in forgotten for fact in world(name))]
    taught = (_fact(fact) for name in worlds for fact in facts_of("teacher", name))
    return (*facts.retain, *facts.holdout, *facts.neighbours, *taught)


def _fact(fact: WorldFact) -> Fact:
    return Fact(
        id=fact.id,
        question=language.question(fact),
        answer=fact.answer,
        subject=fact.subject,
        relation=fact.relation,
        object=fact.answer,
        score=fact.score,
        score_source=EXPOSURES,
        paraphrases=language.paraphrases(fact),
    )
