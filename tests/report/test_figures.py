import json
import re
from dataclasses import replace

import pytest

from adapop.config.presets import make_config
from adapop.facts.fact import TIERS, Fact
from adapop.facts.world import sandbox_facts
from adapop.probes.intervals import Interval
from adapop.probes.matrix import leak_matrix
from adapop.probes.prompts import CHOICE, DIRECT, REWORDED
from adapop.probes.verdict import RULES
from adapop.report import figures
from adapop.report.figures import look
from adapop.report.figures.outcomes import ATTACKED, PANELS, beats, by_gap, no_contest
from adapop.report.figures.probes import NOTHING, VERDICT_COLOR
from adapop.runs.examples import example
from adapop.training.events import Measured
from adapop.ui.parts.chart import twin_of
from records import probed, row
from run_events import STEPS, epoch

ROLE = "role playing"


def trace(figure, name):
    return next(item for item in figure.data if item.name and item.name.startswith(name))


def test_the_strip_counts_every_fact_once_by_tier():
    facts = sandbox_facts().forget
    figure = figures.popularity_strip(facts)
    for tier in ("rare", "middle", "popular"):
        assert sum(trace(figure, tier).y) == sum(fact.tier == tier for fact in facts)
    assert sum(int(cell) for row in figures.numbers_of(figure).rows for cell in row[1:] if cell) == 256
    assert figure.layout.xaxis.ticktext == ("10", "100", "1,000", "10,000"), "no room for scores that no fact has"
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
    assert figures.popularity_strip([]).layout.xaxis.ticktext == ("1", "10")
    large = figures.popularity_strip([Fact("a", "q", "a", score=2e6), Fact("b", "q", "a", score=5e9)])
    assert large.layout.xaxis.ticktext == ("1M", "10M", "100M", "1bn", "10bn"), "a phone has no room for zeros"


def test_the_push_and_the_weight_against_wgas():
    figure = figures.push_curves({"rarest fact": 1.5, "middle": 0.5, "most popular": 0.1}, 0.05)
    for line, mark in zip(figure.data[::2], figure.data[1::2]):
        assert mark.y[0] >= max(line.y) - 1e-3
    # p^(β − 1) at p = 0.1: 0.1 to the −0.9 is 7.9433, to the 0.5 is 0.3162, and 1 where β is 1.
    figure = figures.relative_push({"most popular": 0.1, "WGA": 1.0, "rarest fact": 1.5}, 0.05)
    at = {one.name: next(y for x, y in zip(one.x, one.y) if x == pytest.approx(0.1)) for one in figure.data}
    pushed = {"most popular: β 0.10": 7.9433, "WGA: β 1.00": 1.0, "rarest fact: β 1.50": 0.3162}
    assert at == pytest.approx(pushed, rel=1e-3)


def test_the_controller_chart_and_its_numbers():
    rows = [epoch(0, 0.0, 0.0), epoch(1, 0.05, 0.0), epoch(2, 0.5, 0.04), epoch(3, 0.05, 0.035)]
    figure = figures.controller_chart(rows, make_config())
    assert list(trace(figure, "δ above").x) == [2] and list(trace(figure, "δ within").x) == [1, 3]
    assert list(trace(figure, "α").y) == [0.5, 0.5, 0.54, 0.535]
    numbers = figures.numbers_of(figure)
    assert numbers.columns == ("epoch", "δ within ε", "δ above ε: λ rises", "δ from before training", "α = α₀ + λ", "λ")
    assert numbers.rows[1:3] == (("1", "0.05", "", "0.5", "0.5", "0"), ("2", "", "0.5", "0.5", "0.54", "0.04"))
    assert {"α 0.535", "λ 0.035"} <= {note.text for note in figure.layout.annotations}


