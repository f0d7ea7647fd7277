import math

import pytest

from adapop.config.methods import METHODS
from adapop.config.presets import PEOPLE_RATES, RATES, SANDBOX_RATES
from adapop.experiments import pictures, sweep, tables
from adapop.experiments.results import EPOCHS
from adapop.experiments.sweep import KEPT, TRAINED, chosen, crossing
from adapop.probes.distance import AS_NEVER_LEARNT
from adapop.probes.intervals import Interval, paired, summary
from adapop.report.figures import numbers_of
from adapop.report.figures.experiments import difference_panels, front_panels, line_panels
from adapop.report.figures.outcomes import Outcome
from bench_rows import SEEN, cells, recalls, row


def test_summary_by_hand():
    stats = summary([0.4, 0.6, 0.5])
    half = 4.303 * 0.1 / math.sqrt(3)
    assert (stats.mean, stats.sd, stats.low, stats.high) == pytest.approx((0.5, 0.1, 0.5 - half, 0.5 + half))
    assert (str(stats), stats.interval) == ("0.50 ± 0.10", "+0.50 (+0.25 to +0.75)")
    assert stats.ranged == "0.50 (0.25 to 0.75)" and stats.within(0.3, 0.7) == Interval(0.5, 0.3, 0.7)
    alone = summary([0.25])
    assert (str(alone), alone.low, alone.ranged, alone.within()) == ("0.25", None, "0.25", Interval(0.25, 0.25, 0.25))
    assert summary([]) is None
    difference = paired({0: 1.0, 1: 3.0, 5: 9.0}, {1: 2.5, 0: 0.5, 7: 4.0})
    assert (difference.mean, difference.sd, difference.seeds) == (0.5, 0.0, 2), "paired by seed"
    assert paired({0: 1.0}, {1: 1.0}) is None


def test_outcomes_and_differences():
    table = tables.outcome_table(SEEN)
    assert cells(table, "AdaPop") == {
        "": "AdaPop", "rate": "0.002", "rare": "0.50 ± 0.10", "middle": "0.45 ± 0.10", "popular": "0.40 ± 0.17",
        "all": "0.45 ± 0.10", "gap": "-0.10 ± 0.20", "retain": "1.00 ± 0.00", "holdout": "0.80 ± 0.10",
        "holdout, reworded": "", "utility": "0.90 ± 0.00", "seeds": "3"}  # fmt: skip
    wga = cells(table, "WGA")
    assert (wga["rare"], wga["seeds"]) == ("0.15 ± 0.07", "2 of 3"), "a failed run has no recall, and is said"
    assert cells(tables.cost_table(SEEN), "WGA")["failed because"] == "The loss is not finite."
    table = tables.difference_table(SEEN, "AdaPop")
    assert [line[0] for line in table.rows] == ["WGA"]
    # seeds 0 and 1: holdout +0.2 both; rare -0.3 and -0.4, sd 0.0707, t of one degree 12.706 -> ± 0.635
    assert cells(table, "WGA")["holdout"] == "+0.20 (+0.20 to +0.20)"
    assert cells(table, "WGA")["rare"] == "-0.35 (-0.99 to +0.29)"
    assert cells(table, "WGA")["pairs"] == "2 of 3", "seed 2 failed for one of them and is no pair"
    assert tables.difference_table({"WGA": SEEN["WGA"]}, "AdaPop") is None
    figure = pictures.differences("AdaPop")(SEEN)
    assert [(trace.name, trace.x[0]) for trace in figure.data] == [
        ("rare", pytest.approx(-0.35)), ("popular", pytest.approx(0.35)), ("holdout", pytest.approx(0.2))]  # fmt: skip


