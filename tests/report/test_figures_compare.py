import pytest

from adapop.probes.intervals import Interval
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.report import figures
from adapop.report.figures.outcomes import ATTACKED, beats, by_gap, no_contest


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
    assert {row[0]: row[-1] for row in numbers.rows}["2 WGA <b>"] == "60 % (50 % to 70 %)"
    probed = figures.Outcome("1", "AdaPop", {DIRECT: {"rare": share(0.2)}, ATTACKED: {"rare": share(0.5)}})
    figure = figures.compare_runs([probed, OUTCOMES[1]])
    titles = [note.text for note in figure.layout.annotations if note.text != "rare"]
    assert titles == ["asked as trained", "asked in other words", "under the worst attack"]
    assert [list(trace.x) for trace in figure.data if trace.name == "rare"] == [[0.2], [0.2], [0.5]]
    assert figures.compare_runs([]).data is not None


def test_front_is_who_nobody_beats():
    assert [one.mark for one in figures.pareto_front(OUTCOMES)] == ["1", "2"]
    assert beats(OUTCOMES[1], OUTCOMES[2]) and not beats(OUTCOMES[0], OUTCOMES[1])
    twins = [outcome("1", "a", 0.2, 0.6), outcome("2", "b", 0.2, 0.6)]
    assert figures.pareto_front(twins) == twins, "equals do not beat each other"
    assert figures.pareto_front([OUTCOMES[3], OUTCOMES[4], figures.Outcome("9", "unmeasured")]) == []
    idle = [outcome("1", "AdaPop", 0.95, 0.9), outcome("2", "WGA", 0.85, 0.95)]
    said = figures.finding_of(figures.forget_against_holdout([*idle, OUTCOMES[4]]))
    assert said == "Nothing was forgotten beyond chance: there is no contest yet"
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
        assert len(axis.tickvals) > 2 and min(axis.tickvals) >= 0 and max(axis.tickvals) <= 1 < axis.range[1]
    assert not figures.forget_against_holdout([figures.Outcome("1", "unmeasured", forget=share(0.2))]).data


def test_published_numbers_are_labelled_as_such():
    figure = figures.published_recalls([("WGA", 0.3, 0.9), ("AdaPop", 0.1, 0.8)], "Llama, DUET")
    assert figure.layout.xaxis.title.text == "published, not measured here:<br>Llama, DUET"
    forget, retain = (trace for trace in figure.data if trace.mode == "markers")
    assert (list(forget.x), list(retain.x)) == ([0.1, 0.3], [0.8, 0.9])


def test_text_of_a_figure_cannot_end_its_script():
    hostile = outcome("</script>", "</script><img src=x>", 0.1, 0.1)
    for figure in (figures.compare_runs([hostile]), figures.forget_against_holdout([hostile])):
        html = figures.as_html(figure, library=False)
        assert html.count("</script>") == html.count("<script")
        assert "<img" not in html