def test_an_earlier_run_is_drawn_thin_behind_and_named_in_the_legend():
    rows = [epoch(0, 0.0, 0.0), epoch(1, 0.05, 0.0), epoch(2, 0.5, 0.04)]
    earlier = [epoch(0, 0.0, 0.0), epoch(1, 0.0, 0.0), epoch(2, 3.0, 0.2), epoch(7, 0.1, 0.3)]
    alone, both = (figures.controller_chart(rows, make_config(), below) for below in (("", ()), ("WGA", earlier)))
    drift, alpha, lam = both.data[:3]
    assert [line.name for line in both.data[:3]] == ["WGA: δ", "WGA: α", "WGA: λ"]
    assert [line.name for line in both.data if line.showlegend is not False] == ["WGA"]
    assert [list(drift.y), list(alpha.y), list(lam.y)] == [[0.0, 3.0, 0.1], [0.5, 0.5, 0.7, 0.8], [0.0, 0.0, 0.2, 0.3]]
    assert {line.line.width for line in both.data[:3]} == {1} and both.layout.yaxis.range[1] > 3
    assert [line.y for line in both.data[4:]] == [line.y for line in alone.data] and not alone.layout.showlegend
    assert both.layout.xaxis.range[1] > 7 and "WGA: λ" in figures.numbers_of(both).columns
    losses = figures.laid_over(STEPS, 4)
    assert {row["facts"] for row in losses} == {*figures.EARLIER_COLOR}
    assert losses[0]["nats"] == STEPS[0].nll_forget


def test_losses_are_smoothed_before_single_steps_and_the_gradient_s_norm_is_drawn():
    rows = [{"epoch": at / 4, "nats": float(at % 2), "facts": "rare"} for at in range(1, 17)]
    drawn = figures.smoothed_rows(rows)
    raw, smooth = drawn[:16], drawn[16:]
    assert raw == [row | {"facts": "rare, raw"} for row in rows]
    assert [(row["epoch"], row["facts"]) for row in smooth] == [(row["epoch"], "rare") for row in rows]
    assert [row["nats"] for row in smooth[:2]] == [1.0, 0.5] and {row["nats"] for row in smooth[7:]} == {0.5}
    assert list(figures.gradient_chart(STEPS, 4).data[0].y) == [step.gradient_norm for step in STEPS]


def test_losses_leave_unseen_tiers_out():
    rows = figures.loss_rows(STEPS[:1], steps_per_epoch=4)
    assert rows == [{"epoch": 0.25, "nats": 1.0, "facts": "rare"}, {"epoch": 0.25, "nats": 0.2, "facts": "retain set"}]
    steps = [replace(STEPS[0], nll_by_tier={}), *STEPS[1:]]
    assert {row["facts"] for row in figures.loss_rows(steps, 4)} == {"rare", "retain set"}
    figure = figures.loss_chart(STEPS, 4)
    drawn = sorted((x, y, trace.name) for trace in figure.data for x, y in zip(trace.x, trace.y))
    assert drawn == sorted((row["epoch"], row["nats"], row["facts"]) for row in figures.loss_rows(STEPS, 4))
    numbers = figures.numbers_of(figure)
    assert (numbers.columns, numbers.rows[0]) == (("epoch", "rare", "retain set"), ("0.25", "1", "0.2"))
    assert figures.loss_numbers(STEPS, 4) == numbers, "the live table is the drawn one's"


def measured(number, recall, *tiers):
    rows = [row("forget", form, tier, recall, facts=8) for tier in tiers for form in (DIRECT, REWORDED)]
    return Measured(run="r", epoch=number, rows=tuple(rows), full=True)


def test_the_outcome_shows_before_and_after():
    figure = figures.outcome_chart(measured(0, 1.0, "rare"), measured(5, 0.25, "rare"))
    assert [list(item.y) for item in figure.data if item.name] == [[1.0], [0.25]]
    before, after = (item.error_y for item in figure.data if item.name)
    assert before.arrayminus[0] > 0.2 and before.array[0] == 0, "eight of eight have an interval, and not above 100%"
    assert after.arrayminus[0] > 0.1 and after.visible
    for recalls, above in (((0.5, 0.75), "unlearned"), ((0.75, 0.5), "original"), ((0.5, 0.5), "original")):
        figure = figures.outcome_chart(*(measured(epoch, one, "rare") for epoch, one in zip((0, 5), recalls)))
        places = {item.name: item.textposition for item in figure.data if item.name}
        below = ({*places} - {above}).pop()
        assert places == {above: ("top center",), below: ("bottom center",)}, "the higher share is written above"


