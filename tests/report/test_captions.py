from dataclasses import fields

import pytest

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


def ranged(mean):
    return Interval(mean, mean - 0.05, mean + 0.05)


def finding(figure):
    return figures.finding_of(figure)


def leaking(translated):
    """The direct question, which half of the facts still answer, and a translated one."""
    rest = [0.0] * (len(fields(Answers)) - 1)
    recalls = {"direct": Answers(share(0.5), *rest), "translated": Answers(share(translated), *rest)}
    return [Cell("forget", "all", kind, 96, 96, one, one, 0.0, True, "", *[0.0] * 4) for kind, one in recalls.items()]


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


GONE, NOTHING, WHOLE = (share(1.0), share(0.5)), (share(0.0), share(0.0)), (share(1.0), share(1.0))
START = {"popular": 2.0, "rare": 2.0, "retained": 2.0}
WORST = {"others": (share(1.0), share(0.8)), "sums": (share(1.0), share(0.7)), "few": (share(1.0, 2), share(0.5, 2))}
FEW = {"rare": {"Not brought back": 6, "Not forgotten": 2}, "popular": {"Not brought back": 4, "Not forgotten": 4}}
MANY = {tier: {name: 20 * count for name, count in counts.items()} for tier, counts in FEW.items()}


@pytest.mark.parametrize(("caption", "values", "words"), [
    (captions.survival, (share(0.82), share(0.24), None), "Popular facts survive: 82.0% against 24.0% of the rare"),
    (captions.survival, (share(0.24), share(0.82), None), "Popular facts go first: 24.0% against 82.0% of the rare"),
    (captions.survival, (share(0.5, 8), share(0.38, 8), None),
     "Still answered: popular 50.0%, rare 38.0%, which may be chance"),
    (captions.survival, (share(0.02), share(0.0), None),
     "Almost nothing is still answered: 2.0% of popular facts, 0.0% of rare ones"),
    (captions.survival, (share(0.5), share(0.5), share(0.5), share(0.02)),
     "Asked this way, the original answered only 2% of them"),
    # of the others something is
    (captions.survival, (share(0.0, 1), share(0.0, 1), share(1 / 3, 3)), "Still answered: popular 0.0%, rare 0.0%"),
    (captions.outcome, (GONE, {"others": (share(0.9), share(0.88))}), "Others lost 2 points, which may be chance"),
    (captions.outcome, (GONE, {"others": (share(0.9), share(0.9))}), "Nothing that should be kept was lost"),
    (captions.outcome, (GONE, {"facts": NOTHING, "sums": WHOLE}), "Sums lost nothing; never known: facts"),
    (captions.outcome, (GONE, {"others": NOTHING}), "Never known, so not lost: others"),
    (captions.outcome, (GONE, WORST), "Sums lost 30 points"),
    (captions.leak, (leaking(0.9),), "“Translated” gets 90% of 96 answers, the trained question 50%"),
    (captions.leak, (leaking(0.55),),
     "“Translated” gets 55% of 96 answers, the trained question 50%, which may be chance"),
    (captions.losses, (START, {"popular": 2.5, "rare": 1.5, "retained": 1.9}),
     "The loss rose by 0.5 nats for popular answers, "
     "and fell by 0.5 nats for rare answers, by 0.1 nats for the retain set"),
    (captions.losses, (START, {"popular": 2.04, "rare": 1.96, "retained": 2.2}),
     "The loss hardly moved for popular answers, for rare answers, and rose by 0.2 nats for the retain set"),
    (captions.widest, ([("WGA", ranged(0.6)), ("AdaPop, shuffled", ranged(0.52)), ("AdaPop", ranged(0.1))],),
     "Gap: 10 points under AdaPop, 60 under WGA (perhaps as wide: AdaPop shuffled)"),
    # one leans the other way: apart, but as wide
    (captions.widest, ([("WGA", ranged(0.14)), ("AdaPop", ranged(-0.12))],),
     "No method is clearly more even: gap 12 points under AdaPop, 14 under WGA, which may be chance"),
    (captions.extremes, ([("AdaPop", ranged(0.49), ranged(0.92)), ("NPO", ranged(0.5), ranged(0.97)),
                          ("WGA", ranged(0.8), ranged(0.6))],),
     "AdaPop forgets most (49% left; perhaps as much: NPO); NPO keeps most (97%; perhaps as much: AdaPop)"),
    (captions.extremes, ([("AdaPop", ranged(0.49), ranged(0.92)), ("NPO", ranged(0.5), ranged(0.92))],),
     "No method clearly forgets most (49% to 50% left) or keeps most (92%)"),
    (captions.bargain, (["A"],), "No run forgets more and keeps as much as A"),
    (captions.bargain, (["A", "C"], ["B"]),
     "No run forgets more and keeps as much as A or C (beaten perhaps by chance: B)"),
    (captions.verdict_shares, (FEW,),
     "Not gone: 50% of popular and 25% of rare facts, of 16 probed, which may be chance"),
    (captions.verdict_shares, (MANY,), "Not gone: 50% of popular and 25% of rare facts, of 320 probed"),
    (captions.verdict_shares, ({"all": {"Not brought back": 8}},), "Leaked or damaged: 0% (0 to 32%)"),
    (recovery_sentence, ("relearn", relearned(0.46)),
     "22% → 46% after relearning, 21% in the control (96 facts): some of it was hidden, not erased."),
    (recovery_sentence, ("sampling", {"rows": [
        {"tier": "all", "place": "16 samples", "facts": 20, "unlearned": 0.3, "control": None}]}),
     "30% of the answers are found (16 samples; 20 facts). No control: no fact has a wrong answer of its relation."),
    (recovery_sentence, ("relearn", relearned(0.36, facts=8)),
     "22% → 36% after relearning, 21% in the control (8 facts): no more than its replies and chance give."),
    (recovery_sentence, ("sampling", sampled(0.2, 0.75)), "75% of the answers are found (16 samples), and 10% "
     "of wrong answers (control); the replies give 20% (96 facts): some of it was hidden, not erased."),
    (recovery_sentence, ("sampling", sampled(0.98, 0.98)), "98% of the answers are found (top 1), and 2% of "
     "wrong answers (control); the replies give 98% (96 facts): no more than its replies and chance give."),
    # of the 40% that it does not say, chance alone finds a quarter
    (recovery_sentence, ("sampling", sampled(0.6, 0.75)), "75% of the answers are found (16 samples), and 10% "
     "of wrong answers (control); the replies give 60% (96 facts): no more than its replies and chance give."),
    (recovery_sentence, ("lens", seen(0.9, 0.3)), "90% of the answers are found (after layer 1), and 5% of "
     "wrong answers (control); the replies give 30% (96 facts): some of it was hidden, not erased."),
    (came_back, (relearned(0.46), ()), "No single fact came back."),
])  # fmt: skip
def test_a_title_claims_only_what_is_beyond_chance(caption, values, words):
    assert caption(*values) == words


