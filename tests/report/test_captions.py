"""Titles are findings: they follow the numbers, and claim no difference that chance may have made."""

from dataclasses import fields, replace
from itertools import pairwise

import pytest

from adapop.config.presets import make_config
from adapop.probes.intervals import Interval, wilson
from adapop.probes.matrix import Answers, Cell
from adapop.report import figures
from adapop.report.figures import captions, look
from adapop.report.record import described
from adapop.report.recovery import came_back, recovery_figure, recovery_sentence
from adapop.training.events import Measured
from run_events import STEPS, epoch


def share(mean, facts=96):
    return wilson(mean, facts)


@pytest.mark.parametrize(
    ("popular", "rare", "facts", "said"),
    [
        (0.82, 0.24, 96, "Popular facts survive: 82 % against 24 %"),
        (0.24, 0.82, 96, "Popular facts go first: 24 % against 82 %"),
        (0.50, 0.38, 8, "Popular 50 %, rare 38 % left, which may be chance"),
        (0.02, 0.0, 96, "Next to nothing is left: 2 % of popular facts, 0 % of rare ones"),
    ],
)
def test_survival_is_claimed_only_beyond_chance(popular, rare, facts, said):
    assert said in captions.survival(share(popular, facts), share(rare, facts), None)
    assert captions.survival(None, None, share(0.4)) == "40 % of the facts to forget are still answered"


def test_a_line_and_its_title_are_of_one_wording():
    rows = tuple(
        {"group": "forget", "tier": tier, "form": form, "recall": value, "facts": 96}
        for form, values in (("direct", (0.76, 0.65, 0.7)), ("reworded", (0.70, 0.44, 0.55)))
        for tier, value in zip(("popular", "rare", "all"), values)
    )
    for told, title, axis in (
        (rows, "Popular facts survive: 70 % against 44 % of the rare", "answered in one other wording"),
        (rows[:3], "Popular 76 %, rare 65 % left, which may be chance", "answered as trained"),
        ((), "", "answered as trained"),
    ):
        events = [Measured(run="r", epoch=epoch, rows=told) for epoch in (0, 3)]
        figure = figures.recall_chart(events, 5)
        assert figures.finding_of(figure).replace("\u00a0", " ") == title
        assert figure.layout.yaxis.title.text == axis

    def measured(epoch, share, full):
        rows = ({"group": "forget", "tier": "all", "form": "reworded", "recall": share, "facts": 96},)
        return Measured(run="r", epoch=epoch, rows=rows, full=full)

    said = [measured(0, 1.0, False), measured(1, 0.6, False), measured(0, 0.9, True), measured(1, 0.4, True)]
    assert [event.recall("forget", "reworded") for event in figures.by_epoch(said)] == [1.0, 0.6]
    for events, share, form in ((said, "60 %", "in one other wording"), (said[2:], "40 %", "in other words")):
        figure = figures.recall_chart(events, 1)
        title = figures.finding_of(figure).replace("\u00a0", " ")
        assert title == f"{share} of the facts to forget are still answered"
        assert figure.layout.yaxis.title.text == f"answered {form}"


def test_the_recall_chart_s_title_is_read_from_its_last_epoch():
    def measured(number, rare, popular):
        tiers = {"rare": rare, "popular": popular, "all": (rare + popular) / 2}
        rows = [{"group": "forget", "tier": tier, "form": "direct", "recall": value, "facts": 96}
                for tier, value in tiers.items()]  # fmt: skip
        return Measured(run="r", epoch=number, rows=tuple(rows))

    figure = figures.recall_chart([measured(0, 1.0, 1.0), measured(1, 0.25, 0.75)], 5)
    assert figures.finding_of(figure).replace("\u00a0", " ") == "Popular facts survive: 75 % against 25 % of the rare"
    assert figures.finding_of(figures.recall_chart([measured(0, 1.0, 1.0)], 5)) == "Before training"
    assert {note.text for note in figure.layout.annotations} == {"rare", "popular"}, "names stand at the lines"
    assert figures.numbers_of(figure).rows[1] == ("1", "25 % (17.4 % to 34.5 %)", "75 % (65.5 % to 82.6 %)")
    shaded = [trace for trace in figure.data if trace.fill and trace.x]
    assert len(shaded) == 2 and all(0 <= edge <= 1 for band in shaded for edge in band.y)
    assert {round(edge, 3) for edge in shaded[0].y} >= {0.174, 0.345}, "the interval of the rare after epoch 1"
    assert figure.layout.showlegend is False


