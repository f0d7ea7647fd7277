"""Two proxies compared on Facts: the facts that differ most, with what the model knows of them once it was asked."""

from adapop.facts.fact import Fact, FactSet
from adapop.popularity.base import Score, Scoring
from adapop.ui.facts.agreement import _compared

FACTS = FactSet("mine", tuple(Fact(name, f"Who is {name}?", "She", subject=name.upper()) for name in "abcd"))


def scoring(title, *scores):
    return Scoring(title, {name: Score(name, score, title) for name, score in zip("abcd", scores)})


def last_line(recall):
    scorings = (scoring("one", 1, 10, 100, 1000), scoring("two", 1000, 10, 100, 1))
    lines, _ = _compared(FACTS, ((100.0, 1.5), (3000.0, 0.1)), scorings, "one", "two", recall)
    return lines[-1]


def test_what_the_model_knows_stands_beside_the_facts_that_differ_where_it_was_asked():
    assert last_line({}) == "They disagree on 2, most on: A, D."
    assert last_line(None) == last_line({"b": 1.0}) == last_line({})
    assert last_line({"a": 1.0, "d": 0.0}) == (
        "They disagree on 2, most on: A (the model knows it: 100 %), D (the model knows it: 0 %)."
    )
