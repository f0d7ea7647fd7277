from adapop.facts.fact import Fact
from adapop.popularity.base import Score, Scoring
from adapop.ui.facts.detail import fact_lines

FACT = Fact(id="capital", question="What is the capital of France?", answer="Paris")


def test_a_score_is_said_with_its_source_its_day_and_its_counts():
    counted = Score("capital", 1234.0, "Wikidata, sitelinks", "2026-01-02", {"sitelinks": {"subject": 300}})
    unknown = Score("capital", None, "infini-gram", reason="Not found.")
    scorings = [Scoring("one", {"capital": counted}), Scoring("two", {"capital": unknown}), Scoring("none", {})]
    assert fact_lines(FACT, scorings) == [
        "What is the capital of France? → Paris",
        "Score 1,234 (Wikidata, sitelinks, 2026-01-02).",
        "· sitelinks: subject 300",
        "Score unknown (infini-gram). Not found.",
    ]
