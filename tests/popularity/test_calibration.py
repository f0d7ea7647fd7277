"""Anchors by name, and the warnings a careful reader would want."""

import pytest

from adapop.errors import ConfigError
from adapop.facts.catalog import load_facts
from adapop.facts.fact import Fact, FactSet
from adapop.popularity.beta import BetaMap
from adapop.popularity.calibration import anchored, auto_anchors, calibrated, meaning_of, warnings_of
from adapop.remark import Remark

WIDE = [70, 100, 200, 400, 800, 1600, 3000, 3700]


def scored(scores, source=""):
    """A set with these scores of a source."""
    facts = (Fact(f"f{i}", f"question {i}", "a", score=score, score_source=source) for i, score in enumerate(scores))
    return FactSet("own", forget=tuple(facts))


def test_anchors_by_name():
    assert calibrated("paper", scored(WIDE)) == BetaMap()
    assert anchored((100.0, 1.5), (3000.0, 0.1)) == BetaMap(58.7, 0.796)
    curve = calibrated("quantiles", scored(WIDE))
    assert (curve(70), curve(3700)) == (pytest.approx(1.5), pytest.approx(0.1))
    beta = BetaMap()
    for value in (0.06, 0.1, 1.0, 1.5, 1.99):
        assert beta(beta.score_at(value)) == pytest.approx(value)
    assert beta.score_at(2.0) is None
    assert beta.score_at(0.05) is None
    assert BetaMap.constant(1.0).score_at(1.0) is None


@pytest.mark.parametrize("text", ["10:1.5,1000:0.1", " 1e1 : 1.5 , 1000 : .1 "])
def test_anchors_of_ones_own(text):
    curve = calibrated(text, scored(WIDE))
    assert (curve(10), curve(1000)) == (pytest.approx(1.5), pytest.approx(0.1))


@pytest.mark.parametrize("text", ["", "papers", "100,3000", "100:1.5", "a:b,c:d", "1:1,2:2,5:6", "100:1.5;3:1"])
def test_unreadable_anchors(text):
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        calibrated(text, scored(WIDE))
    assert "100:1.5,3000:0.1" in caught.value.fix


def test_no_warning_where_nothing_is_wrong():
    assert warnings_of(WIDE, BetaMap()) == []
    assert warnings_of(WIDE, BetaMap.constant(1.0)) == []
    scores = [10.0**i for i in range(2, 8)]
    assert warnings_of(scores, BetaMap())
    assert warnings_of(scores, calibrated("quantiles", scored(scores))) == []
    assert warnings_of([250.0, 2000.0], BetaMap()) == []
    assert warnings_of([250.0, 300.0, 2000.0], BetaMap())[0].kind == "narrow_scores"


@pytest.mark.parametrize(
    ("scores", "beta", "expected"),
    [
        ([100, 120, 150, 300, 500], BetaMap(), "narrow_scores"),
        ([5, 5, 5], BetaMap(), "one_beta"),
        ([0, 0, 0], BetaMap(), "one_beta"),
        ([1e4, 1e5, 1e6, 1e7], BetaMap(), "other_scale"),
        ([1e4, 1e5, 1e6, 1e7], BetaMap(), Remark("lower_clip", {"share": 1.0, "clip": 0.05})),
        ([1, 2, 3, 20, 1000], BetaMap(), Remark("upper_clip", {"share": 0.8, "clip": 2.0})),
        ([1, 2, 3, 20, 1000], BetaMap.from_anchors((100, 1.5), (250, 0.1)), "close_anchors"),
    ],
)
def test_warnings(scores, beta, expected):
    assert any(expected in (warning, warning.kind) for warning in warnings_of(scores, beta))


def test_the_meaning_holds_the_numbers():
    said = meaning_of(1.99, 0.08).text()
    assert said.startswith("At 5 % confidence, ")
    assert f"the most popular fact (β = 0.08) is still pushed {0.05 ** (0.08 - 1.99):,.0f} times as hard" in said
    assert meaning_of(0.08, 1.99).values["stronger"] == "rarest"
    assert meaning_of(1.1, 1.0) == Remark("narrow_beta", {"least": 1.0, "most": 1.1})
    values = {"least": 0.08, "most": 1.99, "rare": 1.99, "popular": 1.99}
    assert meaning_of(1.99, 1.99, (1.99, 0.08, 1.99)) == Remark("beta_without_popularity", values)
    assert meaning_of(1.0, 1.0, (1.0, 1.0)) == Remark("same_beta", {"beta": 1.0})
    assert meaning_of(0.0, 0.0) == Remark("plain_ascent")


def test_clips_are_counted():
    assert warnings_of([0, 0, 0, 5000], BetaMap()) == [Remark("upper_clip", {"share": 0.75, "clip": 2.0})]
    assert warnings_of([0, 0, 5], BetaMap()) == [Remark("one_beta")], "both are clipped to 2"
    (warning,) = warnings_of([30.0] * 48 + [20_000.0] * 48 + [300.0] * 4, BetaMap())
    clips = {"share": 0.96, "upper": 0.48, "lower": 0.48, "high": 2.0, "low": 0.05}
    assert (warning.kind, warning.values) == ("both_clips", clips)


@pytest.mark.parametrize(("upper", "lower"), [(50, 0), (0, 50), (25, 25)])
def test_half_of_the_facts_on_clips_is_not_yet_most(upper, lower):
    def clipped(more: int) -> bool:
        scores = [30.0] * (upper + more * bool(upper)) + [20_000.0] * (lower + more * (not upper))
        between = [100.0 + 20 * i for i in range(100 - len(scores))]
        return any("clip" in warning.kind for warning in warnings_of(scores + between, BetaMap()))

    assert (clipped(0), clipped(1)) == (False, True)


@pytest.mark.parametrize("name", ["sandbox", "people", "pair", "invented"])
def test_shipped_sets_get_the_papers_anchors(name):
    chosen = auto_anchors(load_facts(name, "sandbox"))
    assert (chosen.chosen, chosen.reason, chosen.beta) == ("paper", "scale", BetaMap(58.7, 0.796, 0.05, 2.0))


@pytest.mark.parametrize(
    ("source", "chosen", "reason"),
    [
        ("Wikidata sitelinks + statements, subject + object", "paper", "scale"),
        ("shuffled, of Wikidata sitelinks + statements, subject + object", "paper", "scale"),
        ("DUET pop_sum", "paper", "scale"),
        ("column population", "quantiles", "own-scale"),
        ("LLM judge some-model, mean of 3 passes, 0 to 1,000", "quantiles", "own-scale"),
        ("", "quantiles", "own-scale"),
    ],
)
def test_the_source_of_the_scores_decides_the_anchors(source, chosen, reason):
    found = auto_anchors(scored([20_000, 40_000, 900_000], source))
    assert (found.chosen, found.reason) == (chosen, reason)
    ends = (20_000, 900_000) if chosen == "quantiles" else (100, 3000)
    assert (found.rare, found.popular) == ((ends[0], 1.5), (ends[1], 0.1))
    assert calibrated("auto", scored([20_000, 40_000, 900_000], source)) == found.beta


@pytest.mark.parametrize("scores", [[None], [7, 7, 7], [0, 7], [1e300, 1.0000001e300]])
def test_scores_that_give_no_anchors_get_the_papers(scores):
    found = auto_anchors(scored(scores, "column population"))
    assert (found.chosen, found.reason, found.beta) == ("paper", "no-spread", BetaMap())
