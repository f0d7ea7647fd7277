from types import SimpleNamespace

import pytest

from adapop.errors import RunError
from adapop.report import figures
from adapop.report.recovery import came_back, leak_figure, recovery_figure, recovery_sentence
from adapop.training.events import Measured


def relearned(after, facts=96):
    row = {"tier": "all", "form": "direct", "facts": facts, "before": 0.22, "after": after, "control": 0.21}
    return {"rows": [row], "returned": []}


def sampled(said, drawn):
    """Found in each place, and a wrong answer there."""
    found = {"16 samples": (drawn, 0.1), "top 1": (said, 0.02), "top 20": (1.0, 0.65)}
    rows = ({"place": place, "unlearned": right, "control": wrong} for place, (right, wrong) in found.items())
    return {"rows": [{"tier": "all", "facts": 96, **row} for row in rows]}


def seen(first, last):
    """Found by the lens after each of two layers."""
    layers = enumerate((first, last), start=1)
    return {"rows": [{"tier": "all", "facts": 96, "layer": at, "unlearned": x, "control": 0.05} for at, x in layers]}


@pytest.mark.parametrize(("sentence", "values", "words"), [
    (recovery_sentence, ("relearn", relearned(0.46)),
     "22% → 46% after relearning, 21% in the control (96 facts): some of it was hidden, not erased."),
    (recovery_sentence, ("sampling", {"rows": [
        {"tier": "all", "place": "16 samples", "facts": 20, "unlearned": 0.3, "control": None}]}),
     "30% of the answers are found (16 samples; 20 facts). No control: no fact has a wrong answer of its relation."),
    (recovery_sentence, ("relearn", relearned(0.36, facts=8)),
     "22% → 36% after relearning, 21% in the control (8 facts): no sign that anything was hidden."),
    (recovery_sentence, ("sampling", sampled(0.2, 0.75)), "75% of the answers are found (16 samples), and 10% "
     "of wrong answers (control); the replies give 20% (96 facts): some of it was hidden, not erased."),
    (recovery_sentence, ("sampling", sampled(0.98, 0.98)), "98% of the answers are found (top 1), and 2% of "
     "wrong answers (control); the replies give 98% (96 facts): no sign that anything was hidden."),
    # of the 40% that it does not say, chance alone finds a quarter
    (recovery_sentence, ("sampling", sampled(0.6, 0.75)), "75% of the answers are found (16 samples), and 10% "
     "of wrong answers (control); the replies give 60% (96 facts): no sign that anything was hidden."),
    (recovery_sentence, ("lens", seen(0.9, 0.3)), "90% of the answers are found (after layer 1), and 5% of "
     "wrong answers (control); the replies give 30% (96 facts): some of it was hidden, not erased."),
    (came_back, (relearned(0.46), ()), "No single fact came back."),
])  # fmt: skip
def test_a_sentence_claims_only_what_is_beyond_chance(sentence, values, words):
    assert sentence(*values) == words


def measured(number, full=False, form="direct", **tiers):
    rows = [{"group": "forget", "tier": tier, "form": form, "recall": value, "facts": 96}
            for tier, value in tiers.items()]  # fmt: skip
    return Measured(run="r", epoch=number, rows=tuple(rows), full=full)


def test_an_axis_names_the_wordings_of_its_lines():
    rows = [*measured(3, popular=0.76, rare=0.65, all=0.7).rows]
    rows += measured(3, form="reworded", popular=0.7, rare=0.44, all=0.55).rows
    for measured_rows, axis in (
        (rows, "answered in one other wording"), (rows[:3], "answered as trained"), ((), "answered as trained"),
    ):  # fmt: skip
        events = [Measured(run="r", epoch=epoch, rows=tuple(measured_rows)) for epoch in (0, 3)]
        assert figures.recall_chart(events, 5).layout.yaxis.title.text == axis
    values = ((0, False, 1.0), (1, False, 0.6), (0, True, 0.9), (1, True, 0.4))
    measurements = [measured(epoch, full, "reworded", all=value) for epoch, full, value in values]
    assert [event.recall("forget", "reworded") for event in figures.by_epoch(measurements)] == [1.0, 0.6]
    assert [event.recall("forget", "reworded") for event in figures.by_epoch(measurements, full=True)] == [0.9, 0.4]
    for events, left, form in (
        (measurements[:2], 0.6, "answered in one other wording"),
        (measurements, 0.4, "still answered"),
        (measurements[2:], 0.4, "answered in other words"),
    ):
        figure = figures.recall_chart(events, 1)
        assert (figure.layout.yaxis.title.text, figure.data[-1].y[-1]) == (form, left)


def test_the_recall_chart_shades_intervals_and_names_its_lines():
    events = [measured(0, rare=1.0, popular=1.0, all=1.0), measured(1, rare=0.25, popular=0.75, all=0.5)]
    figure = figures.recall_chart(events, 5)
    assert {note.text for note in figure.layout.annotations} == {"rare", "popular"}, "names stand at the lines"
    assert figures.numbers_of(figure).rows[1] == ("1", "25% (17.4% to 34.5%)", "75% (65.5% to 82.6%)")
    shaded = [trace for trace in figure.data if trace.fill and trace.x]
    assert len(shaded) == 2 and all(0 <= edge <= 1 for band in shaded for edge in band.y)
    assert {round(edge, 3) for edge in shaded[0].y} >= {0.174, 0.345}, "the interval of the rare after epoch 1"


def test_leak_at_k_is_drawn_by_popularity_from_the_samples_of_every_fact():
    tier_of = {"a": "rare", "b": "middle", "c": "popular", "d": "popular"}
    tiered = [SimpleNamespace(id=name, tier=tier) for name, tier in tier_of.items()]
    said = {"a": (0, None), "b": (1, 1), "c": (2, 0), "d": (4, None)}
    facts = [{"id": name, "unlearned": {"samples": own}, "control": wrong if wrong is None else {"samples": wrong}}
             for name, (own, wrong) in said.items()]  # fmt: skip
    figure = leak_figure({"samples": 4, "facts": facts}, tiered)
    drawn = {trace.name: [round(share, 4) for share in trace.y] for trace in figure.data}
    assert drawn == {
        "rare": [0, 0, 0, 0],
        "middle": [0.25, 0.5, 0.75, 1],
        "popular": [0.75, round((5 / 6 + 1) / 2, 4), 1, 1],
        "a wrong answer": [0.125, 0.25, 0.375, 0.5],
    }
    assert {tuple(trace.x) for trace in figure.data} == {(1, 2, 3, 4)}
    with pytest.raises(RunError, match="damaged or missing"):
        leak_figure({"samples": 4}, tiered)


def test_what_came_back_is_drawn_with_its_control_and_named(tiny):
    drawn = {trace.name: list(trace.x) for trace in recovery_figure("relearn", relearned(0.46)).data}
    assert drawn == {"before": [0.22], "relearnt": [0.46], "control": [0.21]}
    for name, result, share, wrong in (
        ("sampling", sampled(0.2, 0.75), 0.75, 0.1),
        ("lens", seen(0.9, 0.3), 0.9, 0.05),
    ):
        drawn = {trace.name: list(trace.x) for trace in recovery_figure(name, result).data}
        assert drawn == {"found": [share], "a wrong answer": [wrong]}, "what its sentence tells"
    hidden = relearned(0.46) | {"returned": [tiny.forget[0].id]}
    assert came_back(hidden, tiny.forget) == f"Came back: {tiny.forget[0].title}."
