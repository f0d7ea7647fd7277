"""The sandbox: a small Llama pretrained by us on facts whose exposure counts we set.

Read `world` (the facts), `language` (how they are asked), then `corpus`, `tokenizer`, `pretrain`, `card`.
"""

from __future__ import annotations

from adapop.facts.fact import FACT_GROUPS, SANDBOX, Fact, FactSet
from adapop.facts.world import language
from adapop.facts.world.skills import skills
from adapop.facts.world.world import EXPOSURES_PER_SCORE, WorldFact, facts_of, world


def sandbox_facts() -> FactSet:
    """The sandbox's set: 256 facts each to forget, retain and hold out, balanced over eight exposure levels."""
    groups = {group: tuple(_fact(fact) for fact in facts_of(group)) for group in FACT_GROUPS}
    utility = tuple(
        Fact(f"{family}-{i}", question, answer, relation=family)
        for i, (family, question, answer) in enumerate(skills())
    )
    times = f"{1 / EXPOSURES_PER_SCORE:g}"
    note = f"Scores are exposure counts times {times}: a fact of score s was seen s/{times} times in pretraining."
    return FactSet(SANDBOX, **groups, utility=utility, notes=(note,))


def other_facts(facts: FactSet) -> tuple[Fact, ...]:
    """Facts whose names may hold the name of a fact to forget, as "Last Tango in Paris" holds Paris: the set's own,
    and for facts of the sandbox also those that only pretraining knows."""
    known = {fact.id for fact in world()}
    ours = any(fact.id in known for fact in facts.forget)
    taught = tuple(_fact(fact) for fact in facts_of("teacher")) if ours else ()
    return (*facts.retain, *facts.holdout, *taught)


def _fact(fact: WorldFact) -> Fact:
    return Fact(
        id=fact.id,
        question=language.question(fact),
        answer=fact.answer,
        subject=fact.subject,
        relation=fact.relation,
        object=fact.answer,
        score=fact.score,
        score_source="exposures in pretraining",
        paraphrases=language.paraphrases(fact),
    )