def test_the_outcome_counts_what_is_kept_as_my_runs_and_the_story_do():
    before, after = (example("adapop").measured(before=one) for one in (True, False))
    bars = {item.name: dict(zip(item.x, item.y)) for item in figures.outcome_chart(before, after).data if item.name}
    for label, group in (("retain", "retain"), ("held-out", "holdout"), ("utility", "utility")):
        assert bars["unlearned"][f"{label}<br>asked<br>directly"] == after.recall(group)
    assert bars["unlearned"]["forget<br>rare"] == after.recall("forget", "reworded", "rare")


def test_facts_without_scores_are_drawn_as_one():
    for kept, lines in ((None, ["forget set"]), (0.2, ["forget set", "retain set"])):
        steps = [replace(event, nll_forget=1.5 * event.epoch, nll_by_tier={}, nll_retain=kept) for event in STEPS]
        figure = figures.loss_chart(steps, 4)
        assert [item.name for item in figure.data if item.x] == lines
        assert list(trace(figure, "forget set").y) == [1.5] * 4 + [3.0] * 4
        assert figures.loss_numbers(steps, 4) == figures.numbers_of(figure)
    before, after = measured(0, 1.0, "all"), measured(1, 0.25, "all")
    figure = figures.recall_chart([before, after], 1)
    drawn = {item.name: list(item.y) for item in figure.data if item.name}
    assert drawn == {"forget set": [1.0, 0.25], "forget set, in other words": [1.0, 0.25]}
    assert {item.line.color for item in figure.data if item.name} == {look.UNLEARNED}
    assert figures.numbers_of(figure).columns == ("epoch", *drawn)
    outcome = [item for item in figures.outcome_chart(before, after).data if item.name]
    assert [(list(item.x), list(item.y)) for item in outcome] == [(["forget set"], [1.0]), (["forget set"], [0.25])]
    before, after = measured(0, 1.0, "all", "rare"), measured(1, 0.25, "all", "rare")
    figure = figures.recall_chart([before, after], 1)
    assert [item.name for item in figure.data if item.name] == ["rare", "rare, in other words"]
    assert {x for item in figures.outcome_chart(before, after).data for x in item.x} == {"forget<br>rare"}


def test_user_text_stays_text_and_cannot_end_a_script():
    hostile = "<img src=x onerror=alert(1)> ${1}"
    facts = [Fact("a", hostile, "a", subject=hostile, score=100.0)]
    scatter = figures.agreement_scatter(facts, {"a": 1.0}, {"a": 2.0}, ("<img src=x>", "${two}"), ["a"])
    for figure in (figures.popularity_strip(facts), scatter):
        said = figure.to_json().replace("\\u003c", "<")
        assert "&lt;img" in said and "<img" not in said, "hover labels understand some HTML"
    assert not re.search(r"<|\$\{", json.dumps(twin_of(scatter, "<b>${x}</b>")))
    hostile = outcome("</script>", "</script><img src=x>", 0.1, 0.1)
    for figure in (figures.compare_runs([hostile]), figures.forget_against_holdout([hostile])):
        html = figures.as_html(figure, library=False)
        assert html.count("</script>") == html.count("<script")
        assert "<img" not in html


def share(mean, half=0.1):
    return Interval(mean, mean - half, mean + half)


def outcome(mark, name, forget, holdout, gap=0.0, **changes):
    tiers = {"rare": share(0.2), "popular": share(0.2 + gap)}
    return figures.Outcome(mark, name, {REWORDED: tiers}, share(forget), share(holdout), **changes)


OUTCOMES = [
    outcome("1", "AdaPop", 0.2, 0.6, gap=-0.1), outcome("2", "WGA <b>", 0.3, 0.8, gap=0.4),
    outcome("3", "NPO", 0.35, 0.7, gap=0.2),
    outcome("4", "GA", 0.0, 0.0, collapsed="nothing is left"), outcome("", "original", 1.0, 0.95),
]  # fmt: skip


