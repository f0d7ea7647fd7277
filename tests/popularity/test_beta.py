import math
import statistics
from functools import partial

import pytest

from adapop.errors import ConfigError, DataError
from adapop.facts.catalog import load_facts
from adapop.facts.fact import Fact, FactSet
from adapop.popularity.agreement import agreement, joined, remarks_of
from adapop.popularity.beta import BetaMap, between_tiers, inverted, noisy, peak, regime, shuffled, swapped
from adapop.popularity.calibration import anchored, auto_anchors, calibrated, meaning_of, warnings_of
from adapop.remark import Remark, sentences
from raised import raised

PAPER = BetaMap(a=58.7, b=0.796)
WIDE = [70, 100, 200, 400, 800, 1600, 3000, 3700]
FIRST = {"a": 1.0, "b": 10.0, "c": 100.0, "d": 1000.0}
SCORES = {f"fact-{i}": float(10 * i) for i in range(20)}
TIED = {"a": 1.0, "b": 5.0, "c": 5.0, "d": 9.0}
TIERED = {fact: "rare" if score < 80 else "popular" if score >= 120 else "middle" for fact, score in SCORES.items()}


@pytest.mark.parametrize(("score", "beta"), [
    (0, 2), (100, 1.502), (130, 1.219), (141, 1.143), (166.7, 1.000), (704, 0.318), (1000, 0.240),
    (2364, 0.121), (2453, 0.118), (3000, 0.100), (3763, 0.084), (7175, 0.05), (1e6, 0.05)])  # fmt: skip
def test_reference_values_of_the_paper(score, beta):
    assert PAPER(score) == pytest.approx(beta, abs=6e-4)


def test_the_papers_curve_and_curves_through_other_anchors():
    assert BetaMap() == PAPER == BetaMap(58.7, 0.796, 0.05, 2.0)
    betas = [PAPER(score) for score in range(10_000)]
    assert betas == sorted(betas, reverse=True) and PAPER.crossover == pytest.approx(166.7, abs=0.05)
    assert PAPER(PAPER.crossover) == pytest.approx(1)
    assert PAPER(69.7) == 2.0 > PAPER(69.9) and PAPER(7185) == 0.05 < PAPER(7175), "where the clips begin"
    beta = BetaMap.from_anchors()
    assert beta.b == pytest.approx(math.log(15) / math.log(30)) and beta.a == pytest.approx(1.5 * 100**beta.b)
    assert (round(beta.a, 4), round(beta.b, 4)) == (58.6815, 0.7962)
    # Scores on another scale need no other slope: a grows by factor^b, so beta(factor * s) is what beta(s) was.
    for rare, popular in (((100, 1.5), (3000, 0.1)), ((10, 1.2), (1e5, 0.2)), ((0.5, 1), (2, 0.5))):
        beta = BetaMap.from_anchors(rare, popular)
        assert (beta(rare[0]), beta(popular[0])) == (pytest.approx(rare[1]), pytest.approx(popular[1]))
    before = BetaMap.from_anchors()
    for factor in (0.01, 3, 1000):
        after = BetaMap.from_anchors((100 * factor, 1.5), (3000 * factor, 0.1))
        assert (after.a, after.b) == (pytest.approx(before.a * factor**before.b), pytest.approx(before.b))
        assert after(500 * factor) == pytest.approx(before(500))


