"""Figures are checked as numbers: what is drawn, not how it looks."""

import json

import pytest
from test_view import STEPS, epoch

from adapop import figures
from adapop.beta import BetaMap
from adapop.config import make_config
from adapop.events import Measured
from adapop.facts import Fact
from adapop.sandbox import sandbox_facts


def trace(figure, name):
    return next(item for item in figure.data if item.name and item.name.startswith(name))


def test_every_fact_lies_on_the_curve():
    facts, beta = sandbox_facts().forget, BetaMap()
    figure = figures.beta_curve(facts, beta)
    for tier in ("rare", "middle", "popular"):
        points = trace(figure, tier)
        members = [fact for fact in facts if fact.tier == tier]
        assert sorted(points.y) == pytest.approx(sorted(beta(fact.score) for fact in members))


def test_facts_of_score_zero_and_without_score_do_not_break_the_curve():
    facts = [Fact("a", "q", "a", score=0.0), Fact("b", "q", "a", score=None)]
    assert list(trace(figures.beta_curve(facts, BetaMap()), "rare").y) == [2.0]


def test_the_push_peaks_where_it_is_marked():
    figure = figures.push_curves({"rarest fact": 1.5, "middle": 0.5, "most popular": 0.1})
    for line, mark in zip(figure.data[::2], figure.data[1::2]):
        assert mark.y[0] >= max(line.y) - 1e-3


def test_the_controller_chart_separates_drift_within_and_above_tolerance():
    rows = [epoch(0, 0.0, 0.0), epoch(1, 0.0, 0.0), epoch(2, 0.5, 0.04), epoch(3, 0.05, 0.035)]
    figure = figures.controller_chart(rows, make_config())
    assert list(trace(figure, "δ above").x) == [2]
    assert list(trace(figure, "δ within").x) == [1, 3]
    assert list(trace(figure, "α").y) == [0.5, 0.5, 0.54, 0.535]


def test_loss_rows_leave_unseen_tiers_out():
    rows = figures.loss_rows(STEPS[:1], steps_per_epoch=4)
    assert rows == [
        {"epoch": 0.25, "nats": 1.0, "facts": "forget, rare"},
        {"epoch": 0.25, "nats": 0.2, "facts": "retain"},
    ]


def test_the_outcome_shows_before_and_after():
    def measured(epoch_number, recall):
        rows = [{"group": "forget", "tier": "rare", "form": form, "recall": recall} for form in ("direct", "reworded")]
        return Measured(run="r", epoch=epoch_number, rows=tuple(rows), full=True)

    figure = figures.outcome_chart(measured(0, 1.0), measured(5, 0.25))
    assert [list(item.y) for item in figure.data] == [[1.0], [0.25]]


def test_user_text_stays_text_in_a_figure():
    hostile = "<img src=x onerror=alert(1)>"
    facts = [Fact("a", hostile, "a", subject=hostile, score=100.0)]
    drawn = json.loads(figures.beta_curve(facts, BetaMap()).to_json())
    texts = json.dumps([item.get("text") for item in drawn["data"]])
    assert "<img" not in texts  # hover labels understand some HTML
