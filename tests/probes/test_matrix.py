import numpy as np
import pytest

from adapop.probes.intervals import RESAMPLES, Interval, bootstrap, of_facts, wilson
from adapop.probes.matrix import MEASURABLE, LeakMatrix, NotAsked, leak_matrix
from adapop.probes.prompts import CHOICE, DIRECT, REWORDED, NotApplicable
from adapop.report.tables import leak_table
from adapop.sandbox import pretrain
from adapop.ui.probe.leaks import leak_lines, second_guess_line
from records import probed as row
from records import reply


def test_one_cell_by_hand():
    rows = [
        row("a", reply(1.0, 2, 0.0, 0.9, -0.5), reply(0.0, 0, 0.0, 0.1, -4.5), delta_rank=10, hidden_cosine=0.5, kl=2),
        row("b", reply(1.0, 4, 0.5, 0.7, -1.5), reply(1.0, 8, 1.0, 0.5, -2.5), delta_rank=2, hidden_cosine=0.9, kl=1),
    ]
    cell = leak_matrix(rows).cell("forget", "all", DIRECT)
    before, after = cell.original, cell.unlearned
    assert (cell.facts, cell.chance, cell.measurable, cell.reason) == (2, 0, True, "")
    assert (before.recall, after.recall) == (wilson(1.0, 2), wilson(0.5, 2))
    assert (before.words, before.empty, before.repetition, before.cosine) == (3, 0, 0.25, pytest.approx(0.8))
    assert (after.words, after.empty, after.repetition, after.cosine) == (4, 0.5, 0.5, pytest.approx(0.3))
    assert (cell.delta_logprob, cell.delta_rank) == (-2.5, 6)
    assert (cell.hidden_cosine, cell.kl) == (pytest.approx(0.7), 1.5)
    assert before.above_chance == 1 and after.above_chance == 0.5
    rows = [row("a", 1.0, 0.0, REWORDED)] * 3 + [row("a", 1.0, 1.0, REWORDED), row("b", 1.0, 1.0, REWORDED)]
    cell = leak_matrix(rows).cell("forget", "all", REWORDED)
    assert (cell.facts, cell.unlearned.recall.mean) == (2, (0.25 + 1) / 2)


def test_the_second_guess_is_the_mean_over_facts_and_missing_is_not_zero():
    before = reply(1.0, near=True, relation_rank=1)
    rows = [
        row("a", before, reply(0.0, near=near, relation_rank=rank), REWORDED) for near, rank in ((True, 2), (False, 6))
    ]
    rows.append(row("b", before, reply(0.0, near=True, relation_rank=2), REWORDED))
    cell = leak_matrix(rows).cell("forget", "all", REWORDED)
    assert (cell.original.near, cell.unlearned.near) == (1.0, 0.75)
    assert (cell.original.relation_rank, cell.unlearned.relation_rank) == (1.0, 3.0), "(4 + 2) / 2"
    assert "75%, rank 3.0" in str(leak_table(leak_matrix(rows), {"all": ("forget", "all")}).rows)
    assert second_guess_line(cell) in leak_lines(leak_matrix(rows), "forget")
    half = leak_matrix([*rows, row("c", 1.0, 0.5)])
    of_run, of_pair = (leak_lines(half, "forget", pair)[0] for pair in (False, True))
    assert of_run.endswith("; as trained 50%.") and of_pair.endswith("; asked directly 50%."), (of_run, of_pair)
    assert "75% of" in second_guess_line(cell) and "to such questions is 3.0" in second_guess_line(cell)
    unranked = leak_matrix([*rows, row("c", before, reply(0.0, near=False), REWORDED)])
    assert "the top 2: 50%\n" in str(leak_table(unranked, {"all": ("forget", "all")}).rows[0][1]) + "\n"
    older = leak_matrix([*rows, row("c", 1.0, 0.0, REWORDED)])
    assert older.cell("forget", "all", REWORDED).unlearned.near is None
    assert "top 2" not in str(leak_table(older, {"all": ("forget", "all")}).rows)


def test_tiers_groups_and_their_order():
    rows = [
        row("a", 1.0, 0.0), row("b", 1.0, 1.0, score=4000.0, tier="popular"),
        row("c", 1.0, 0.5, score=None, tier="unknown"), row("d", 0.0, 0.0, group="holdout")]  # fmt: skip
    matrix = leak_matrix(rows)
    cells = {(cell.group, cell.tier): (cell.facts, cell.unlearned.recall.mean) for cell in matrix.cells}
    assert cells == {
        ("forget", "all"): (3, 0.5), ("forget", "rare"): (1, 0), ("forget", "popular"): (1, 1),
        ("forget", "unknown"): (1, 0.5), ("holdout", "all"): (1, 0), ("holdout", "rare"): (1, 0)}  # fmt: skip
    assert matrix.cell("forget", "middle", DIRECT) is matrix.cell("retain", "all", DIRECT) is None
    rows = [
        row("famous", 1.0, 1.0, score=900.0, tier="middle"), row("unknown", 1.0, 1.0, score=None, tier="unknown"),
        row("rare", 1.0, 0.0), row("rare", 1.0, 1.0, REWORDED), row("rare", 0.5, 0.0, REWORDED),
        row("held", 1.0, 1.0, group="holdout")]  # fmt: skip
    facts = leak_matrix(rows).facts
    assert [(fact.fact_id, fact.group) for fact in facts] == [
        ("rare", "forget"), ("famous", "forget"), ("unknown", "forget"), ("held", "holdout")
    ]  # fmt: skip
    assert facts[0].original == {DIRECT: 1, REWORDED: 0.75} and facts[0].unlearned == {DIRECT: 0, REWORDED: 0.5}
    assert (facts[2].tier, facts[2].score) == ("unknown", None)