def test_controller_table_counts_the_runs_in_which_lambda_moved():
    dual = [row(seed, lam=[0, 0, moved, moved], drift=[0, 0, 0.3, 0.2], alpha=[0.5, 0.5, 0.5 + moved, 0.7]) for seed,
            moved in ((0, 0.0), (1, 0.1))]  # fmt: skip
    fixed = [row(0, config='{"controller": "fixed"}', lam=[0, 0], drift=[0, 0], alpha=[1, 1])]
    broken = row(2, failed="The loss is not finite.", lam=[0], drift=[0], alpha=[0.5])
    still = [row(0, "pdu", lam=[1, 1, 1], drift=[0, 0, 0], alpha=[1, 1, 1])]
    table = tables.controller_table({"AdaPop": [*dual, broken], "WGA": fixed, "PDU": still})
    assert table.rows[0] == ("AdaPop", "1 of 2", "0.30 ± 0.00", "0.55 ± 0.07", "2 of 3")
    assert [line[:2] for line in table.rows[1:]] == [("PDU", "0 of 1")]


def test_an_arm_all_of_whose_runs_failed_keeps_its_row_in_every_table():
    fine = {name: [1.0, 0.5] for name in (*EPOCHS, "lam", "alpha", "drift")}
    fine |= {"levels": [70.0], "levels_reworded": [1]}
    arms = {
        "AdaPop": [row(0, **recalls(0.4, 0.5, 0.8, **fine), forget_direct_all=0.3)],
        "WGA": [row(seed, "wga", "The loss is not finite.", config='{"controller": "dual"}') for seed in range(3)],
    }
    made = [
        tables.outcome_table, tables.world_table, tables.internal_table, tables.controller_table, tables.cost_table,
        tables.published_table, tables.level_table, tables.epoch_table]  # fmt: skip
    for make in made:
        table = make(arms)
        assert all(len(line) == len(table.head) for line in table.rows), table.title
        assert cells(table, "WGA")["seeds"] == "0 of 3", table.title
    assert cells(tables.difference_table(arms, "AdaPop"), "WGA")["pairs"] == "0 of 3"
    assert cells(tables.cost_table(arms), "WGA")["seconds"] == "", "how long a failure took is no cost of the method"


def test_published_table_puts_the_papers_numbers_beside_ours():
    arms = {"adapop": "AdaPop"} | {name: METHODS[name].title for name in METHODS if name != "adapop"}
    cell = {"forget_direct_all": 0.3}
    rows = {title: [row(0, name, **recalls(0.4, 0.5, 0.8, **cell))] for name, title in arms.items()}
    table = tables.published_table(rows)
    assert len(table.rows) == 16, "every method of the paper's"
    adapop, ceu = (cells(table, arms[name]) for name in ("adapop", "ceu"))
    assert (adapop["forget"], adapop["forget (paper)"], adapop["retain (paper)"]) == ("0.30", "0.043", "0.959")
    tiers = "reworded, rare / popular (paper)"
    assert (adapop[tiers], ceu[tiers], ceu["forget (paper)"]) == ("0.049 / 0.040", "not given", "0.000")


def test_the_rule_for_rates():
    for points, rate in (
        ([(1, 0.9, 1.0), (2, 0.3, 0.96), (3, 0.1, 0.95)], 2),  # the lowest that forgets enough and keeps
        ([(1, 0.9, 1.0), (2, 0.3, 0.94), (3, 0.4, 0.95)], 3),  # keeps, and forgets most of those that keep
        ([(1, 0.9, 0.5), (2, 0.3, 0.6), (3, 0.1, 0.4)], 2),  # none keeps: the one that keeps most
    ):
        assert chosen([{"rate": at, TRAINED: forget, KEPT: retain} for at, forget, retain in points])["rate"] == rate


def swept(method, seed, *points):
    """Rows of a method over rates: (rate, trained forget recall, holdout)."""
    return {
        f"{method} at {rate:g}": [row(seed, method, **recalls(0.2, 0.6, holdout, forget_direct_all=forget, rate=rate))]
        for rate, forget, holdout in points
    }


