from dataclasses import fields

from adapop.probes.intervals import Interval, wilson
from adapop.probes.matrix import Answers, Cell
from adapop.report import figures
from adapop.report.figures import captions
from adapop.report.recovery import came_back, recovery_figure, recovery_sentence
from adapop.training.events import Measured
from run_events import STEPS

ONE = f", {figures.ONE_WORDING}"


def share(mean, facts=96):
    return wilson(mean, facts)


def finding(figure):
    return figures.finding_of(figure).replace("\u00a0", " ")


def test_what_survives_leaks_or_was_lost_is_claimed_only_beyond_chance():
    for popular, rare, facts, title in (
        (0.82, 0.24, 96, "Popular facts survive: 82 % against 24 %"),
        (0.24, 0.82, 96, "Popular facts go first: 24 % against 82 %"),
        (0.50, 0.38, 8, "Popular 50 %, rare 38 % left, which may be chance"),
        (0.02, 0.0, 96, "Next to nothing is left: 2 % of popular facts, 0 % of rare ones"),
    ):
        assert title in captions.survival(share(popular, facts), share(rare, facts), None)
    left = captions.survival(share(0.0, 1), share(0.0, 1), share(1 / 3, 3))
    assert left == "Popular 0 %, rare 0 % left", "of the others something is"
    gone = share(1.0), share(0.5)
    near = captions.outcome(gone, {"others": (share(0.9), share(0.88))})
    assert near == "Others lost 2 points, which may be chance"
    assert captions.outcome(gone, {"others": (share(0.9), share(0.9))}) == "What was to be kept is whole"
    never = {"retained facts": (share(0.0), share(0.0)), "utility": (share(1.0), share(1.0))}
    assert captions.outcome(gone, never) == "Utility kept whole; never known: retained facts"
    assert captions.outcome(gone, {"others": never["retained facts"]}) == "Never known, so not lost: others"
    worst = {
        "others": (share(1.0), share(0.8)), "sums": (share(1.0), share(0.7)), "few": (share(1.0, 2), share(0.5, 2)),
    }  # fmt: skip
    assert captions.outcome(gone, worst) == "Sums lost 30 points"

    def cell(kind, recall):
        answers = Answers(share(recall), *[0.0] * (len(fields(Answers)) - 1))
        return Cell("forget", "all", kind, 96, 96, answers, answers, 0.0, True, "", *[0.0] * 4)

    for back, doubt in ((0.9, ""), (0.55, ", which may be chance")):
        title = captions.leak([cell("direct", 0.5), cell("translated", back)])
        assert title == f"“Translated” gets {100 * back:.0f} % of 96 answers, the trained question 50 %{doubt}"


def measured(number, full=False, form="direct", **tiers):
    rows = [{"group": "forget", "tier": tier, "form": form, "recall": value, "facts": 96}
            for tier, value in tiers.items()]  # fmt: skip
    return Measured(run="r", epoch=number, rows=tuple(rows), full=full)


def test_a_line_and_its_title_are_of_one_wording():
    rows = [*measured(3, popular=0.76, rare=0.65, all=0.7).rows]
    rows += measured(3, form="reworded", popular=0.7, rare=0.44, all=0.55).rows
    other = "answered in one other wording"
    for measured_rows, title, axis in (
        (rows, "Popular facts survive: 70 % against 44 % of the rare, in one other wording", other),
        (rows[:3], "Popular 76 %, rare 65 % left, which may be chance", "answered as trained"),
        ((), "", "answered as trained"),
    ):
        figure = figures.recall_chart(
            [Measured(run="r", epoch=epoch, rows=tuple(measured_rows)) for epoch in (0, 3)], 5
        )
        assert (finding(figure), figure.layout.yaxis.title.text) == (title, axis)
    values = ((0, False, 1.0), (1, False, 0.6), (0, True, 0.9), (1, True, 0.4))
    measurements = [measured(epoch, full, "reworded", all=value) for epoch, full, value in values]
    assert [event.recall("forget", "reworded") for event in figures.by_epoch(measurements)] == [1.0, 0.6]
    assert [event.recall("forget", "reworded") for event in figures.by_epoch(measurements, full=True)] == [0.9, 0.4]
    for events, left, form in (
        (measurements[:2], "60 %", other),
        (measurements, "40 %", "still answered"),
        (measurements[2:], "40 %", "answered in other words"),
    ):
        figure = figures.recall_chart(events, 1)
        one = ONE if left == "60 %" else ""
        assert finding(figure) == f"{left} of the facts to forget are still answered{one}"
        assert figure.layout.yaxis.title.text == form
        assert figure.data[-1].y[-1] == float(left[:2]) / 100, "the last that is drawn is the title's"