def test_verdicts_count_facts_and_not_the_set_s_own_attacks():
    attacks = [row(name, 1.0, 0.0, "role playing", tier="unknown") for name in "ab"]
    named = dict.fromkeys(("a", "b", "f"), "Not forgotten")
    both = leak_matrix([*attacks, row("f", 1.0, 1.0)]).verdicts_by_tier(named, "forget")
    assert both == {"rare": {"Not forgotten": 1}}
    assert leak_matrix(attacks).verdicts_by_tier(named, "forget") == {"unknown": {"Not forgotten": 2}}


def test_measurable_is_what_the_original_answers_beyond_guessing():
    assert MEASURABLE == pretrain.MEASURABLE
    enough, too_little = ([row(f"f{i}", float(i < known), 0.0) for i in range(10)] for known in (8, 7))
    whole = leak_matrix(enough).cell("forget", "all", DIRECT)
    assert (whole.measurable, whole.facts, whole.asked, whole.original.recall.mean) == (True, 10, 10, 0.8)
    part = leak_matrix(too_little).cell("forget", "all", DIRECT)
    assert (part.measurable, part.facts, part.asked, part.original.recall.mean) == (True, 7, 10, 1)
    rows = [row(f"f{i}", float(i < 4), float(i in (0, 9))) for i in range(10)]
    cell = leak_matrix(rows).cell("forget", "all", DIRECT)
    assert cell.measurable and (cell.facts, cell.asked) == (4, 10)
    assert cell.unlearned.recall == wilson(0.25, 4), "what the original did not answer cannot have leaked"
    few = leak_matrix([row(f"f{i}", float(i < 2), 0.0) for i in range(10)]).cell("forget", "all", DIRECT)
    assert (few.measurable, few.facts) == (False, 10)
    assert "0.200, below 0.8" in few.reason and "2 of 10" in few.reason
    guessed = [row(f"f{i}", float(i < 4), 0.0, CHOICE, chance=0.25) for i in range(10)]
    cell = leak_matrix(guessed).cell("forget", "all", CHOICE)
    assert (cell.measurable, cell.facts) == (False, 10) and "guessed" in cell.reason
    for recall, share in {1.0: 1, 0.25: 0, 0.625: 0.5, 0.0: -1 / 3}.items():
        cell = leak_matrix([row("a", 1.0, recall, CHOICE, chance=0.25)]).cell("forget", "all", CHOICE)
        assert (cell.chance, cell.unlearned.above_chance) == (0.25, pytest.approx(share))


def test_what_is_missing_is_not_zero():
    rows = [row("a", reply(1.0, cosine=0.5), 0.0), row("b", reply(1.0, cosine=0.0), 0.0)]
    cell = leak_matrix(rows).cell("forget", "all", DIRECT)
    assert (cell.original.cosine, cell.unlearned.cosine) == (0.25, None)
    skipped = [NotApplicable(name, "reverse query", "shared") for name in ("a", "b", "b")]
    matrix = leak_matrix([NotApplicable("a", REWORDED, "none"), *skipped])
    assert matrix == LeakMatrix((), (), (NotAsked("reverse query", "shared", 2), NotAsked(REWORDED, "none", 1)))
    assert leak_matrix([]) == LeakMatrix((), (), ())


@pytest.mark.parametrize(("said", "asked"), [(0, 8), (1, 16), (5, 16), (40, 70), (16, 16), (300, 1_000)])
def test_a_share_s_interval_is_that_of_statsmodels(said, asked):
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    own = wilson(said / asked, asked)
    expected = proportion.proportion_confint(said, asked, alpha=0.05, method="wilson")
    assert (own.low, own.high) == pytest.approx(expected, abs=1e-4)


def test_intervals_narrow_with_more_facts_and_are_those_of_drawing_one_by_one():
    for value, count in ((0.0, 1), (0.25, 7), (1.0, 1000)):
        assert bootstrap([value] * count) == Interval(value, value, value), "facts that are all alike have a point"
    # Resamples of {0, 1} have means 0, 1/2 and 1 with probabilities 1/4, 1/2, 1/4.
    assert bootstrap([0.0, 1.0]) == Interval(0.5, 0.0, 1.0)
    none, every, alike = (of_facts([value] * 8) for value in (0.0, 1.0, 0.5))
    assert (none.low, none.high) == (0.0, pytest.approx(0.324, abs=1e-3))  # Wilson's, computed by hand
    assert every.low == pytest.approx(1 - none.high)
    assert alike.low < 0.5 < alike.high
    partly = [0.0, 0.5, 1.0]
    assert of_facts(partly) == bootstrap(partly)
    values = [place**0.5 for place in range(25)]
    assert bootstrap(values) == bootstrap(values[::-1])
    few, many = (bootstrap([0.0, 1.0] * count) for count in (10, 1000))
    assert many.high - many.low < (few.high - few.low) / 5
    values = [0.0] * 14 + [1 / 3] * 6 + [0.5] * 3 + [1.0] * 17
    interval = bootstrap(values)
    draws = np.random.default_rng(1).choice(values, size=(20 * RESAMPLES, len(values))).mean(1)
    assert (interval.low, interval.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])), abs=0.02)
    assert interval.mean == pytest.approx(np.mean(values))
