from dataclasses import replace
from statistics import median
from types import SimpleNamespace

import gradio as gr
import pytest

from adapop.facts.fact import Fact, FactSet
from adapop.facts.world import sandbox_facts
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR, BetaMap
from adapop.ui.run import pressure
from adapop.ui.session import curve_of

PAPER = (RARE_ANCHOR, POPULAR_ANCHOR)


@pytest.mark.parametrize(("values", "why"), [
    ((100, None, 3000, 0.1), "empty"), ((100, 1.5, 100, 0.1), "anchor"),
    ((100, 0.01, 3000, 0.1), "not above the rare one"), ((100, 50, 3000, 0.1), "must lie between 0.05 and 2"),
    ((100, 1.5, 3000, 0.01), "must lie between 0.05 and 2"), ((100, 2, 3000, 0.05), ""), ((100, 1.2, 3000, 0.2), ""),
])  # fmt: skip
def test_anchors_that_fix_no_curve_leave_their_boxes(values, why, monkeypatch):
    warnings = []
    monkeypatch.setattr(gr, "Warning", warnings.append)
    anchors, boxes = pressure._anchors(*values), pressure._reset(None, PAPER, *values)
    if why:
        assert anchors == gr.skip() and boxes == (*RARE_ANCHOR, *POPULAR_ANCHOR)
        assert why in warnings[0]
    else:
        assert (anchors, boxes, warnings) == ((values[:2], values[2:]), gr.skip(), [])


def test_the_words_speak_of_the_dots_that_are_drawn():
    facts = sandbox_facts()
    for lie in ("swapped", "shuffled", "noisy"):
        pictures = pressure.pictures(facts, what_if=lie)
        drawn = [float(row[2]) for row in pictures["table"].rows]
        if max(drawn) > 1.5 * min(drawn):
            assert "one fixed β" not in pictures["words"], lie
    assert "times" not in pressure.pictures(facts, what_if="wga")["words"]
    ascent = pressure.pictures(facts, what_if="ga")["words"]
    assert "p = 0.00" not in ascent and "1 times" not in ascent
    pictures = pressure.pictures(facts, what_if="noisy")
    least = min(fact.score for fact in facts.forget)
    rarest = sorted(BetaMap()(used) for score, used, *_ in pictures["curve"]["points"] if score == least)
    assert rarest[0] < rarest[-1], "the noise does something"
    assert f"(β = {median(rarest):.2f})" in pictures["words"]
    large = replace(facts, forget=tuple(Fact(f"f{i}", f"Who {i}?", "a", score=float(1 + i)) for i in range(5_120)))
    table = pressure.pictures(large)["table"]
    assert table.every == pytest.approx(5_120 / len(table.rows), rel=0.02)


def test_anchors_suit_the_set_until_somebody_chooses_some():
    """Quantiles of 20 scores from 1,000 to 20,000: the second and the last but one, counted from 0."""
    facts = (Fact(f"f{i}", f"Where is {i}?", "a", score=1000.0 * (i + 1), score_source="column x") for i in range(20))
    own = FactSet("cities", forget=tuple(facts))
    drawn = pressure.pictures(own)
    assert (drawn["curve"]["rare"], drawn["curve"]["popular"]) == ([2000.0, 1.5], [19000.0, 0.1])
    assert "2,000" in drawn["anchors"] and "19,000" in drawn["anchors"] and "their own" in drawn["anchors"]
    assert pressure._suited_inputs(own, None) == (2000.0, 1.5, 19000.0, 0.1)
    assert pressure._suited_inputs(own, PAPER) == gr.skip()
    for shown in (pressure.pictures(own, PAPER), pressure.pictures(sandbox_facts())):
        assert shown["curve"]["rare"] == [100.0, 1.5]
    assert curve_of(own, None) == BetaMap.from_anchors((2000.0, 1.5), (19000.0, 0.1))
    assert curve_of(own, PAPER) == curve_of(sandbox_facts(), None) == BetaMap()


@pytest.mark.parametrize("anchor", [None, "12", [1], [1, 2, 3], [1, "2"], {"0": 1}, [[1, 2], [3, 4]]])
def test_a_handle_that_tells_no_anchor_moves_nothing(anchor):
    """The event comes from the browser."""
    boxes = (100, 1.5, 3000, 0.1)
    event = SimpleNamespace(rare=anchor, popular=[3300, 0.2])
    assert pressure._moved(*boxes, event)[1:] == (100, 1.5, 3300, 0.2)
    assert pressure._moved(*boxes, SimpleNamespace())[1:] == boxes
