"""Every picture has a table with the same numbers."""

import json
import re

from adapop.config.presets import make_config
from adapop.facts.fact import Fact
from adapop.facts.world import sandbox_facts
from adapop.report import figures
from adapop.ui.parts.chart import twin_of
from run_events import STEPS, epoch


def test_the_controller_by_epoch():
    rows = [epoch(0, 0.0, 0.0), epoch(1, 0.05, 0.0), epoch(2, 0.5, 0.04)]
    numbers = figures.numbers_of(figures.controller_chart(rows, make_config()))
    assert numbers.columns == ("epoch", "δ within ε", "δ above ε: λ rises", "δ from before training", "α = α₀ + λ")
    assert numbers.rows[1] == ("1", "0.05", "", "0.5", "0.5")
    assert numbers.rows[2] == ("2", "", "0.5", "0.5", "0.54")


def test_bins_are_named_by_their_scores_and_unknown_is_not_zero():
    facts = [Fact("a", "q", "a", score=0.0), Fact("b", "q", "a"), Fact("c", "q", "a", score=100.0)]
    numbers = figures.numbers_of(figures.popularity_strip(facts))
    assert [row[0] for row in numbers.rows] == ["unknown", "0", "100 to 133.4"]
    whole = figures.numbers_of(figures.popularity_strip(sandbox_facts().forget))
    assert sum(int(cell) for row in whole.rows for cell in row[1:] if cell) == 256


def test_losses_by_step_with_gaps_where_a_tier_was_not_seen():
    numbers = figures.numbers_of(figures.loss_chart(STEPS, 4))
    assert numbers.columns == ("epoch", "rare", "retained")
    assert numbers.rows[0] == ("0.25", "1", "0.2")
    assert len(numbers.rows) == len(STEPS)
    assert figures.loss_numbers(STEPS, 4) == numbers, "the live table is the drawn one's"


def test_a_long_curve_is_thinned_and_says_so():
    numbers = figures.numbers_of(figures.push_curves({"rarest": 1.5, "middle": 0.5, "popular": 0.1}, 0.05))
    assert len(numbers.rows) <= 60
    assert numbers.every == 4
    assert "One row in 4." in twin_of(figures.push_curves({"a": 1.5}, 0.05), "The push.")["words"]


def test_an_empty_picture_has_no_table():
    assert figures.numbers_of(figures.empty("nothing")).rows == ()
    assert twin_of(figures.empty("nothing"))["rows"] == []


def test_hostile_names_stay_text():
    facts = [Fact("a", "q", "a", subject="<img src=x onerror=alert(1)> ${1}", score=100.0)]
    figure = figures.agreement_scatter(facts, {"a": 1.0}, {"a": 2.0}, ("<img src=x>", "${two}"), ["a"])
    said = json.dumps(twin_of(figure, "<b>${x}</b>"))
    assert not re.search(r"<|\$\{", said)


def test_names_are_told_as_they_are():
    facts = [Fact("a", "q", "a", score=1.0)]
    figure = figures.agreement_scatter(facts, {"a": 1.0}, {"a": 2.0}, ("R&D <1>", "two"), [])
    assert figures.numbers_of(figure).columns[0] == "1 + R&D <1>"
