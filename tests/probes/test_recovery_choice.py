"""The recovery probes by name: what they cost, what they leave in the run's folder, and which facts they bring back."""

import json
from dataclasses import replace

import pytest

from adapop.errors import ConfigError
from adapop.probes.recovery.choice import PER_TIER, RECOVERY, applicable, cost, recover, recovered
from adapop.progress import Progress


def with_chains(facts):
    """The set with a rewording as each fact's two-hop question, and its own question as the second hop."""
    forget = [
        replace(fact, two_hop=fact.paraphrases[1], two_hop_answer=fact.answer, second_hop=fact.question)
        for fact in facts.forget
    ]
    return replace(facts, forget=tuple(forget))


def test_questions_of_two_hops_are_asked_where_the_set_brings_them(small):
    assert applicable(small) == RECOVERY[:-1] and applicable(with_chains(small)) == RECOVERY
    assert cost("two-hop", small) == "" and cost("two-hop", with_chains(small)) == f"{6 * len(small.forget)} answers"


@pytest.mark.quick("lens", "quantise")
@pytest.mark.parametrize("name", RECOVERY)
def test_each_probe_runs_by_name_and_its_result_is_json(name, model, small):
    result = recover(name, model, with_chains(small), 3, Progress())
    assert json.loads(json.dumps(result, allow_nan=False))["rows"]
    assert result["seconds"] > 0
    ids = {fact.id for fact in small.forget}
    assert set(result.get("returned", ())) <= ids


@pytest.mark.parametrize("name", RECOVERY)
def test_costs_are_stated_in_words(name, small, sandbox):
    assert any(word in cost(name, with_chains(small)) for word in ("answers", "prompts read"))
    assert len(sandbox.forget) < 4 * PER_TIER  # the whole sandbox is asked


def test_costs_names_and_what_came_back(model, small):
    with pytest.raises(ConfigError, match="no recovery probe 'hypnosis'"):
        recover("hypnosis", model, small, 3, Progress())
    results = {"relearn": {"returned": ["a", "b"]}, "sampling": {"returned": ["b"]}, "lens": {"rows": []}}
    assert recovered(results) == {"a": frozenset({"relearn"}), "b": frozenset({"relearn", "sampling"})}


@pytest.mark.slow
def test_a_model_that_forgot_nothing_brings_nothing_back(fresh, small):
    for name in ("relearn", "quantise"):
        assert recover(name, fresh(), small, 3, Progress())["returned"] == ()