def test_what_forgetting_cost_is_claimed_only_beyond_chance():
    gone = share(1.0), share(0.5)
    assert captions.outcome(gone, {}) == "100 % before, 50 % after"
    assert captions.outcome(gone, {"others": (share(1.0), share(0.8))}) == "Others lost 20 points"
    near = captions.outcome(gone, {"others": (share(0.9), share(0.88))})
    assert near == "Others lost 2 points, which may be chance"
    assert captions.outcome(gone, {"others": (share(0.9), share(0.9))}) == "What was to be kept is whole"
    worst = {
        "others": (share(1.0), share(0.8)),
        "sums": (share(1.0), share(0.7)),
        "few": (share(1.0, 2), share(0.5, 2)),
    }
    assert captions.outcome(gone, worst) == "Sums lost 30 points"


@pytest.mark.parametrize(("back", "doubt"), [(0.9, ""), (0.55, ", which may be chance")])
def test_what_leaks_is_claimed_only_beyond_chance(back, doubt):
    def cell(kind, recall):
        answers = Answers(share(recall), *[0.0] * (len(fields(Answers)) - 1))
        return Cell("forget", "all", kind, 96, 96, answers, answers, 0.0, True, "", *[0.0] * 4)

    said = captions.leak([cell("direct", 0.5), cell("translated", back)])
    assert said == f"“Translated” gets {100 * back:.0f} % of the answers, the trained question 50 %{doubt}"


def test_the_controller_s_title_counts_the_epochs_above_the_tolerance():
    rows = [epoch(0, 0.0, 0.0), epoch(1, 0.05, 0.0), epoch(2, 0.5, 0.04)]
    said = figures.finding_of(figures.controller_chart(rows, make_config()))
    assert said == "Kept facts suffered beyond the tolerance once in 2 epochs, and the controller held them tighter"
    assert "rested" in figures.finding_of(figures.controller_chart(rows[:2], make_config()))
    assert captions.strain(1, 1, "primal") == "Kept facts suffered beyond the tolerance once in 1 epoch"
    assert captions.strain(2, 3, "fixed").endswith("2 times in 3 epochs, and nothing held them tighter")


def test_the_losses_title_goes_from_the_first_epoch_to_the_last():
    steps = [replace(event, nll_by_tier={"rare": float(event.epoch)}) for event in STEPS]
    assert (
        figures.loss_finding(steps, 4) == "The loss rose by 1.0 nats for rare answers, and did not move for kept ones"
    )
    assert captions.losses({"rare": 0.5}, {"popular": 1.0}) == "", "no tier was seen in both"
    first = [event for event in STEPS if event.epoch == 1]
    assert figures.loss_finding(first, 4) == "" == figures.finding_of(figures.loss_chart(first, 4))


