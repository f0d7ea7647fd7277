from dataclasses import replace

from adapop.popularity.beta import BetaMap
from adapop.ui.facts.screen import fact_table


def test_facts_without_a_score_are_listed(tiny):
    first, second, *others = tiny.forget
    facts = replace(tiny, forget=(first, replace(second, score=None), *others))
    whole, lacking = (fact_table(facts, BetaMap(), {}, unscored=only) for only in (False, True))
    assert len(whole) == len(tiny.forget) and list(lacking["id"]) == [second.id]
    assert len(fact_table(facts, BetaMap(), {}, "no such text", unscored=True)) == 0