@pytest.mark.parametrize("made", [
    *(partial(BetaMap.from_anchors, rare, popular) for rare, popular in (
        ((3000, 1.5), (100, 0.1)), ((100, 1.5), (100, 0.1)), ((0, 1.5), (100, 0.1)), ((-5, 1.5), (100, 0.1)),
        ((100, 0), (3000, 0.1)), ((100, 1.5), (3000, -0.1)), ((math.nan, 1.5), (3000, 0.1)),
        ((100, math.nan), (3000, 0.1)), ((100, 0.1), (3000, 1.5)), ((0.5, 1.5), (0.501, 0.1)),
    )),
    # too few scores or too close for quantiles
    *(partial(BetaMap.from_quantiles, scores) for scores in (
        [], [5], [0, 0, 5], [7, 7, 7], [100, 101], [0.5 + i * 1e-5 for i in range(100)],
    )),
    *(partial(BetaMap, **arguments) for arguments in (
        {"a": -1}, {"a": math.nan}, {"b": math.inf}, {"low": -0.1}, {"low": 2, "high": 1}, {"high": math.inf},
    )),
    # a score without a beta
    *(partial(beta, score) for beta in (PAPER, BetaMap.constant(1)) for score in (-1, -1e-12, math.nan, math.inf)),
])  # fmt: skip
def test_impossible_maps_and_scores(made):
    raised(ConfigError, "", made)


def test_regime_peak_and_a_constant_outside_the_clips_that_never_crosses_one():
    for beta in (0, 0.03, 1, 3):
        assert [BetaMap.constant(beta)(score) for score in (0, 1e-9, 100, 1e9)] == [beta] * 4
    for beta in (BetaMap.constant(0.1), BetaMap.constant(1), BetaMap(low=1.2), BetaMap(high=0.8), BetaMap(a=0, b=1)):
        assert beta.crossover is None
    for betas, name in (
        ((2, 1.006), "self-limiting"), ((1.004, 1, 0.996), "uniform"), ((0.994, 0.05), "pressure-sustaining"),
    ):  # fmt: skip
        assert {regime(beta) for beta in betas} == {name}
    grid = [i / 100_000 for i in range(1, 100_000)]
    for beta in (0.05, 0.5, 1, 2):
        assert peak(beta) == pytest.approx(max(grid, key=lambda p: p**beta * (1 - p)), abs=1e-5)


def scored(scores, source=""):
    facts = (Fact(f"f{i}", f"question {i}", "a", score=score, score_source=source) for i, score in enumerate(scores))
    return FactSet("own", forget=tuple(facts))


def test_anchors_by_name_of_ones_own_and_from_quantiles():
    assert calibrated("paper", scored(WIDE)) == BetaMap()
    assert anchored((100.0, 1.5), (3000.0, 0.1)) == BetaMap(58.7, 0.796)
    curve = calibrated("quantiles", scored(WIDE))
    assert (curve(70), curve(3700)) == (pytest.approx(1.5), pytest.approx(0.1))
    beta = BetaMap()
    for value in (0.06, 0.1, 1.0, 1.5, 1.99):
        assert beta(beta.score_at(value)) == pytest.approx(value)
    assert beta.score_at(2.0) is None and beta.score_at(0.05) is None and BetaMap.constant(1.0).score_at(1.0) is None
    for text in ("10:1.5,1000:0.1", " 1e1 : 1.5 , 1000 : .1 "):
        curve = calibrated(text, scored(WIDE))
        assert (curve(10), curve(1000)) == (pytest.approx(1.5), pytest.approx(0.1))
    for text in ("", "papers", "100,3000", "100:1.5", "a:b,c:d", "1:1,2:2,5:6", "100:1.5;3:1"):
        assert "100:1.5,3000:0.1" in raised(ConfigError, "cannot be read", calibrated, text, scored(WIDE)).fix
    raised(ConfigError, "no curve", calibrated, "100:inf,3000:0.1", scored(WIDE))
    scores = [float(score) for score in range(1, 102)]  # the 5% point is 6, the 95% point is 96
    assert BetaMap.from_quantiles(reversed(scores)) == BetaMap.from_anchors((6, 1.5), (96, 0.1))
    assert BetaMap.from_quantiles([0, 0, 10, 1000]) == BetaMap.from_quantiles([10, 1000])