@pytest.mark.parametrize(
    ("popular", "rare", "kept", "said"),
    [
        (2.0, 1.0, None, "rose by 2.0 nats for popular answers, by 1.0 nats for rare answers"),
        (None, -1.0, None, "fell by 1.0 nats for rare answers"),
        (-1.0, -0.5, 0.2, "fell by 1.0 nats for popular answers, by 0.5 nats for rare answers, "
                          "and rose by 0.2 nats for kept ones"),
        (0.5, -0.5, -0.1, "rose by 0.5 nats for popular answers, and fell by 0.5 nats for rare answers, "
                          "by 0.1 nats for kept ones"),
        (0.04, -0.04, 0.2, "did not move for popular answers, for rare answers, and rose by 0.2 nats for kept ones"),
    ],
)  # fmt: skip
def test_a_loss_that_fell_is_not_said_to_rise(popular, rare, kept, said):
    by = {"popular": popular, "rare": rare, "retained": kept}
    first = {name: 2.0 for name, moved in by.items() if moved is not None}
    assert captions.losses(first, {name: 2.0 + by[name] for name in first}) == f"The loss {said}"


def test_labels_and_names_of_runs():
    for places in ([1.0] * 6, [0.0] * 3, [0.2, 0.21, 0.9]):
        moved = look.spaced(places, 0.06, 0.0, 1.0)
        assert all(b - a > 0.055 for a, b in pairwise(moved))
        assert min(moved) >= -0.01 and max(moved) <= 1.01
    assert described(make_config("wga", epochs=6, seed=5)) == "WGA, 6 epochs, rate 0.002, seed 5"
    assert described(make_config("wga", keep="best")).endswith(", seed 0, best epoch")
    for drawn in (figures.push_curves, figures.relative_push):
        rows = figures.numbers_of(drawn({"rarest": 2.0, "most popular": 0.1}, 0.05)).rows
        assert len(rows) > 40 and rows[-1][0] == "100 %" and all(";" not in cell for row in rows for cell in row)


def row(before, after, control, facts=96):
    return {"tier": "all", "form": "direct", "facts": facts, "before": before, "after": after, "control": control}


def test_relearning_in_one_sentence_with_its_control(tiny):
    hidden = {"rows": [row(0.22, 0.46, 0.21)], "returned": [tiny.forget[0].id]}
    assert recovery_sentence("relearn", hidden) == (
        "22 % → 46 % after relearning, 21 % in the control (96 facts): some of it was hidden, not erased."
    )
    few = {"rows": [row(0.22, 0.36, 0.21, facts=8)], "returned": []}
    assert recovery_sentence("relearn", few).endswith("no more than chance may find.")
    assert came_back(hidden, tiny.forget) == f"Came back: {tiny.forget[0].title}."
    assert came_back(few, tiny.forget) == "No single fact came back."
    drawn = {trace.name: list(trace.x) for trace in recovery_figure("relearn", hidden).data}
    assert drawn == {"before": [0.22], "relearnt": [0.46], "control": [0.21]}


@pytest.mark.parametrize(
    ("betas", "said"),
    [
        ((1.99, 1.99), "At 5 % confidence, the most popular fact and the rarest both get 5 % of the even push"),
        ((0.0, 0.0), "At 5 % confidence, the most popular fact and the rarest both get 20 times the even push"),
        ((1.99, 0.08), f"At 5 % confidence, the most popular fact gets 16 times {captions.EVEN}, the rarest 5 % of it"),
        ((1.0, 1.0), "Every fact gets the even push"),
    ],
)
def test_one_number_is_printed_in_one_way(betas, said):
    rare, popular = betas
    ends = {"rarest": rare, "middle": 1.0, "most popular": popular}
    assert captions.against_wga(ends, 0.05) == said
    assert figures.finding_of(figures.relative_push(ends, 0.05)).replace("\u00a0", " ") == said


def ranged(mean, half=0.05):
    return Interval(mean, mean - half, mean + half)


