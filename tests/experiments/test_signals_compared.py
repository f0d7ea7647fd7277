from functools import partial

import pytest

from adapop.errors import DataError
from adapop.experiments import signals_compared as study
from adapop.experiments.engine import finished
from adapop.experiments.plans import facts_for
from adapop.facts.fact import scores_of

FEW = facts_for(quick=True)


def _outcome(signal, rate, seed, left, gap):
    tiers = dict(rare=0.4, middle=0.5, popular=0.4 + gap, top2_rare=0.5, top2_popular=0.5, rank_rare=2.0)
    return study.Outcome(signal, rate, seed, False, "1", left, all=0.5, **tiers, rank_popular=2.0, holdout=0.9)


@pytest.mark.parametrize("signal", study.SIGNALS)
def test_a_signal_deals_the_same_scores_to_the_facts(signal):
    given, dealt = scores_of(FEW.forget), study.scores_by(signal, 1, FEW)
    assert dealt.keys() == given.keys()
    assert sorted(dealt.values()) == sorted(given.values())
    assert (dealt == given) == (signal in ("exposures", "none"))


def test_the_surer_and_the_slower_count_as_popular():
    told = study._confidence(FEW, 0)
    dealt = study.scores_by("confidence", 0, FEW)
    ids = [fact.id for fact in FEW.forget]
    assert dealt[ids[told.index(max(told))]] == max(dealt.values())
    assert dealt[ids[told.index(min(told))]] == min(dealt.values())


def test_a_gap_is_read_where_so_much_is_left_and_only_where_runs_cross_it():
    outcomes = [_outcome("exposures", 5e-4, 0, 0.9, 0.1), _outcome("exposures", 1e-3, 0, 0.6, 0.3)]
    outcomes += [_outcome("exposures", 2e-3, 0, 0.2, 0.5), _outcome("exposures", 5e-4, 1, 0.4, 0.5)]
    outcomes += [_outcome("exposures", 1e-3, 1, 0.2, 0.5), _outcome("none", 5e-4, 0, 0.6, -0.8)]
    outcomes += [_outcome("none", 1e-3, 0, 0.4, -0.6)]
    frame = study.frame_of(outcomes)
    assert dict(study.at_left(frame, "exposures", 0.5, "gap")) == {0: pytest.approx(0.35)}
    assert dict(study.nearer(frame, "none", 0.5)) == {0: pytest.approx(0.35 - 0.7)}


def test_the_rule_needs_an_interval_that_leaves_out_zero():
    apart = [
        study.verdict(study.pd.Series(values)) for values in ([-0.2, -0.21, -0.19], [0.2, 0.21, 0.19], [-0.2, 0.2])
    ]
    assert apart == ["says more", "says less", "cannot be told apart"]


@pytest.mark.slow
def test_runs_are_made_once_and_read_as_written(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "RATES", (1e-3,))
    monkeypatch.setattr(study, "SIGNALS", {name: study.SIGNALS[name] for name in ("exposures", "pilot", "margin")})
    engine, said = partial(finished, processes=1), []
    assert study.run(tmp_path, [0], engine, True, said.append) == {}
    rows = study.rows(tmp_path / study.FILE)
    assert [row.signal for row in rows] == ["exposures", "pilot", "margin"]
    assert len({row.left for row in rows}) > 1
    assert study.run(tmp_path, [0], engine, True, said.append) == {} and said[-1] == "3 runs are done already, 0 to do."
    with open(tmp_path / study.FILE, "a", encoding="utf-8") as file:
        file.write("exposures,0.1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n")
    with pytest.raises(DataError, match="damaged"):
        study.rows(tmp_path / study.FILE)
