"""The facts of the sandbox, whose small Llama we pretrained on them with exposure counts of our choice.

`world` holds the facts, `language` their wording, `skills` the questions that are no facts. How the model is made of
them: `adapop.sandbox`.
"""

from functools import cache

from adapop.facts.fact import FACT_GROUPS, SANDBOX, Fact, FactSet
from adapop.facts.world import language
from adapop.facts.world.skills import skills
from adapop.facts.world.world import EXPOSURES_PER_SCORE, WorldFact, facts_of, world


@cache
def sandbox_facts() -> FactSet:
    """The sandbox's set: 256 facts each in forget, retain and holdout, balanced over eight exposure levels."""
    groups = {group: tuple(_fact(fact) for fact in facts_of(group)) for group in FACT_GROUPS}
    utility = tuple(
        Fact(f"{family}-{i}", question, answer, relation=family)
        for i, (family, question, answer) in enumerate(skills())
    )
    times = f"{1 / EXPOSURES_PER_SCORE:g}"
    note = f"Scores are exposure counts times {times}: a fact of score s was seen s/{times} times in pretraining."
    return FactSet(SANDBOX, **groups, utility=utility, notes=(note,))


def other_facts(facts: FactSet) -> tuple[Fact, ...]:
    """Facts whose names may contain the name of a fact to forget, as "Last Tango in Paris" contains Paris.

    They are the set's other facts, and for facts of the sandbox also its teacher facts.
    """
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
