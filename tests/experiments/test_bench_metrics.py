import itertools
from dataclasses import replace
from statistics import fmean
from types import SimpleNamespace

import pytest

from adapop.experiments import metrics, plans
from adapop.experiments.cells import known
from adapop.experiments.metrics import AFTER, BEFORE, METRICS, RELEARNED, ROUNDED, STATES, separation
from adapop.facts.fact import TIERS
from adapop.paths import SANDBOX_FOLDER
from adapop.probes.oracle import load_oracle
from adapop.probes.recovery.patch import patch, still_read
from adapop.progress import Progress
from bench_rows import cells, row

FIRST = METRICS[0]


def values(**by_state):
    """Every metric's values of every tier alike, by state."""
    return {state: {name: {tier: by_state[state] for tier in TIERS} for name in METRICS} for state in STATES}


@pytest.fixture
def arms():
    """The original knows .8 and .6 of two facts, the oracle .2 and .7; WGA leaves .4, and .65 once taught others."""
    knows = values(before=[0.8, 0.6], after=[0.9, 0.5], relearned=[0.7], rounded=[0.7])
    never = values(before=[0.2, 0.4], after=[0.2, 0.8], relearned=[0.4], rounded=[0.3])
    unlearned = values(before=[0.7], after=[0.4], relearned=[0.65], rounded=[0.5])
    arms = {plans.KNOWS.title: knows, plans.NEVER_READ.title: never, "WGA": unlearned}
    return {title: [row(0, metrics=found)] for title, found in arms.items()}


def test_apart_is_the_area_under_the_curve():
    """Of Mann and Whitney's U: 3 of 4 pairs in order and a tie of two is .75, as any textbook has it."""
    assert separation([3, 1], [2, 0]) == 0.75 and separation([1], [1]) == 0.5 and separation([0], [1]) == 0.0


def test_a_metric_is_faithful_where_it_tells_who_knows_from_who_never_read(arms):
    # pairs of models: 0.8, 0.6 or 0.9, 0.5 against 0.2, 0.4 (all four in order) or 0.2, 0.8 (2 and a tie, or 3)
    assert metrics.aucs(arms, FIRST, "rare") == [1, 0.625, 1, 0.75]
    line = cells(table := metrics.faithfulness_table(arms), FIRST)
    assert (line["AUC, rare facts"], line["AUC, models, rare"]) == ("0.84", "1.00")
    assert (line["popular: known"], line["popular: never read"]) == ("0.70", "0.40")
    assert [line[0] for line in table.rows] == [*METRICS]


def test_a_metric_is_robust_where_what_is_left_stays(arms):
    wga = arms["WGA"][0]
    found = [metrics.left(arms, wga, state, FIRST, "rare") for state in STATES]
    assert found == pytest.approx([1, 0.25, 0.875, 0.5]), "0.3 to 0.7 is what lies between the two models"
    line = cells(table := metrics.robustness_table(arms), FIRST)
    parts = ("left, rare", "taught others, rare", "the same of the oracle, rare", "rounded, rare")
    assert [line[part] for part in parts] == ["0.25", "0.63", "-0.25", "0.25"]
    assert "(WGA)" in table.note


def test_each_unlearned_model_has_a_line_with_every_metric_that_sees_something(arms):
    arms["NPO"] = [row(0, metrics=values(before=[0.7], after=[0.55], relearned=[0.6], rounded=[0.6]))]
    never = arms[plans.NEVER_READ.title][0]["metrics"][BEFORE]
    never["truth ratio"] = {**never["truth ratio"], "popular": [0.7]}  # the oracle knows as much: nothing can be said
    table = metrics.method_table(arms)
    assert table.head == ("", *(name for name in METRICS if name != "truth ratio"))
    assert [line[:2] for line in table.rows] == [("WGA", "0.25 / 0.25"), ("NPO", "0.63 / 0.63")]  # (.55 - .3) / .4
    for title, state in itertools.product((plans.KNOWS.title, plans.NEVER_READ.title), STATES):
        arms[title][0]["metrics"][state]["extraction strength"] = {tier: [1.0] for tier in TIERS}
    assert metrics.left(arms, arms["WGA"][0], AFTER, "extraction strength", "rare") is None
    lines = {line[0]: set(line[1:]) for line in metrics.robustness_table(arms).rows}
    assert lines["extraction strength"] == {""}


@pytest.mark.parametrize("lacking", [plans.KNOWS.title, plans.NEVER_READ.title, "WGA"])
def test_without_models_of_each_kind_there_is_no_table(arms, lacking):
    del arms[lacking]
    assert metrics.faithfulness_table(arms) is metrics.robustness_table(arms) is metrics.method_table(arms) is None
    assert metrics.marks(arms).to_json()


def test_what_is_patched_into_itself_changes_nothing(original, small):
    """The original keeps all that it answers, in every layer; the oracle little of it, as where it is patched alone."""
    itself = still_read(original, original, small.forget)
    first, *layers = zip(*(fact.original for fact in patch(original, small.forget, Progress()).facts))
    assert itself == [float(right) for right in first] and all(layer == first for layer in layers)
    oracle = load_oracle(SANDBOX_FOLDER / "oracle")
    assert fmean(still_read(original, oracle, small.forget)) < fmean(itself) / 2


@pytest.mark.slow
def test_the_original_knows_what_its_oracle_does_not(small):
    items = plans.metrics((0,), True, {})[:2]
    models = load_oracle(SANDBOX_FOLDER), load_oracle(SANDBOX_FOLDER / "oracle")
    configs = [replace(item.config, model=item.title) for item in items]
    runs = [SimpleNamespace(config=config, facts=small, reply_tokens=3) for config in configs]
    by_model = [known(model, run, reference=True) for run, model in zip(runs, models)]
    for name in METRICS:
        means = [fmean(value for of in states[AFTER][name].values() for value in of) for states in by_model]
        assert means[0] > means[1] if name != "extraction strength" else means == [1, 1], name
    assert by_model[0][BEFORE] == by_model[0][AFTER], "its adapter does nothing yet"
    assert {len(of) for state in (RELEARNED, ROUNDED) for of in by_model[0][state][FIRST].values()} == {1}