@pytest.mark.parametrize(
    ("gaps", "said"),
    [
        ({"WGA": 0.6, "AdaPop": 0.1}, "Gap: 10 points under AdaPop, 60 under WGA"),
        (
            {"WGA": 0.6, "AdaPop, shuffled": 0.52, "AdaPop": 0.1, "NPO": 0.3},
            "Gap: 10 points under AdaPop, 60 under WGA (not clearly narrower: AdaPop shuffled)",
        ),
        (
            {"WGA": 0.14, "AdaPop": 0.08},
            "Nobody forgets clearly more evenly: gap 8 points under AdaPop, 14 under WGA, which may be chance",
        ),
        (  # one leans the other way: apart, but as wide
            {"WGA": 0.14, "AdaPop": -0.12},
            "Nobody forgets clearly more evenly: gap 12 points under AdaPop, 14 under WGA, which may be chance",
        ),
        ({"WGA": 0.14}, "WGA leaves popular facts 14 points above rare ones"),
        ({"WGA": -0.04}, "WGA leaves popular facts 4 points below rare ones, which may be chance"),
    ],
)
def test_gaps_are_told_apart_only_beyond_their_ranges(gaps, said):
    assert captions.widest([(name, ranged(gap)) for name, gap in gaps.items()]) == said


@pytest.mark.parametrize(
    ("placed", "said"),
    [
        ({"AdaPop": (0.2, 0.5), "NPO": (0.5, 0.9)}, "AdaPop forgets most (20 % left); NPO keeps most (90 %)"),
        (
            {"AdaPop": (0.49, 0.92), "NPO": (0.5, 0.97), "WGA": (0.8, 0.6)},
            "AdaPop forgets most (49 % left; not clearly less: NPO); NPO keeps most (97 %; not clearly less: AdaPop)",
        ),
        (
            {"AdaPop": (0.49, 0.92), "NPO": (0.5, 0.92)},
            "Nobody clearly forgets most (49 % to 50 % left) or keeps most (92 %)",
        ),
    ],
)
def test_nobody_is_first_who_cannot_be_told_from_the_next(placed, said):
    assert captions.extremes([(name, ranged(left), ranged(kept)) for name, (left, kept) in placed.items()]) == said


def test_beaten_and_verdicts_only_beyond_chance():
    one, near, far = (
        figures.Outcome(str(at), name, forget=ranged(left), holdout=ranged(kept))
        for at, (name, left, kept) in enumerate((("A", 0.2, 0.9), ("B", 0.25, 0.88), ("C", 0.6, 0.5)), start=1)
    )
    assert (
        figures.finding_of(figures.forget_against_holdout([one, far])) == "Nobody forgets more and keeps as much as A"
    )
    assert figures.finding_of(figures.forget_against_holdout([one, near, far])).endswith(
        "as much as A (beaten by no more than chance may make: B)"
    )
    few = {"rare": {"Not brought back": 6, "Not forgotten": 2}, "popular": {"Not brought back": 4, "Not forgotten": 4}}
    said = "Not gone: 50 % of popular and 25 % of rare facts"
    assert captions.verdict_shares(few) == f"{said}, which may be chance"
    many = {tier: {name: 20 * count for name, count in found.items()} for tier, found in few.items()}
    assert captions.verdict_shares(many) == said
    assert captions.verdict_shares({"all": {"Not brought back": 8}}) == "All: something is wrong with 0 % (0 to 32 %)"


@pytest.mark.parametrize(
    ("betas", "said"),
    [
        ((1.5, 0.1), "The rarest fact is pushed hardest at 60 % confidence, the most popular at 9 %"),
        ((0.1, 1.5), "The most popular fact is pushed hardest at 60 % confidence, the rarest at 9 %"),
        ((1.0, 1.0), "The rarest and the most popular fact are pushed alike as they fade"),
    ],
)
def test_where_the_push_is_hardest_is_read_from_the_marks(betas, said):
    ends = dict(zip(("rarest", "most popular"), betas))
    figure = figures.push_curves(ends, 0.05)
    assert figures.finding_of(figure).replace("\u00a0", " ") == said
    marks = [f"{100 * trace.x[0]:.0f} %" for trace in figure.data if trace.mode == "markers"]
    assert "alike" in said or all(mark in said for mark in marks)