def measured(number, full=False, form="direct", **tiers):
    rows = [{"group": "forget", "tier": tier, "form": form, "recall": value, "facts": 96}
            for tier, value in tiers.items()]  # fmt: skip
    return Measured(run="r", epoch=number, rows=tuple(rows), full=full)


def test_a_line_and_its_title_are_of_one_wording():
    rows = [*measured(3, popular=0.76, rare=0.65, all=0.7).rows]
    rows += measured(3, form="reworded", popular=0.7, rare=0.44, all=0.55).rows
    other = "answered in one other wording"
    for measured_rows, title, axis in (
        (rows, captions.survival(share(0.7), share(0.44), None) + ONE, other),
        (rows[:3], captions.survival(share(0.76), share(0.65), None), "answered as trained"),
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
    for events, left, one, form in (
        (measurements[:2], 0.6, ONE, other),
        (measurements, 0.4, "", "still answered"),
        (measurements[2:], 0.4, "", "answered in other words"),
    ):
        figure = figures.recall_chart(events, 1)
        assert finding(figure) == captions.survival(None, None, share(left)) + one
        assert figure.layout.yaxis.title.text == form
        assert figure.data[-1].y[-1] == left, "the last that is drawn is the title's"


def test_the_recall_chart_s_title_and_bands_are_read_from_its_last_epoch():
    events = [measured(0, rare=1.0, popular=1.0, all=1.0), measured(1, rare=0.25, popular=0.75, all=0.5)]
    figure = figures.recall_chart(events, 5)
    assert finding(figure) == captions.survival(share(0.75), share(0.25), None)
    assert finding(figures.recall_chart(events[:1], 5)) == "Before training"
    unknown = [measured(epoch, rare=0.0, popular=0.0, all=0.0) for epoch in (0, 1)]
    assert finding(figures.recall_chart(unknown, 5)) == captions.survival(None, None, None, share(0.0))
    assert {note.text for note in figure.layout.annotations} == {"rare", "popular"}, "names stand at the lines"
    assert figures.numbers_of(figure).rows[1] == ("1", "25% (17.4% to 34.5%)", "75% (65.5% to 82.6%)")
    shaded = [trace for trace in figure.data if trace.fill and trace.x]
    assert len(shaded) == 2 and all(0 <= edge <= 1 for band in shaded for edge in band.y)
    assert {round(edge, 3) for edge in shaded[0].y} >= {0.174, 0.345}, "the interval of the rare after epoch 1"


def test_what_came_back_is_drawn_with_its_control_and_named(tiny):
    drawn = {trace.name: list(trace.x) for trace in recovery_figure("relearn", relearned(0.46)).data}
    assert drawn == {"before": [0.22], "relearnt": [0.46], "control": [0.21]}
    for name, result, share, wrong in (
        ("sampling", sampled(0.2, 0.75), 0.75, 0.1),
        ("lens", seen(0.9, 0.3), 0.9, 0.05),
    ):
        drawn = {trace.name: list(trace.x) for trace in recovery_figure(name, result).data}
        assert drawn == {"found": [share], "a wrong answer": [wrong]}, "what its title tells"
    hidden = relearned(0.46) | {"returned": [tiny.forget[0].id]}
    assert came_back(hidden, tiny.forget) == f"Came back: {tiny.forget[0].title}."


def test_a_figure_s_title_is_of_what_it_draws():
    one, near, far = (
        figures.Outcome(str(at), name, forget=ranged(left), holdout=ranged(holdout))
        for at, (name, left, holdout) in enumerate((("A", 0.2, 0.9), ("B", 0.25, 0.88), ("C", 0.6, 0.5)), start=1)
    )
    assert finding(figures.forget_against_holdout([one, far])) == captions.bargain(["A"])
    assert finding(figures.forget_against_holdout([one, near, far])) == captions.bargain(["A"], ["B"])
    assert figures.loss_finding(STEPS[:4], 4) == "", "of one epoch"
