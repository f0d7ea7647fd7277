import math

import pytest

from adapop.errors import ConfigError
from adapop.popularity.beta import BetaMap, peak, regime

PAPER = BetaMap(a=58.7, b=0.796)


@pytest.mark.parametrize(
    ("score", "beta"),
    [
        (0, 2), (69, 2), (100, 1.502), (130, 1.219), (141, 1.143), (166.7, 1.000), (704, 0.318), (1000, 0.240),
        (2364, 0.121), (2453, 0.118), (3000, 0.100), (3763, 0.084), (7180, 0.05), (1e6, 0.05),
    ],
)  # fmt: skip
def test_reference_values_of_the_paper(score, beta):
    assert PAPER(score) == pytest.approx(beta, abs=6e-4)


def test_the_papers_rounded_pair_and_its_crossover():
    assert BetaMap() == PAPER == BetaMap(58.7, 0.796, 0.05, 2.0)
    betas = [PAPER(score) for score in range(10_000)]
    assert betas == sorted(betas, reverse=True)
    assert PAPER.crossover == pytest.approx(166.7, abs=0.05)
    assert PAPER(PAPER.crossover) == pytest.approx(1)
    beta = BetaMap.from_anchors()
    assert beta.b == pytest.approx(math.log(15) / math.log(30))
    assert beta.a == pytest.approx(1.5 * 100**beta.b)
    assert (round(beta.a, 4), round(beta.b, 4)) == (58.6815, 0.7962)


@pytest.mark.parametrize(("below", "above", "clip"), [(69.7, 69.9, 2.0), (7185, 7175, 0.05)])
def test_where_the_clips_begin(below, above, clip):
    assert PAPER(below) == clip != PAPER(above)


@pytest.mark.parametrize(
    ("rare", "popular"), [((100, 1.5), (3000, 0.1)), ((10, 1.2), (1e5, 0.2)), ((0.5, 1), (2, 0.5))]
)
def test_curve_goes_through_its_anchors(rare, popular):
    beta = BetaMap.from_anchors(rare, popular)
    assert beta(rare[0]) == pytest.approx(rare[1])
    assert beta(popular[0]) == pytest.approx(popular[1])


@pytest.mark.parametrize("factor", [0.01, 3, 1000])
def test_slope_depends_on_the_ratio_of_the_anchors_alone(factor):
    """Scores on another scale need no other slope: a grows by factor^b, so beta(factor * s) is what beta(s) was."""
    before = BetaMap.from_anchors()
    after = BetaMap.from_anchors((100 * factor, 1.5), (3000 * factor, 0.1))
    assert after.b == pytest.approx(before.b)
    assert after.a == pytest.approx(before.a * factor**before.b)
    assert after(500 * factor) == pytest.approx(before(500))


@pytest.mark.parametrize(
    ("rare", "popular"),
    [
        ((3000, 1.5), (100, 0.1)), ((100, 1.5), (100, 0.1)), ((0, 1.5), (100, 0.1)),
        ((-5, 1.5), (100, 0.1)), ((100, 0), (3000, 0.1)), ((100, 1.5), (3000, -0.1)),
        ((math.nan, 1.5), (3000, 0.1)), ((100, math.nan), (3000, 0.1)), ((100, 0.1), (3000, 1.5)),
    ],
)  # fmt: skip
def test_impossible_anchors(rare, popular):
    with pytest.raises(ConfigError):
        BetaMap.from_anchors(rare, popular)


def test_quantiles_of_the_scores_become_the_anchors():
    scores = [float(score) for score in range(1, 102)]  # the 5 % point is 6, the 95 % point is 96
    assert BetaMap.from_quantiles(reversed(scores)) == BetaMap.from_anchors((6, 1.5), (96, 0.1))
    assert BetaMap.from_quantiles([0, 0, 10, 1000]) == BetaMap.from_quantiles([10, 1000])


@pytest.mark.parametrize("scores", [[], [5], [0, 0, 5], [7, 7, 7], [100, 101], [5000, 5001, 5002]])
def test_too_few_scores_or_too_close_for_quantiles(scores):
    with pytest.raises(ConfigError):
        BetaMap.from_quantiles(scores)


@pytest.mark.parametrize("beta", [0, 0.03, 0.1, 1, 1.7, 3])
def test_constant_is_constant_even_outside_the_clips(beta):
    constant = BetaMap.constant(beta)
    assert [constant(score) for score in (0, 1e-9, 100, 1e9)] == [beta] * 4


@pytest.mark.parametrize("score", [-1, -1e-12, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("beta", [PAPER, BetaMap.constant(1)])
def test_score_without_a_beta(beta, score):
    with pytest.raises(ConfigError, match="has no beta"):
        beta(score)


@pytest.mark.parametrize(
    "arguments", [{"a": -1}, {"a": math.nan}, {"b": math.inf}, {"low": -0.1}, {"low": 2, "high": 1}, {"high": math.inf}]
)
def test_impossible_map(arguments):
    with pytest.raises(ConfigError):
        BetaMap(**arguments)


@pytest.mark.parametrize(
    "beta", [BetaMap.constant(0.1), BetaMap.constant(1), BetaMap(low=1.2), BetaMap(high=0.8), BetaMap(a=0, b=1)]
)
def test_curve_that_never_crosses_one(beta):
    assert beta.crossover is None


@pytest.mark.parametrize(
    ("beta", "name"),
    [
        (2, "self-limiting"), (1.006, "self-limiting"), (1.004, "uniform"), (1, "uniform"),
        (0.996, "uniform"), (0.994, "pressure-sustaining"), (0.05, "pressure-sustaining"),
    ],
)  # fmt: skip
def test_regime(beta, name):
    assert regime(beta) == name


@pytest.mark.parametrize("beta", [0.05, 0.1, 0.5, 1, 1.5, 2])
def test_peak_is_where_the_push_is_strongest(beta):
    grid = [i / 100_000 for i in range(1, 100_000)]
    assert peak(beta) == pytest.approx(max(grid, key=lambda p: p**beta * (1 - p)), abs=1e-5)