def test_no_warning_where_nothing_is_wrong_and_clips_are_counted():
    assert warnings_of(WIDE, BetaMap()) == [] and warnings_of(WIDE, BetaMap.constant(1.0)) == []
    scores = [10.0**i for i in range(2, 8)]
    assert warnings_of(scores, BetaMap()) and warnings_of(scores, calibrated("quantiles", scored(scores))) == []
    assert warnings_of([250.0, 2000.0], BetaMap()) == []
    assert warnings_of([250.0, 300.0, 2000.0], BetaMap())[0].kind == "narrow_scores"
    assert warnings_of([0, 0, 0, 5000], BetaMap()) == [Remark("upper_clip", {"share": 0.75, "clip": 2.0})]
    (warning,) = warnings_of([30.0] * 48 + [20_000.0] * 48 + [300.0] * 4, BetaMap())
    clips = {"share": 0.96, "upper": 0.48, "lower": 0.48, "high": 2.0, "low": 0.05}
    assert (warning.kind, warning.values) == ("both_clips", clips)
    # Half of the facts on clips is not yet most.
    for upper, lower, most in ((50, 0, False), (51, 0, True), (0, 50, False), (0, 51, True), (25, 25, False)):
        between = [100.0 + 20 * i for i in range(100 - upper - lower)]
        warnings = warnings_of([30.0] * upper + [20_000.0] * lower + between, BetaMap())
        assert any("clip" in warning.kind for warning in warnings) == most


@pytest.mark.parametrize(("scores", "beta", "expected"), [
    ([100, 120, 150, 300, 500], BetaMap(), "narrow_scores"), ([5, 5, 5], BetaMap(), "one_beta"),
    ([0, 0, 5], BetaMap(), Remark("one_beta")),  # both are clipped to 2
    ([1e4, 1e5, 1e6, 1e7], BetaMap(), "other_scale"),
    ([1e4, 1e5, 1e6, 1e7], BetaMap(), Remark("lower_clip", {"share": 1.0, "clip": 0.05})),
    ([1, 2, 3, 20, 1000], BetaMap(), Remark("upper_clip", {"share": 0.8, "clip": 2.0})),
    ([1, 2, 3, 20, 1000], BetaMap.from_anchors((100, 1.5), (250, 0.1)), "close_anchors")])  # fmt: skip
def test_warnings(scores, beta, expected):
    assert any(expected in (warning, warning.kind) for warning in warnings_of(scores, beta))


def test_the_meaning_holds_the_numbers():
    text = meaning_of(1.99, 0.08).text()
    assert text.startswith("Where the model is 5% sure, ")
    assert f"popular fact (β = 0.08) still gets {0.05 ** (0.08 - 1.99):,.0f} times the pressure" in text
    assert meaning_of(0.08, 1.99).values["stronger"] == "rarest"
    assert meaning_of(1.1, 1.0) == Remark("narrow_beta", {"least": 1.0, "most": 1.1})
    values = {"least": 0.08, "most": 1.99, "rare": 1.99, "popular": 1.99}
    assert meaning_of(1.99, 1.99, (1.99, 0.08, 1.99)) == Remark("beta_without_popularity", values)
    assert meaning_of(1.0, 1.0, (1.0, 1.0)) == Remark("same_beta", {"beta": 1.0})
    assert meaning_of(0.0, 0.0) == Remark("plain_ascent")


@pytest.mark.parametrize(("source", "chosen", "reason"), [
    ("shuffled, of Wikidata sitelinks + statements, subject + object", "paper", "scale"),
    ("DUET pop_sum", "paper", "scale"), ("column population", "quantiles", "own-scale"),
    ("LLM judge some-model, mean of 3 passes, 0 to 1,000", "quantiles", "own-scale"), ("", "quantiles", "own-scale"),
])  # fmt: skip
def test_the_source_of_the_scores_decides_the_anchors(source, chosen, reason):
    anchors = auto_anchors(scored([20_000, 40_000, 900_000], source))
    assert (anchors.chosen, anchors.reason) == (chosen, reason)
    ends = (20_000, 900_000) if chosen == "quantiles" else (100, 3000)
    assert (anchors.rare, anchors.popular) == ((ends[0], 1.5), (ends[1], 0.1))
    assert calibrated("auto", scored([20_000, 40_000, 900_000], source)) == anchors.beta


