"""Two proxies compared: by hand, at the edges, and under what cannot matter."""

import math

import pytest

from adapop.errors import DataError
from adapop.facts.fact import Fact
from adapop.popularity.agreement import agreement, joined, remarks_of
from adapop.popularity.beta import BetaMap
from adapop.remark import sentences

FIRST = {"a": 1.0, "b": 10.0, "c": 100.0, "d": 1000.0}


def compared(first, second):
    return agreement(first, second, BetaMap())


def test_a_proxy_agrees_with_itself_and_not_with_its_opposite():
    found = compared(FIRST, dict(FIRST))
    assert (found.facts, found.unknown, found.discordant) == (4, 0, ())
    assert (found.pearson_log, found.spearman, found.same_label) == (pytest.approx(1), pytest.approx(1), 1)
    assert (found.beta_shift, found.own_beta_shift) == (0, 0)
    found = compared(FIRST, {fact: 1e4 / score for fact, score in FIRST.items()})
    assert (found.spearman, found.same_label) == (pytest.approx(-1), 0)
    assert found.discordant[:2] in {("a", "d"), ("d", "a")}
    found = compared(FIRST, {fact: 1000 * score for fact, score in FIRST.items()})
    assert (found.spearman, found.same_label) == (pytest.approx(1), 1)
    assert found.own_beta_shift == pytest.approx(0, abs=1e-12)
    assert found.beta_shift > 0.3
    said = " ".join(sentences(remarks_of(compared(FIRST, FIRST), "Wikidata", "the judge")))
    assert "Wikidata and the judge have both scored 4 facts." in said
    assert "Spearman 1.00" in said


def test_by_hand():
    second = {"a": 5.0, "b": 700.0, "c": 20.0, "d": 9000.0}
    found = compared(FIRST, second)
    # ranks 1 2 3 4 against 1 3 2 4: 1 - 6 * 2 / (4 * 15)
    assert found.spearman == pytest.approx(0.8)
    x, y = ([math.log(score + 1) for score in scores.values()] for scores in (FIRST, second))
    mx, my = sum(x) / 4, sum(y) / 4
    over = sum((i - mx) * (j - my) for i, j in zip(x, y))
    under = math.sqrt(sum((i - mx) ** 2 for i in x) * sum((j - my) ** 2 for j in y))
    assert found.pearson_log == pytest.approx(over / under)
    assert found.same_label == 0.5
    assert set(found.discordant) == {"b", "c"}
    beta = BetaMap()
    assert found.beta_shift == pytest.approx(sum(abs(beta(FIRST[k]) - beta(second[k])) for k in FIRST) / 4)
    # Rare and popular as the scales of Wikidata and the judge have them: popular from 1,000 on.
    first = {"a": 100.0, "b": 200.0, "c": 3000.0, "d": 1000.0}
    second = {"a": 50.0, "b": 5000.0, "c": 9000.0, "d": 1200.0}
    assert agreement(first, second, BetaMap()).same_tier == 0.75
    assert agreement(first, dict.fromkeys(first, 5.0) | {"a": 6.0}, BetaMap()).same_tier is None


def test_unknown_is_left_out_and_zero_is_a_score():
    second = {**FIRST, "d": None, "e": 5.0}
    found = compared(FIRST, second)
    assert (found.facts, found.unknown) == (3, 2)
    assert found.spearman == pytest.approx(1)
    assert compared({**FIRST, "z": 0.0}, {**FIRST, "z": 0.0}).facts == 5
    found = compared(FIRST, dict.fromkeys(FIRST, 7.0))
    assert (found.pearson_log, found.spearman, found.own_beta_shift) == (None, None, None)
    assert remarks_of(found, "one", "two")[1].values["spearman"] == "not defined"


@pytest.mark.parametrize("second", [{}, {"a": 1.0, "b": 2.0}, dict.fromkeys(FIRST)])
def test_too_few_facts_in_common(second):
    with pytest.raises(DataError, match="too few"):
        compared(FIRST, second)


# --- which fact is which


def facts(*questions, ids="row-{}"):
    return tuple(Fact(ids.format(i), question, "x") for i, question in enumerate(questions, 2))


def test_which_fact_is_which():
    other = joined(facts("a?", "b?", "c?"), facts("C? ", "new?", "A?"))
    assert [fact.id for fact in other] == ["row-4", "second-row-3", "row-2"]
    one, other = facts("a?", "b?", ids="f{}"), facts(" A?", "b?", "c?", ids="f{}")
    assert joined(one, other) == other
    same = facts("a?", "b?", "A?")
    assert joined(same, same) == same
    with pytest.raises(DataError, match="row-3"):
        joined(same, facts("a?", "A?", "b?"))


@pytest.mark.parametrize("ids", ["f{}", "row-{}-a", "my row-{}"])
def test_one_id_for_two_questions_is_refused(ids):
    with pytest.raises(DataError, match=r"'a\?' in one set and 'b\?' in the other") as caught:
        joined(facts("a?", "b?", ids=ids), facts("b?", "a?", ids=ids))
    assert "ids" in caught.value.fix
