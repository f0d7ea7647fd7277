import json
import re
from dataclasses import replace

import pytest

from adapop.config.presets import make_config
from adapop.facts.fact import TIERS, Fact
from adapop.facts.world import sandbox_facts
from adapop.report import figures
from adapop.report.figures import look
from adapop.training.events import Measured
from adapop.ui.parts.chart import twin_of
from run_events import STEPS, epoch


def trace(figure, name):
    return next(item for item in figure.data if item.name and item.name.startswith(name))


def test_the_strip_counts_every_fact_once_by_tier():
    facts = sandbox_facts().forget
    figure = figures.popularity_strip(facts)
    for tier in ("rare", "middle", "popular"):
        assert sum(trace(figure, tier).y) == sum(fact.tier == tier for fact in facts)
    assert sum(int(cell) for row in figures.numbers_of(figure).rows for cell in row[1:] if cell) == 256
    facts = [Fact("a", "q", "a", score=0.0), Fact("b", "q", "a", score=None), Fact("c", "q", "a", score=0.02)]
    figure = figures.popularity_strip(facts)
    places = dict(zip(figure.layout.xaxis.ticktext, figure.layout.xaxis.tickvals))
    assert list(trace(figure, "unknown").x) == [places["unknown"]] and places["0"] in trace(figure, "rare").x
    assert places["unknown"] < places["0"] < min(x for x in trace(figure, "rare").x if x != places["0"])
    close = [Fact(str(i), "q", "a", score=10.0 + i, own_tier=TIERS[i // 2]) for i in range(6)]
    labels = sorted(figures.popularity_strip(close).layout.annotations, key=lambda note: note.x)
    assert [note.text for note in labels] == ["rare<br>2", "middle<br>2", "popular<br>2"], "over one bar in order"
    assert [row[0] for row in figures.numbers_of(figure).rows][:2] == ["unknown", "0"]
    many = [Fact(str(i), "q", "a", score=float(i)) for i in range(20_000)]
    assert len(figures.popularity_strip(many).to_json()) < 60_000
    facts = [Fact(str(i), "q", "a", score=s) for i, s in enumerate([70.0, 100.0, 120.0, 2400.0, 3000.0])]
    figure = figures.popularity_strip(facts)
    assert min(trace(figure, "popular").x) - max(trace(figure, "rare").x) > 1 and not trace(figure, "middle").x
    assert figures.popularity_strip([]).layout.xaxis.ticktext[:2] == ("unknown", "0")


def test_the_push_and_the_weight_against_wgas():
    figure = figures.push_curves({"rarest fact": 1.5, "middle": 0.5, "most popular": 0.1}, 0.05)
    for line, mark in zip(figure.data[::2], figure.data[1::2]):
        assert mark.y[0] >= max(line.y) - 1e-3
    # p^(β − 1) at p = 0.1: 0.1 to the −0.9 is 7.9433, to the 0.5 is 0.3162, and 1 where β is 1.
    figure = figures.relative_push({"most popular": 0.1, "WGA": 1.0, "rarest fact": 1.5}, 0.05)
    at = {one.name: next(y for x, y in zip(one.x, one.y) if x == pytest.approx(0.1)) for one in figure.data}
    assert at == pytest.approx(
        {"most popular: β 0.10": 7.9433, "WGA: β 1.00": 1.0, "rarest fact: β 1.50": 0.3162}, rel=1e-3
    )


def test_the_controller_chart_and_its_numbers():
    rows = [epoch(0, 0.0, 0.0), epoch(1, 0.05, 0.0), epoch(2, 0.5, 0.04), epoch(3, 0.05, 0.035)]
    figure = figures.controller_chart(rows, make_config())
    assert list(trace(figure, "δ above").x) == [2] and list(trace(figure, "δ within").x) == [1, 3]
    assert list(trace(figure, "α").y) == [0.5, 0.5, 0.54, 0.535]
    numbers = figures.numbers_of(figure)
    assert numbers.columns == ("epoch", "δ within ε", "δ above ε: λ rises", "δ from before training", "α = α₀ + λ")
    assert numbers.rows[1:3] == (("1", "0.05", "", "0.5", "0.5"), ("2", "", "0.5", "0.5", "0.54"))


def test_losses_leave_unseen_tiers_out():
    rows = figures.loss_rows(STEPS[:1], steps_per_epoch=4)
    assert rows == [{"epoch": 0.25, "nats": 1.0, "facts": "rare"}, {"epoch": 0.25, "nats": 0.2, "facts": "retained"}]
    steps = [replace(STEPS[0], nll_by_tier={}), *STEPS[1:]]
    assert {row["facts"] for row in figures.loss_rows(steps, 4)} == {"rare", "retained"}
    figure = figures.loss_chart(STEPS, 4)
    drawn = sorted((x, y, trace.name) for trace in figure.data for x, y in zip(trace.x, trace.y))
    assert drawn == sorted((row["epoch"], row["nats"], row["facts"]) for row in figures.loss_rows(STEPS, 4))
    numbers = figures.numbers_of(figure)
    assert (numbers.columns, numbers.rows[0]) == (("epoch", "rare", "retained"), ("0.25", "1", "0.2"))
    assert figures.loss_numbers(STEPS, 4) == numbers, "the live table is the drawn one's"


def measured(number, recall, *tiers):
    """What is measured of eight facts of some tiers, in two forms."""
    rows = [
        {"group": "forget", "tier": tier, "form": form, "recall": recall, "facts": 8}
        for tier in tiers
        for form in ("direct", "reworded")
    ]
    return Measured(run="r", epoch=number, rows=tuple(rows), full=True)


def test_the_outcome_shows_before_and_after():
    figure = figures.outcome_chart(measured(0, 1.0, "rare"), measured(5, 0.25, "rare"))
    assert [list(item.y) for item in figure.data if item.name] == [[1.0], [0.25]]
    before, after = (item.error_y for item in figure.data if item.name)
    assert before.arrayminus[0] > 0.2 and before.array[0] == 0, "eight of eight have an interval, and not above 100 %"
    assert after.arrayminus[0] > 0.1 and after.visible
    for recalls, above in (((0.5, 0.75), "unlearned"), ((0.75, 0.5), "original"), ((0.5, 0.5), "original")):
        figure = figures.outcome_chart(*(measured(epoch, one, "rare") for epoch, one in zip((0, 5), recalls)))
        places = {item.name: item.textposition for item in figure.data if item.name}
        below = ({*places} - {above}).pop()
        assert places == {above: ("top center",), below: ("bottom center",)}, "the higher share is written above"


def test_facts_without_scores_are_drawn_as_one():
    before, after = measured(0, 1.0, "all"), measured(1, 0.25, "all")
    figure = figures.recall_chart([before, after], 1)
    drawn = {item.name: list(item.y) for item in figure.data if item.name}
    assert drawn == {"to forget": [1.0, 0.25], "to forget, reworded": [1.0, 0.25]}
    assert {item.line.color for item in figure.data if item.name} == {look.UNLEARNED}
    assert figures.numbers_of(figure).columns == ("epoch", *drawn)
    outcome = [item for item in figures.outcome_chart(before, after).data if item.name]
    assert [(list(item.x), list(item.y)) for item in outcome] == [(["to forget"], [1.0]), (["to forget"], [0.25])]
    before, after = measured(0, 1.0, "all", "rare"), measured(1, 0.25, "all", "rare")
    figure = figures.recall_chart([before, after], 1)
    assert [item.name for item in figure.data if item.name] == ["rare", "rare, reworded"]
    assert {x for item in figures.outcome_chart(before, after).data for x in item.x} == {"forget<br>rare"}


def test_user_text_stays_text():
    hostile = "<img src=x onerror=alert(1)> ${1}"
    facts = [Fact("a", hostile, "a", subject=hostile, score=100.0)]
    scatter = figures.agreement_scatter(facts, {"a": 1.0}, {"a": 2.0}, ("<img src=x>", "${two}"), ["a"])
    for figure in (figures.popularity_strip(facts), scatter):
        said = figure.to_json().replace("\\u003c", "<")
        assert "&lt;img" in said and "<img" not in said, "hover labels understand some HTML"
    assert not re.search(r"<|\$\{", json.dumps(twin_of(scatter, "<b>${x}</b>")))