def test_matched_forgetting_by_hand(monkeypatch):
    monkeypatch.setattr(sweep, "RATES", (1e-3, 2e-3, 4e-3))
    found = swept("wga", 0, (1e-3, 0.8, 1.0), (2e-3, 0.4, 0.9), (4e-3, 0.0, 0.5))
    points = sweep.points_of(found, "wga")[0]
    assert crossing(points, 0.3)["holdout"] == pytest.approx(0.8)  # a quarter of the way from 0.9 to 0.5
    assert crossing(points, 0.4)["holdout"] == pytest.approx(0.9)
    assert crossing(points, 0.9) is None, "even the gentlest rate forgets more"
    own = SANDBOX_RATES["adapop"]
    arms = swept("adapop", 0, (own, 0.3, 0.7)) | swept("wga", 0, (1e-3, 0.8, 1.0), (2e-3, 0.4, 0.9), (4e-3, 0.0, 0.5))
    equal, nearest = sweep.equal_table(arms), sweep.nearest_table(arms)
    assert cells(equal, "WGA") == {
        "": "WGA", "rare": "0.20", "popular": "0.60", "gap": "0.40", "retain": "1.00", "holdout": "0.80",
        "utility": "0.90", "seeds": "1"}  # fmt: skip
    assert cells(equal, "AdaPop")["seeds"] == "0 of 1", "a single rate crosses nothing"
    arms["wga at 0.002"][0]["forget_reworded_popular"] = None  # where only some tiers have rewordings
    assert [cells(sweep.equal_table(arms), "WGA")[name] for name in ("rare", "popular", "gap")] == ["0.20", "", ""]
    del arms["wga at 0.002"]
    assert cells(sweep.equal_table(arms), "WGA")["seeds"] == "0 of 1", "no crossing between rates that are far apart"
    assert (cells(nearest, "WGA")["rate"], cells(nearest, "WGA")["holdout"]) == ("0.002", "0.90")


def test_part_of_a_sweep_decides_nothing_and_each_seed_s_choice_is_told(monkeypatch):
    arms = swept("wga", 0, *((rate, 0.5, 0.9) for rate in RATES[:-1]))
    assert sweep.points_of(arms, "wga") == {} and sweep.choice_table(arms).rows == ()
    arms |= swept("wga", 0, (RATES[-1], 0.1, 0.9))
    assert len(sweep.points_of(arms, "wga")[0]) == len(RATES)
    arms[f"wga at {RATES[0]:g}"][0]["failed"] = "not finite"
    assert len(sweep.points_of(arms, "wga")[0]) == len(RATES) - 1, "a failed run is a result"
    assert cells(sweep.choice_table(arms), "WGA")["seed 0"] == f"{RATES[-1]:g} (of 4)"
    for rows in arms.values():
        rows[0]["failed"] = "not finite"
    assert cells(sweep.choice_table(arms), "WGA")["seed 0"] == "all failed"
    assert sweep.equal_table(arms).rows == sweep.nearest_table(arms).rows == ()
    monkeypatch.setattr(sweep, "RATES", (1e-3, 2e-3))
    arms = swept("wga", 0, (1e-3, 0.8, 1.0), (2e-3, 0.3, 0.9))
    for title, rows in swept("wga", 1, (1e-3, 0.3, 1.0), (2e-3, 0.1, 0.9)).items():
        arms[title] += rows
    table = sweep.choice_table(arms)
    choice = cells(table, "WGA")
    assert (choice["seed 0"], choice["seed 1"], choice["on the means"]) == ("0.002", "0.001", "0.002")
    assert (choice["keeps"], choice["erases"]) == ("yes", "yes")
    assert choice["used"] == f"{SANDBOX_RATES['wga']:g}"
    for rows in arms.values():
        rows[:] = [one | {"config": '{"model": "people"}'} for one in rows]
    assert cells(sweep.choice_table(arms), "WGA")["used"] == f"{PEOPLE_RATES['wga']:g}" != choice["used"]


