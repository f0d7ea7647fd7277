import random
from collections import Counter
from dataclasses import replace

import pytest

from adapop.experiments.halves import HALVES, TEST, VALIDATION, facts_of, wordings_of
from adapop.facts.fact import Fact


def test_the_halves_are_fixed_and_whole(sandbox):
    first, second = (facts_of(sandbox.holdout, half) for half in HALVES)
    assert {*first} | {*second} == {*sandbox.holdout} and not {*first} & {*second}
    levels = [Counter(fact.score for fact in half) for half in (first, second)]
    assert levels[0] == levels[1] and set(levels[0].values()) == {16}
    relations = [Counter(fact.relation for fact in half) for half in (first, second)]
    assert relations[0] == relations[1]
    facts = list(sandbox.holdout)
    before = {fact.id for fact in facts_of(facts, TEST)}
    random.Random(0).shuffle(facts)
    assert {fact.id for fact in facts_of(facts, TEST)} == before
    assert [fact for fact in facts if fact.id in before] == list(facts_of(facts, TEST))
    families = [{fact.relation for fact in facts_of(sandbox.utility, half)} for half in HALVES]
    assert families[0] == families[1] == {fact.relation for fact in sandbox.utility}
    fact = sandbox.forget[0]
    assert len(fact.paraphrases) == 4
    assert wordings_of(fact, VALIDATION) == fact.paraphrases[::2]
    assert wordings_of(fact, TEST) == fact.paraphrases[1::2]
    alone = replace(fact, paraphrases=("Only this?",))
    assert wordings_of(alone, VALIDATION) == wordings_of(alone, TEST) == ("Only this?",)
    assert wordings_of(replace(fact, paraphrases=()), TEST) == ()


@pytest.mark.parametrize("counts", [(3, 3, 3), (1, 2, 5), (1,), ()])
def test_odd_levels_leave_the_halves_within_one_fact(counts):
    facts = [Fact(f"{level}-{i}", "?", "a", score=level) for level, count in enumerate(counts) for i in range(count)]
    sizes = [Counter(fact.score for fact in facts_of(facts, half)) for half in HALVES]
    assert abs(sizes[0].total() - sizes[1].total()) <= 1
    assert all(abs(sizes[0][level] - sizes[1][level]) <= 1 for level in range(len(counts)))