def test_shipped_sets_and_scores_that_give_no_anchors_get_the_papers():
    for name in ("sandbox", "people", "pair", "invented"):
        chosen = auto_anchors(load_facts(name, "sandbox"))
        assert (chosen.chosen, chosen.reason, chosen.beta) == ("paper", "scale", BetaMap(58.7, 0.796, 0.05, 2.0))
    for scores in ([None], [7, 7, 7], [0, 7], [1e300, 1.0000001e300]):
        found = auto_anchors(scored(scores, "column population"))
        assert (found.chosen, found.reason, found.beta) == ("paper", "no-spread", BetaMap())


def compared(first, second):
    return agreement(first, second, BetaMap())


def test_a_proxy_agrees_with_itself_and_not_with_its_opposite():
    comparison = compared(FIRST, dict(FIRST))
    assert (comparison.facts, comparison.unknown, comparison.discordant, comparison.same_label) == (4, 0, (), 1)
    assert (comparison.pearson_log, comparison.spearman) == (pytest.approx(1), pytest.approx(1))
    assert (comparison.beta_shift, comparison.own_beta_shift) == (0, 0)
    comparison = compared(FIRST, {fact: 1e4 / score for fact, score in FIRST.items()})
    assert (comparison.spearman, comparison.same_label) == (pytest.approx(-1), 0)
    assert comparison.discordant[:2] in {("a", "d"), ("d", "a")}
    comparison = compared(FIRST, {fact: 1000 * score for fact, score in FIRST.items()})
    assert (comparison.spearman, comparison.same_label) == (pytest.approx(1), 1)
    assert comparison.own_beta_shift == pytest.approx(0, abs=1e-12) and comparison.beta_shift > 0.3
    text = " ".join(sentences(remarks_of(compared(FIRST, FIRST), "Wikidata", "the judge")))
    assert "Wikidata and the judge both score 4 facts." in text and "Spearman 1.00" in text


def test_by_hand():
    second = {"a": 5.0, "b": 700.0, "c": 20.0, "d": 9000.0}
    comparison = compared(FIRST, second)
    # ranks 1 2 3 4 against 1 3 2 4: 1 - 6 * 2 / (4 * 15)
    assert comparison.spearman == pytest.approx(0.8)
    x, y = ([math.log(score + 1) for score in scores.values()] for scores in (FIRST, second))
    assert comparison.pearson_log == pytest.approx(statistics.correlation(x, y)) and comparison.same_label == 0.5
    assert set(comparison.discordant) == {"b", "c"}
    beta = BetaMap()
    assert comparison.beta_shift == pytest.approx(sum(abs(beta(FIRST[k]) - beta(second[k])) for k in FIRST) / 4)
    # Rare and popular as the scales of Wikidata and the judge have them: popular from 1,000 on.
    first = {"a": 100.0, "b": 200.0, "c": 3000.0, "d": 1000.0}
    second = {"a": 50.0, "b": 5000.0, "c": 9000.0, "d": 1200.0}
    assert agreement(first, second, BetaMap()).same_tier == 0.75
    assert agreement(first, dict.fromkeys(first, 5.0) | {"a": 6.0}, BetaMap()).same_tier is None


def test_unknown_is_left_out_and_zero_is_a_score():
    second = {**FIRST, "d": None, "e": 5.0}
    comparison = compared(FIRST, second)
    assert (comparison.facts, comparison.unknown) == (3, 2) and comparison.spearman == pytest.approx(1)
    assert compared({**FIRST, "z": 0.0}, {**FIRST, "z": 0.0}).facts == 5
    comparison = compared(FIRST, dict.fromkeys(FIRST, 7.0))
    assert (comparison.pearson_log, comparison.spearman, comparison.own_beta_shift) == (None, None, None)
    assert remarks_of(comparison, "one", "two")[1].values["spearman"] == "not defined"
    for second in ({}, {"a": 1.0, "b": 2.0}, dict.fromkeys(FIRST)):
        raised(DataError, "too few", compared, FIRST, second)