def test_the_rate_that_each_tier_needs():
    """Half is gone at the geometric mean of two rates where recall falls alike below and above one half."""
    rates = (2.5e-4, 1e-3, 4e-3)
    arms = {
        f"wga at {rate:g}": [row(0, "wga", **recalls(rare, popular, 1.0), forget_direct_all=rare) | {"rate": rate}]
        for rate, rare, popular in zip(rates, (0.8, 0.2, 0.0), (1.0, 0.8, 0.2))
    }
    points = [rows[0] for rows in arms.values()]
    assert sweep.rate_at(points, tables.OUTCOMES["rare"]) == pytest.approx(5e-4)
    assert sweep.rate_at(points, tables.OUTCOMES["popular"]) == pytest.approx(2e-3)
    assert sweep.rate_at(points, tables.OUTCOMES["holdout"]) is None, "it never falls so far"
    assert sweep.rate_at(points[1:], tables.OUTCOMES["rare"]) == 1e-3, "gone at the first rate already"
    assert sweep.tier_table(arms).rows == (), "part of a sweep says nothing"
    other = {title: [one | {"rate": one["rate"] * 0.01} for one in rows] for title, rows in arms.items()}
    needed = cells(sweep.tier_table(other), "WGA")  # no rate of the sandbox's: the grid is what was run
    assert (needed["rare"], needed["popular"]) == ("5e-06 (1 of 1)", "2e-05 (1 of 1)")
    assert needed["popular / rare"] == "4.00"


def test_levels_and_epochs():
    epochs = {name: [1.0, 0.5] for name in EPOCHS} | {"lam": [0.0, 0.25]}
    arms = {
        "AdaPop": [
            row(0, levels=[70.0, 3766.0], levels_reworded=[0.2, 0.6], levels_direct=[0.1, 0.3], **epochs),
            row(1, levels=[70.0, 3766.0], levels_reworded=[0.4, 0.8], levels_direct=[0.1, 0.3], **epochs),
            row(2, failed="gone", levels=[]),
        ]
    }
    assert tables.level_table(arms).rows == (("AdaPop", "0.30 ± 0.14", "0.70 ± 0.14", "2 of 3"),)
    assert tables.level_table(arms).head == ("", "70", "3766", "seeds")
    table = tables.epoch_table(arms)
    assert table.head == ("", "", "epoch 0", "epoch 1", "seeds")
    assert table.rows[1] == ("AdaPop", "popular", "1.00 ± 0.00", "0.50 ± 0.00", "2 of 3")
    assert table.rows[2] == ("AdaPop", "λ", "0.00 ± 0.00", "0.25 ± 0.00", "2 of 3")
    figure = pictures.levels(arms)
    reworded = next(trace for trace in figure.data if trace.name == "in other words")
    assert (list(reworded.x), list(reworded.y)) == ([70.0, 3766.0], pytest.approx([0.3, 0.7]))
    assert list(reworded.error_y.array) == pytest.approx([0.7, 0.3]), "two seeds: cut where recall ends"