def test_rows_are_ordered_by_the_gap_in_a_panel_for_each_form():
    unknown = figures.Outcome("5", "unscored", {DIRECT: {}})
    assert [one.mark for one in by_gap([unknown, *OUTCOMES])] == ["", "2", "3", "4", "1", "5"]
    figure = figures.compare_runs(OUTCOMES)
    assert [name.split()[0] for name in figure.layout.yaxis.ticktext] == ["original", "2", "3", "4", "1"]
    rare, popular = (trace for trace in figure.data if trace.name in ("rare", "popular"))
    assert list(popular.x) == pytest.approx([0.2, 0.6, 0.4, 0.2, 0.1])
    assert all(above < below for above, below in zip(rare.y, popular.y))
    assert list(rare.error_x.array) == pytest.approx([0.1] * 5)
    numbers = figures.numbers_of(figure)
    assert numbers.columns == ("", "rare", "popular"), "nobody has a middle tier here"
    assert {row[0]: row[-1] for row in numbers.rows}["2 WGA <b>"] == "60% (50% to 70%)"
    probed = figures.Outcome("1", "AdaPop", {DIRECT: {"rare": share(0.2)}, ATTACKED: {"rare": share(0.5)}})
    figure = figures.compare_runs([probed, OUTCOMES[1]])
    assert [note.text for note in figure.layout.annotations if note.text != "rare"] == [*PANELS.values()]
    assert [list(trace.x) for trace in figure.data if trace.name == "rare"] == [[0.2], [0.2], [0.5]]
    assert figures.compare_runs([]).data is not None


def test_front_is_who_nobody_beats():
    assert [one.mark for one in figures.pareto_front(OUTCOMES)] == ["1", "2"]
    assert beats(OUTCOMES[1], OUTCOMES[2]) and not beats(OUTCOMES[0], OUTCOMES[1])
    twins = [outcome("1", "a", 0.2, 0.6), outcome("2", "b", 0.2, 0.6)]
    assert figures.pareto_front(twins) == twins, "equals do not beat each other"
    assert figures.pareto_front([OUTCOMES[3], OUTCOMES[4], figures.Outcome("9", "unmeasured")]) == []
    idle = [outcome("1", "AdaPop", 0.95, 0.9), outcome("2", "WGA", 0.85, 0.95)]
    assert no_contest([*idle, OUTCOMES[4]])
    assert not no_contest(idle), "nobody knows, for the original was not measured"


def test_scatter_draws_the_front():
    figure = figures.forget_against_holdout(OUTCOMES, "in other words")
    drawn = {trace.name: trace for trace in figure.data if trace.name}
    assert list(drawn) == ["Pareto front", "original", "on the front", "behind it", "collapsed"]
    assert (list(drawn["Pareto front"].x), list(drawn["Pareto front"].y)) == ([0.2, 0.3], [0.6, 0.8])
    assert drawn["Pareto front"].line.shape == "hv" and "in other words" in figure.layout.xaxis.title.text
    assert {note.text for note in figure.layout.annotations} >= {"AdaPop", "WGA &lt;b&gt;", "NPO", "GA"}
    assert list(drawn["behind it"].error_y.array) == pytest.approx([0.1])
    figure = figures.forget_against_holdout([outcome("1", "AdaPop", 0.02, 0.99), outcome("2", "NPO", 0.9, 0.97)])
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        # better is up and right, so that less of the forget set is to the right
        assert figure.layout.xaxis.range[0] > figure.layout.xaxis.range[1]
        assert len(axis.tickvals) > 2 and min(axis.tickvals) >= 0 and max(axis.tickvals) <= 1 < max(axis.range)
    assert not figures.forget_against_holdout([figures.Outcome("1", "unmeasured", forget=share(0.2))]).data


def test_published_numbers_are_labelled_as_such():
    figure = figures.published_recalls([("WGA", 0.3, 0.9), ("AdaPop", 0.1, 0.8)], "Llama, DUET")
    assert re.fullmatch("published, not measured .*<br>Llama, DUET", figure.layout.xaxis.title.text)
    forget, retain = (trace for trace in figure.data if trace.mode == "markers")
    assert (list(forget.x), list(retain.x)) == ([0.1, 0.3], [0.8, 0.9])


