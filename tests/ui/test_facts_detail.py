from dataclasses import replace

from adapop.facts.fact import Fact
from adapop.popularity.base import Score, Scoring
from adapop.popularity.beta import BetaMap
from adapop.ui.facts.detail import fact_lines
from adapop.ui.facts.table import fact_table, table_label

FACT = Fact(id="capital", question="What is the capital of France?", answer="Paris")


def test_a_score_is_said_with_its_source_and_those_without_are_listed(tiny):
    counted = Score("capital", 1234.0, "Wikidata, sitelinks", "2026-01-02", {"sitelinks": {"subject": 300}})
    unknown = Score("capital", None, "infini-gram", reason="Not found.")
    scorings = [Scoring("one", {"capital": counted}), Scoring("two", {"capital": unknown}), Scoring("none", {})]
    assert fact_lines(FACT, scorings) == [
        "What is the capital of France? → Paris", "Score 1,234 (Wikidata, sitelinks, 2026-01-02).",
        "· sitelinks: subject 300", "Score unknown (infini-gram). Not found.",
    ]  # fmt: skip
    first, second, *others = tiny.forget
    facts = replace(tiny, forget=(first, replace(second, score=None), *others))
    whole, lacking = (fact_table(facts, BetaMap(), {}, unscored=only) for only in (False, True))
    assert len(whole) == len(tiny.forget) and list(lacking["id"]) == [second.id]
    assert len(fact_table(facts, BetaMap(), {}, "no such text", unscored=True)) == 0
    assert table_label(1, 4) == "1 of 4 facts, rarest first"
