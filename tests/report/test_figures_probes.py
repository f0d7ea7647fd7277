import re

import pytest

from adapop.probes.matrix import leak_matrix
from adapop.probes.prompts import CHOICE, DIRECT, ProbeRow, Reply
from adapop.probes.verdict import RULES
from adapop.report import figures
from adapop.report.figures.probes import VERDICT_COLOR

ROLE = "role playing"


def row(fact, tier, kind, before, after, group="forget", chance=0.0):
    def reply(recall):
        return Reply("text", recall, recall, 1, -1.0, 1, 0.0)

    return ProbeRow(fact, group, tier, kind, "?", "gold", reply(before), reply(after), chance=chance)


@pytest.fixture(scope="module")
def matrix():
    """Two rare facts and a popular one; the original cannot play a role for the rare ones."""
    return leak_matrix(
        [
            *(row(fact, "rare", DIRECT, 1.0, after) for fact, after in (("a", 0.0), ("b", 0.5))),
            row("c", "popular", DIRECT, 1.0, 1.0),
            *(row(fact, "rare", ROLE, 0.3, 0.0) for fact in ("a", "b")),
            row("c", "popular", ROLE, 0.9, 0.8),
            *(row(fact, "rare", CHOICE, 1.0, 0.0, chance=0.25) for fact in ("a", "b")),
        ]
    )


def values(figure):
    """What each cell of the two panels shows, by panel, row and column; a measurable cell before a grey one."""
    found = {}
    for place, trace in enumerate(figure.data):
        side = "original" if place < 2 else "unlearned"
        for kind, numbers, texts in zip(trace.y, trace.z, trace.text):
            for tier, number, text in zip(trace.x, numbers, texts):
                if number is not None:
                    found[side, kind, tier] = (round(number, 3), text, place % 2 == 0)
    return found


def test_heatmap_prints_each_recall_or_says_why_not(matrix):
    figure = figures.leak_heatmap(matrix, "forget")
    shown = values(figure)
    assert shown["unlearned", "as trained", "rare"] == (0.25, "25", True)
    assert shown["unlearned", "as trained", "all"] == (0.5, "50", True)
    assert shown["original", "as an expert", "popular"] == (0.9, "90", True)
    assert len(shown) == 2 * (3 + 3 + 2), "nobody asked the popular fact a multiple choice"
    assert shown["original", "as an expert", "rare"] == (0.3, "30", False)
    assert shown["unlearned", "as an expert", "rare"] == (0.0, "–", False)
    (grey,) = {color for _, color in figure.data[3].colorscale}
    assert re.fullmatch(r"#(..)\1\1", grey)
    told = [text for trace in figure.data for line in trace.customdata for text in line if text]
    assert any("multiple choice, rare" in text and "a blind guess: 25 %" in text for text in told)
    assert any("as an expert (role playing), rare</b>: 2 facts" in text and "below 0.8" in text for text in told)
    for draw in (figures.leak_heatmap, figures.recall_by_kind):
        assert draw(matrix, "holdout").layout.annotations[0].text == "no fact of this group was asked"


def test_tiers_have_columns_and_gaps(matrix):
    assert tuple(figures.leak_heatmap(matrix, "forget").data[0].x) == ("rare", "popular", "all")
    unscored = leak_matrix([row("u", "unknown", DIRECT, 1.0, 0.0)])
    assert tuple(figures.leak_heatmap(unscored, "forget").data[0].x) == ("all",)
    assert [trace.name for trace in figures.recall_by_kind(unscored, "forget").data[:2]] == ["all, original", "all"]
    figure = figures.recall_by_kind(matrix, "forget")
    assert list(figure.layout.yaxis.ticktext) == ["as trained", "as an expert", "multiple<br>choice"]
    traces = {trace.name: trace for trace in figure.data}
    assert list(traces["rare"].x) == [0.25, 0.0], "role playing is not measurable"
    assert list(traces["rare, original"].x) == [1.0, 0.3, 1.0] and list(traces["popular"].x) == [1.0, 0.8]
    recall = matrix.cell("forget", "rare", DIRECT).unlearned.recall
    errors = traces["rare"].error_x
    assert (errors.array[0], errors.arrayminus[0]) == (recall.high - recall.mean, recall.mean - recall.low)
    assert (list(traces["a blind guess"].x), list(traces["a blind guess"].y)) == ([0.25], [2])


def test_verdicts_are_shares_with_a_colour_of_their_own():
    shares = {"rare": {"Not brought back": 3, "Not forgotten": 1}, "popular": {"Not forgotten": 2}}
    bars = {bar.name: bar for bar in figures.verdict_bars(shares).data}
    assert list(bars) == ["Not forgotten", "Not brought back"], "the worst is to the left"
    assert list(bars["Not forgotten"].x) == [0.25, 1.0]
    assert list(bars["Not brought back"].text) == ["Not brought<br>back 3", ""]
    assert figures.verdict_bars({"rare": {}}).layout.annotations[0].text == "no fact has a verdict"
    assert {rule.name for rule in RULES} == set(VERDICT_COLOR) and len(set(VERDICT_COLOR.values())) == len(
        VERDICT_COLOR
    )
