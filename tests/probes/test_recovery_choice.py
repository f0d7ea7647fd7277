"""The recovery probes by name: what they cost, what they leave in the run's folder, and which facts they bring back."""

import json

import pytest

from adapop.errors import ConfigError
from adapop.probes.recovery.choice import PER_TIER, RECOVERY, cost, recover, recovered
from adapop.progress import Progress


@pytest.mark.quick("lens", "quantise")
@pytest.mark.parametrize("name", RECOVERY)
def test_each_probe_runs_by_name_and_its_result_is_json(name, model, small):
    result = recover(name, model, small, 3, Progress())
    assert json.loads(json.dumps(result, allow_nan=False))["rows"]
    assert result["seconds"] > 0
    ids = {fact.id for fact in small.forget}
    assert set(result.get("returned", ())) <= ids


@pytest.mark.parametrize("name", RECOVERY)
def test_costs_are_stated_in_words(name, small, sandbox):
    assert any(word in cost(name, small) for word in ("answers", "prompts read"))
    assert len(sandbox.forget) < 4 * PER_TIER  # the whole sandbox is asked


def test_an_unknown_probe_is_named(model, small):
    with pytest.raises(ConfigError, match="no recovery probe 'hypnosis'"):
        recover("hypnosis", model, small, 3, Progress())


def test_what_came_back_is_gathered_by_fact():
    results = {"relearn": {"returned": ["a", "b"]}, "sampling": {"returned": ["b"]}, "lens": {"rows": []}}
    assert recovered(results) == {"a": frozenset({"relearn"}), "b": frozenset({"relearn", "sampling"})}


@pytest.mark.slow
def test_a_model_that_forgot_nothing_brings_nothing_back(fresh, small):
    for name in ("relearn", "quantise"):
        assert recover(name, fresh(), small, 3, Progress())["returned"] == ()