def test_the_recall_chart_s_title_and_bands_are_read_from_its_last_epoch():
    events = [measured(0, rare=1.0, popular=1.0, all=1.0), measured(1, rare=0.25, popular=0.75, all=0.5)]
    figure = figures.recall_chart(events, 5)
    assert finding(figure) == "Popular facts survive: 75 % against 25 % of the rare"
    assert finding(figures.recall_chart(events[:1], 5)) == "Before training"
    assert {note.text for note in figure.layout.annotations} == {"rare", "popular"}, "names stand at the lines"
    assert figures.numbers_of(figure).rows[1] == ("1", "25 % (17.4 % to 34.5 %)", "75 % (65.5 % to 82.6 %)")
    shaded = [trace for trace in figure.data if trace.fill and trace.x]
    assert len(shaded) == 2 and all(0 <= edge <= 1 for band in shaded for edge in band.y)
    assert {round(edge, 3) for edge in shaded[0].y} >= {0.174, 0.345}, "the interval of the rare after epoch 1"


def test_a_loss_that_fell_is_not_said_to_rise():
    for popular, rare, retained, movement in (
        (0.5, -0.5, -0.1, "rose by 0.5 nats for popular answers, and fell by 0.5 nats for rare answers, "
                          "by 0.1 nats for kept ones"),
        (0.04, -0.04, 0.2, "did not move for popular answers, for rare answers, and rose by 0.2 nats for kept ones"),
    ):  # fmt: skip
        last = {"popular": 2.0 + popular, "rare": 2.0 + rare, "retained": 2.0 + retained}
        assert captions.losses(dict.fromkeys(last, 2.0), last) == f"The loss {movement}"
    assert figures.loss_finding(STEPS[:4], 4) == "", "of one epoch"


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


def ranged(mean, half=0.05):
    return Interval(mean, mean - half, mean + half)


def test_runs_are_told_apart_only_beyond_their_ranges():
    for gaps, sentence in (
        ({"WGA": 0.6, "AdaPop, shuffled": 0.52, "AdaPop": 0.1, "NPO": 0.3},
         "Gap: 10 points under AdaPop, 60 under WGA (perhaps as wide: AdaPop shuffled)"),
        ({"WGA": 0.14, "AdaPop": -0.12},  # one leans the other way: apart, but as wide
         "Nobody forgets clearly more evenly: gap 12 points under AdaPop, 14 under WGA, which may be chance"),
    ):  # fmt: skip
        assert captions.widest([(name, ranged(gap)) for name, gap in gaps.items()]) == sentence
    for placed, sentence in (
        ({"AdaPop": (0.49, 0.92), "NPO": (0.5, 0.97), "WGA": (0.8, 0.6)},
         "AdaPop forgets most (49 % left; perhaps as much: NPO); NPO keeps most (97 %; perhaps as much: AdaPop)"),
        ({"AdaPop": (0.49, 0.92), "NPO": (0.5, 0.92)},
         "Nobody clearly forgets most (49 % to 50 % left) or keeps most (92 %)")):  # fmt: skip
        assert (
            captions.extremes([(name, ranged(left), ranged(holdout)) for name, (left, holdout) in placed.items()])
            == sentence
        )
    one, near, far = (
        figures.Outcome(str(at), name, forget=ranged(left), holdout=ranged(holdout))
        for at, (name, left, holdout) in enumerate((("A", 0.2, 0.9), ("B", 0.25, 0.88), ("C", 0.6, 0.5)), start=1)
    )
    titles = [finding(figures.forget_against_holdout(some)) for some in ([one, far], [one, near, far])]
    assert titles[0] == "Nobody forgets more and keeps as much as A"
    assert titles[1].endswith("as much as A (beaten perhaps by chance: B)")
    few = {"rare": {"Not brought back": 6, "Not forgotten": 2}, "popular": {"Not brought back": 4, "Not forgotten": 4}}
    shares = "Not gone: 50 % of popular and 25 % of rare facts"
    assert captions.verdict_shares(few) == f"{shares}, of 16 probed, which may be chance"
    many = {tier: {name: 20 * count for name, count in found.items()} for tier, found in few.items()}
    assert captions.verdict_shares(many) == f"{shares}, of 320 probed"
    assert captions.verdict_shares({"all": {"Not brought back": 8}}) == "All: something is wrong with 0 % (0 to 32 %)"