def facts(*questions, ids="row-{}"):
    return tuple(Fact(ids.format(i), question, "x") for i, question in enumerate(questions, 2))


def test_which_fact_is_which():
    other = joined(facts("a?", "b?", "c?"), facts("C? ", "new?", "A?"))
    assert [fact.id for fact in other] == ["row-4", "second-row-3", "row-2"]
    one, other = facts("a?", "b?", ids="f{}"), facts(" A?", "b?", "c?", ids="f{}")
    assert joined(one, other) == other
    same = facts("a?", "b?", "A?")
    assert joined(same, same) == same
    raised(DataError, "row-3", joined, same, facts("a?", "A?", "b?"))
    for ids in ("f{}", "row-{}-a"):
        sets = facts("a?", "b?", ids=ids), facts("b?", "a?", ids=ids)
        assert "ids" in raised(DataError, r"'a\?' in one .*'b\?' in", joined, *sets).fix


def test_scores_are_shuffled_swapped_inverted_and_made_noisy_by_seed_and_share():
    given = dict(SCORES)
    for seed in range(5):
        again = shuffled(SCORES, seed)
        assert list(again) == list(SCORES) and sorted(again.values()) == sorted(SCORES.values())
        assert sum(again[fact] == SCORES[fact] for fact in SCORES) < len(SCORES) / 2
        again = swapped(SCORES, seed)
        assert sorted(again.values()) == sorted(SCORES.values())
        assert sum(again[fact] != SCORES[fact] for fact in SCORES) == len(SCORES) / 2
    inverted(SCORES), noisy(SCORES, 0)
    assert given == SCORES, "what is given is left alone"
    assert shuffled(SCORES, 1) == shuffled(SCORES, 1) != shuffled(SCORES, 2)
    assert swapped(SCORES, 0, 1.0) == inverted(SCORES) and swapped(SCORES, 0, 0.0) == SCORES
    for share in (-0.1, 1.1):
        raised(ConfigError, "The share that trades scores", between_tiers, SCORES, TIERED, 0, share)
    for control, values in ((swapped, (-0.01, 1.01, math.nan)), (noisy, (-0.1, 20.1, 5000.0, math.nan, math.inf))):
        for value in values:
            assert "from 0 to" in raised(ConfigError, "", control, SCORES, 0, value).fix
    again = inverted(SCORES)
    assert list(again) == list(SCORES) and sorted(again.values()) == sorted(SCORES.values())
    assert sorted(again, key=again.get) == sorted(SCORES, key=SCORES.get, reverse=True)
    backwards = dict(reversed(TIED.items()))
    assert inverted(TIED) == inverted(backwards) and sorted(inverted(TIED).values()) == sorted(TIED.values())
    many = {str(i): 100.0 for i in range(4000)}
    logs = [math.log(score / 100) for score in noisy(many, 0).values()]
    assert statistics.fmean(logs) == pytest.approx(0, abs=0.06) and statistics.stdev(logs) == pytest.approx(1, abs=0.05)
    assert noisy({"a": 0.0}, 0) == {"a": 0.0} and noisy(SCORES, 3) == noisy(SCORES, 3) != noisy(SCORES, 4)
    assert noisy(SCORES, 3, sigma=0.0) == SCORES and all(map(math.isfinite, noisy(SCORES, 0, 20.0).values()))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_labels_swapped_between_tiers(share):
    """Eight facts are rare, eight popular, four between; who trades takes the other tier's score."""
    again = between_tiers(SCORES, TIERED, 3, share)
    assert sorted(again.values()) == sorted(SCORES.values())
    moved = {fact for fact in SCORES if again[fact] != SCORES[fact]}
    assert len(moved) == 16 * share and all(again[fact] >= 120 for fact in moved if TIERED[fact] == "rare")
    assert all(again[fact] < 80 for fact in moved if TIERED[fact] == "popular")
    assert not any(TIERED[fact] == "middle" for fact in moved)
    assert share in (0.0,) or again != between_tiers(SCORES, TIERED, 4, share)
