"""The tour's words follow the numbers, whichever way they fall."""

from dataclasses import replace

import pytest

from adapop.config.presets import make_config
from adapop.probes.prompts import ProbeRow, Reply
from adapop.training.controller import DualAscent
from adapop.training.events import EpochDone, Measured, RunStarted
from adapop.ui.tour.card import own_run
from adapop.ui.tour.story import (
    Reworded,
    Training,
    guard_of,
    reworded_of,
    rows_of,
    training_of,
)
from adapop.ui.tour.text import (
    CARDS,
    STOPS,
    Moment,
    exponent_card,
    outcome_card,
    score_card,
)
from tour_story import ADAPOP, POPULAR, RARE, STORY, WGA


def words(told, story=STORY, guess="rare", confidence=0.05) -> str:
    card = told(Moment(story, guess, confidence))
    return " ".join(card.lines)


def test_the_tour_has_eight_cards_on_real_controls_and_starts_with_a_guess():
    assert [stop.card for stop in STOPS] == [1, 2, 3, 4, 5, 6, 7, 7, CARDS]
    assert [stop.tab for stop in STOPS] == ["facts"] * 2 + ["pressure"] * 2 + ["run"] * 2 + ["probe"] * 2 + ["run"]
    said = words(STOPS[0].told)
    assert RARE.question in said and POPULAR.question in said and said.endswith("?")


def test_scores_and_exponents_are_those_of_the_facts():
    assert f"{RARE.score:,.0f}" in words(score_card) and f"{POPULAR.score:,.0f}" in words(score_card)
    assert RARE.score_source in words(score_card)
    assert "β = 0.21" in words(exponent_card) and "β = 1.27" in words(exponent_card)


@pytest.mark.parametrize(
    ("guess", "wga", "expected"),
    [
        (
            "rare",
            {},
            "You guessed Paths of Glory. Right: under the even push Paths of Glory is still answered in 0 of 5",
        ),
        ("popular", {}, "You guessed A Clockwork Orange. It was the other one:"),
        ("popular", {"kept_rare": 5}, "You guessed A Clockwork Orange. Right:"),
        ("rare", {"kept_rare": 4}, "it is a tie, whatever you guessed."),
        (None, {}, "The rare one went first."),
        (None, {"kept_rare": 5}, "The popular one went first."),
    ],
)
def test_the_guess_is_answered(guess, wga, expected):
    assert expected in words(outcome_card, replace(STORY, wga=WGA._replace(**wga)), guess)


@pytest.mark.parametrize(
    ("adapop", "wga", "expected"),
    [
        (
            {},
            {},
            "is 58 points under the even push and 13 under AdaPop. AdaPop, which pushes longest on the popular ones, "
            "narrowed it.",
        ),
        (
            {"rare": 0.6},
            {},
            "-7 under AdaPop. AdaPop, which pushes longest on the popular ones, narrowed it and turned it round.",
        ),
        ({"popular": 0.99}, {}, "AdaPop did not narrow it."),
        ({"rare": 0.99, "popular": 0.1}, {}, "AdaPop did not narrow it."),
        ({}, {"popular": 0.27}, "There was hardly one to close."),
        ({"rare": 0.53}, {}, "and 0 under AdaPop. AdaPop, which pushes longest on the popular ones, narrowed it."),
    ],
)
def test_the_gap_is_told_as_it_was(adapop, wga, expected):
    said = words(outcome_card, replace(STORY, adapop=ADAPOP._replace(**adapop), wga=WGA._replace(**wga)))
    assert expected in said
    assert ("survive an even push" in said) == ("hardly" not in expected)


def test_what_was_not_fixed_is_told_only_where_it_was_not():
    said = words(outcome_card)
    assert "still answers 45% of what it should forget (even push: 53%)" in said
    assert "99 of 256 facts look forgotten" in said
    assert "Paths of Glory is still answered in 5 of 5 ways" in said
    assert "never practised suffer more" in said
    better = replace(STORY, adapop=ADAPOP._replace(leaks=0, kept_rare=0, holdout=0.99))
    assert words(outcome_card, better).endswith("(even push: 53%).")
    rows = outcome_card(Moment(STORY, None, 0.05)).rows
    assert rows[1:] == (("Even push (WGA)", "24%", "82%", "98%"), ("AdaPop", "40%", "53%", "91%"))


def measured(epoch: int, rare: float, popular: float, full: bool = False) -> Measured:
    recalls = [("rare", rare), ("popular", popular)]
    rows = [{"group": "forget", "form": "direct", "tier": tier, "recall": recall} for tier, recall in recalls]
    return Measured(run="r", epoch=epoch, rows=tuple(rows), full=full)


def test_training_and_guard_come_from_the_events():
    start = RunStarted(run="r", model="m", method="adapop", facts="f", forget=4, retain=5, holdout=6, epochs=3, steps=2)
    assert training_of([start]) is None
    events = [start, measured(0, 1.0, 0.9), measured(1, 0.5, 0.6), measured(3, 0.0, 0.0, full=True)]
    assert training_of(events) == Training(4, 5, 3, 1, (1.0, 0.9), (0.5, 0.6))

    config, controller = make_config("adapop", epochs=3), DualAscent()
    row, rows = controller.start(0.2), []
    for loss in (0.3, 0.6, 0.3):
        row = controller.update(row, loss)
        rows.append(EpochDone(run="r", **vars(row), drift_from_start=row.drift_from_start))
    assert guard_of([start], config) is None
    found = guard_of(rows, config)
    assert (found.worst, found.worst_epoch, found.over) == (pytest.approx(1.0), 2, True)
    assert (found.lam, found.alpha) == (pytest.approx(0.09), pytest.approx(0.59))
    assert found.unseen == pytest.approx(0.5)
    assert guard_of(rows[:1], replace(config, reference="start")).unseen is None


def probed(fact, kind: str, prompt: str, recall: float, text: str) -> ProbeRow:
    original, unlearned = (Reply(said, got, got, 1, -1.0, 1, 0.0) for said, got in (("Kubrick", 1.0), (text, recall)))
    return ProbeRow(fact.id, "forget", fact.tier, kind, prompt, fact.answer, original, unlearned, fact.score)


def test_a_rewording_that_brings_it_back_is_shown_if_there_is_one():
    rows = [
        probed(POPULAR, "direct", "a?", 0.0, "Fellini"),
        probed(POPULAR, "reworded", "b?", 0.0, "Allen"),
        probed(POPULAR, "reworded", "c?", 1.0, "Kubrick"),
    ]
    assert reworded_of(rows) == Reworded("Fellini", False, "c?", "Kubrick", True, 1, 2)
    assert reworded_of(rows[:2]) == Reworded("Fellini", False, "b?", "Allen", False, 0, 1)
    assert rows_of([*rows, probed(RARE, "direct", "d?", 1.0, "Kubrick")], POPULAR) == rows


@pytest.mark.parametrize(
    ("kept", "expected"),
    [({}, "now"), (None, "now"), ({"run": "mine"}, "mine"), ({"run": ""}, ""), ({"run": 3}, "now"), ([], "now")],
)
def test_a_page_left_in_the_middle_opens_with_the_visitors_own_run(kept, expected):
    assert own_run(kept, "now") == expected