def test_rate_figure_has_a_panel_a_method_and_a_point_a_rate():
    arms = swept("wga", 0, (1e-3, 0.8, 1.0), (2e-3, 0.4, 0.9)) | swept("gd", 0, (RATES[0], 1.0, 1.0))
    figure = pictures.rates(arms)
    assert [note.text for note in figure.layout.annotations] == ["wga", "gd"]
    assert [list(trace.y) for trace in figure.data if trace.name == "holdout"] == [[1.0, 0.9], [1.0]]
    assert {axis.type for axis in figure.select_xaxes()} == {"log"}
    tiers = pictures.rates_by_tier(arms)
    assert [(one.name, list(one.y)) for one in tiers.data[:3:2]] == [("rare", [0.2, 0.2]), ("popular", [0.6, 0.6])]
    # The usual rate has no rate in its title, and comes first in the plan.
    usual = row(0, **recalls(0.2, 0.6, 0.9)) | {"rate": 2e-3, "retain_direct_all": 0.95}
    arms = {"AdaPop, α fixed": [usual], **swept("AdaPop, α fixed", 0, (1e-3, 0.8, 1.0)), "AdaPop": [usual]}
    figure = pictures.arms_over_rates(arms)
    assert [note.text for note in figure.layout.annotations] == ["AdaPop, α fixed", "AdaPop"]
    lines = {one.name: (list(one.x), list(one.y)) for one in figure.data[:5]}
    assert lines["holdout"] == ([1e-3, 2e-3], [1.0, 0.9]) and lines["popular"] == ([1e-3, 2e-3], [0.6, 0.6])
    assert sorted(label.text for label in pictures.cost(SEEN).layout.annotations) == ["AdaPop", "WGA"]


def test_figures_escape_names_and_bear_empty_data():
    hostile = "<img src=x onerror=alert(1)>"
    point = [(1.0, Interval(0.5, 0.4, 0.6))]
    share, one = point[0][1], Interval(0.1, 0.0, 0.2)
    for figure in (
        line_panels({hostile: {"rare": point}}, "x", "y"), difference_panels({"rare": [(hostile, one)]}, hostile),
        front_panels({hostile: [Outcome("A", hostile, {}, share, share)]}, "x", "y"), line_panels({}, "x", "y"),
        difference_panels({}, "AdaPop"), pictures.tiers({}), pictures.rates({})):  # fmt: skip
        assert "<img" not in figure.to_json()
    assert "<script>" not in pictures.page(hostile, []) and "<img" not in pictures.page(hostile, [])


def test_numbers_of_panels_stay_apart():
    share = Interval(0.5, 0.4, 0.6)
    figure = line_panels({"WGA": {"rare": [(1.0, share)]}, "NPO": {"rare": [(1.0, share)]}}, "rate", "left")
    assert [row[:2] for row in numbers_of(figure).rows] == [("NPO", "1"), ("WGA", "1")]
    front = front_panels({"test": [Outcome("A", "WGA", {}, share, share)]}, "x", "y")
    assert "<details>" in pictures.page("x", [figure]) and "<details>" not in pictures.page("x", [front])


def test_who_comes_nearest_to_never_having_learnt_stands_first():
    assert tables.oracle_table(SEEN) is None, "rows from before there was an oracle"

    def near(share):
        epochs = [0.0, share + 0.1, share]
        cells = {"oracle_as_never_all": share, "oracle_epochs_as_never_all": epochs, "lam": epochs}
        return [row(0, **cells, oracle_over_rare=0.25, forget_quality_log10=-3.0), row(1)]

    table = tables.oracle_table({**SEEN, "TPO": near(0.5), "NPO": near(0.75)})
    assert [line[0] for line in table.rows] == ["NPO", "TPO"]
    tpo = cells(table, "TPO")
    assert (tpo[AS_NEVER_LEARNT], tpo["over-forgotten, rare"]) == ("0.50", "0.25")
    assert (tpo["at its nearest"], tpo["epoch"]) == ("0.60", "1 of 2"), "a row without the distance is left out"
    assert (tpo["log₁₀ forget quality"], tpo["KL, forget"], tpo["seeds"]) == ("-3.00", "", "1")


def test_tables_are_of_the_test_half_where_a_row_has_one():
    halved = row(0, **recalls(0.4, 0.5, 0.8), test_forget_reworded_rare=0.1, test_holdout_direct_all=0.7)
    halved["validation_forget_reworded_rare"] = 0.9
    of_a = cells(tables.outcome_table({"A": [halved]}), "A")
    assert (of_a["rare"], of_a["popular"], of_a["holdout"], of_a["gap"]) == ("0.10", "0.50", "0.70", "0.40")