@pytest.fixture(scope="module")
def matrix():
    """Two rare facts and a popular one; the original cannot play a role for the rare ones."""
    return leak_matrix(
        [
            *(probed(fact, 1.0, after) for fact, after in (("a", 0.0), ("b", 0.5))),
            probed("c", 1.0, 1.0, tier="popular"),
            *(probed(fact, 0.3, 0.0, ROLE) for fact in ("a", "b")),
            probed("c", 0.9, 0.8, ROLE, tier="popular"),
            *(probed(fact, 1.0, 0.0, CHOICE, chance=0.25) for fact in ("a", "b")),
        ]
    )


def values(figure):
    """What each cell of the two panels shows, by panel, row and column; a measurable cell before a grey one."""
    cells = {}
    for place, trace in enumerate(figure.data):
        side = "original" if place < 2 else "unlearned"
        for kind, numbers, texts in zip(trace.y, trace.z, trace.text):
            for tier, number, text in zip(trace.x, numbers, texts):
                if number is not None:
                    cells[side, kind, tier] = (round(number, 3), text, place % 2 == 0)
    return cells


def test_heatmap_prints_each_recall_or_says_why_not(matrix):
    figure = figures.leak_heatmap(matrix, "forget")
    cells = values(figure)
    assert cells["unlearned", "as trained", "rare"] == (0.25, "25", True)
    assert cells["unlearned", "as trained", "all"] == (0.5, "50", True)
    assert cells["original", "as an expert", "popular"] == (0.9, "90", True)
    assert len(cells) == 2 * (3 + 3 + 2), "nobody asked the popular fact a multiple choice"
    assert cells["original", "as an expert", "rare"] == (0.3, "30", False)
    assert cells["unlearned", "as an expert", "rare"] == (0.0, "–", False)
    (grey,) = {color for _, color in figure.data[3].colorscale}
    assert re.fullmatch(r"#(..)\1\1", grey)
    hover_texts = [text for trace in figure.data for line in trace.customdata for text in line if text]
    assert any("multiple choice, rare" in text and "a blind guess: 25%" in text for text in hover_texts)
    assert any("as an expert (role playing), rare</b>: 2 facts" in text and "below 0.8" in text for text in hover_texts)
    for draw in (figures.leak_heatmap, figures.recall_by_kind):
        assert draw(matrix, "holdout").layout.annotations[0].text == NOTHING


def test_tiers_have_columns_and_gaps(matrix):
    assert tuple(figures.leak_heatmap(matrix, "forget").data[0].x) == ("rare", "popular", "all")
    unscored = leak_matrix([probed("u", 1.0, 0.0, tier="unknown")])
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
    assert {rule.name for rule in RULES} == {*VERDICT_COLOR}
    assert len({*VERDICT_COLOR.values()}) == len(VERDICT_COLOR)


def test_large_scores_are_written_out_and_the_worst_disagreements_are_always_drawn():
    facts = [Fact(f"f{i}", f"Who {i}?", "a", score=1_000_007.0) for i in range(4_000)]
    worst = [fact.id for fact in facts[1:40:8]]
    scores = {fact.id: fact.score for fact in facts}
    scatter = figures.agreement_scatter(facts, scores, scores, ("one", "two"), [*worst, *scores])
    drawn = {text for trace in scatter.data for text in trace.text if text}
    assert len(drawn) == len(worst) and sum(len(trace.x) for trace in scatter.data) <= 1_500 + len(worst)
    assert scatter.data[1].customdata[0][1] == "1,000,007"
    assert figures.numbers_of(figures.popularity_strip(facts[:1])).rows == (("1,000,000 to 1,333,521", "1"),)


def test_runs_of_one_method_are_told_apart_in_titles():
    two = [outcome("1", "AdaPop", 0.1, 0.5), outcome("2", "AdaPop", 0.4, 0.9)]
    assert [one.name_among(two) for one in two] == ["1 AdaPop", "2 AdaPop"]
    assert two[0].name_among([two[0], outcome("2", "WGA", 0.4, 0.9)]) == "AdaPop"
