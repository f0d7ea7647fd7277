"""Two runs on the same facts: tests that agree with scipy and statsmodels find what overlapping intervals miss."""

import random
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest

from adapop.facts.fact import Fact
from adapop.probes.intervals import clustered, mcnemar
from adapop.report import write_report
from adapop.report.paired import paired_facts, paired_records, paired_table
from adapop.report.record import read_record
from adapop.training.events import Measured


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (3, 9), (9, 3), (20, 20), (0, 40), (130, 90)])
def test_mcnemar_is_that_of_statsmodels_and_the_binomial_test_of_scipy(first, second):
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    stats = pytest.importorskip("scipy.stats")
    own = mcnemar(first, second)
    assert own == pytest.approx(tables.mcnemar([[7, first], [second, 5]], exact=True).pvalue)
    if first + second:
        assert own == pytest.approx(stats.binomtest(first, first + second).pvalue)


def test_without_clusters_the_interval_is_that_of_scipys_bootstrap():
    stats = pytest.importorskip("scipy.stats")
    drawn = random.Random(1)
    values = [drawn.choice((-1.0, 0.0, 0.0, 0.5, 1.0)) for _ in range(80)]
    own = clustered(values, range(80))
    options = {"method": "percentile", "n_resamples": 5_000, "rng": np.random.default_rng(2)}
    other = stats.bootstrap((values,), np.mean, **options).confidence_interval
    assert own.mean == fmean(values)
    assert (own.low, own.high) == (pytest.approx(other.low, abs=0.03), pytest.approx(other.high, abs=0.03))


def test_facts_that_share_their_answer_widen_the_interval_as_cluster_robust_errors_do():
    api = pytest.importorskip("statsmodels.api")
    drawn = random.Random(3)
    clusters = [number for number in range(24) for _ in range(6)]
    effect = [drawn.gauss(0.1, 0.4) for _ in range(24)]
    values = [effect[cluster] + drawn.gauss(0, 0.05) for cluster in clusters]
    own, alone = clustered(values, clusters), clustered(values, range(len(values)))
    model = api.OLS(values, np.ones(len(values)))
    low, high = model.fit(cov_type="cluster", cov_kwds={"groups": clusters}).conf_int()[0]
    assert own.high - own.low == pytest.approx(high - low, rel=0.15)
    assert own.high - own.low > 1.8 * (alone.high - alone.low)


def test_one_cluster_has_no_interval_and_every_value_its_cluster():
    one = clustered([0.0, 1.0], ["a", "a"])
    assert (one.mean, one.low, one.high) == (0.5, 0.5, 0.5)
    with pytest.raises(ValueError, match="shorter"):
        clustered([1.0, 2.0], ["a"])


@pytest.fixture
def record(finished):
    """The finished run with forty facts, of which it answers the first half."""
    facts = tuple(Fact(f"f{place}", f"Who {place}?", f"A{place // 4}", score=1.0) for place in range(40))
    whole = read_record(finished)
    return with_recalls(replace(whole, facts=replace(whole.facts, forget=facts)), [1.0] * 20 + [0.0] * 20)


def with_recalls(record, direct, seed=0, **changes):
    events = tuple(
        replace(event, direct_by_fact=tuple(direct), by_fact=())
        if isinstance(event, Measured) and event.full and event.epoch else event
        for event in record.events
    )  # fmt: skip
    return replace(record, events=events, config=replace(record.config, seed=seed), **changes)


def test_a_difference_on_the_same_facts_is_found_where_intervals_overlap(record):
    more = with_recalls(record, [1.0] * 28 + [0.0] * 12)
    (result,) = paired_records([more], [record]).values()
    assert (result.facts, result.answers, result.both, result.only_first, result.only_second) == (40, 10, 20, 8, 0)
    assert result.p == pytest.approx(2 / 2**8) and result.difference.mean == pytest.approx(0.2)
    assert result.difference.low >= 0 and result.difference.high > 0.2
    assert result.seeds.low is None, "one seed has no interval"
    (other,) = paired_records([record], [more]).values()
    assert (other.only_second, other.p, other.difference.mean) == (8, result.p, -result.difference.mean)


def test_seeds_are_averaged_fact_by_fact_and_their_own_interval_stands_beside(record):
    first = [with_recalls(record, [1.0] * (20 + seed) + [0.0] * (20 - seed), seed) for seed in (1, 2, 3)]
    second = [with_recalls(record, [1.0] * 20 + [0.0] * 20, seed) for seed in (1, 2, 3)]
    (result,) = paired_records(first, second).values()
    assert result.only_first == 2, "the third more is answered in one seed of three"
    assert result.seeds.seeds == 3 and result.seeds.mean == pytest.approx(0.05) == result.difference.mean
    assert "3 seeds" in paired_table(["a", "b"], [first, second]).rows[0][-1]


def test_facts_that_only_one_run_has_are_left_out_and_unmeasured_runs_have_no_row(record, finished, other, tmp_path):
    fewer = replace(record, facts=replace(record.facts, forget=record.facts.forget[:10]))
    (result,) = paired_records([record], [with_recalls(fewer, [0.0] * 10)]).values()
    assert (result.facts, result.only_first) == (10, 10)
    assert paired_records([record], [replace(record, events=())]) == {}
    assert paired_table(["a", "b"], [[record], [replace(record, events=())]]) is None
    page = write_report([finished, other], tmp_path / "both.html").read_text("utf-8")
    assert "Tested on the same facts" in page and "McNemar" in page, "it stands in a report of both"
    real = paired_facts(finished, other)
    assert {form: result.facts for form, result in real.items()} == {"direct": 4, "reworded": 4}
