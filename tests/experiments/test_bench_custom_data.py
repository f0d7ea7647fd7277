from dataclasses import replace

import pytest

from adapop.errors import ConfigError
from adapop.experiments import signals
from adapop.experiments.custom_data import OWN, placed, rates_for
from adapop.experiments.run import Place
from adapop.facts.world import sandbox_facts

MODEL = "some/model"


@pytest.fixture(scope="module")
def facts():
    given = sandbox_facts()
    return replace(given, name="mine", forget=given.forget[:4])


@pytest.mark.slow
def test_a_sweep_goes_over_the_papers_rates_or_around_a_given_one(facts, tmp_path):
    for model, given, rates in (
        (MODEL, {}, (1e-6, 5e-6, 1e-5, 5e-5, 1e-4)),  # the paper's sweep
        ("people", {}, (2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3)),
        (MODEL, {"learning_rate": 1e-4}, (3.16e-5, 5.62e-5, 1e-4, 1.78e-4, 3.16e-4)),
    ):
        assert rates_for(model, given) == rates
    for name in ("rates", "forgetting"):
        items = placed(Place(name, tmp_path, (0,)), facts, MODEL, {}).items({})
        assert {item.config.learning_rate for item in items} == {1e-6, 5e-6, 1e-5, 5e-5, 1e-4}
        assert {item.config.model for item in items} == {MODEL} and {item.custom.facts for item in items} == {facts}

    def rates(changes):
        items = placed(Place("ablation", tmp_path, (0,)), facts, MODEL, changes).items({})
        return sorted(item.config.learning_rate for item in items if item.arm.title.startswith("AdaPop, α fixed, β"))

    assert rates({}) == [1e-6, 5e-6, 1e-5, 5e-5, 1e-4] and rates({"learning_rate": 3e-5}) == [3e-5]


@pytest.mark.slow
def test_what_needs_no_sandbox_takes_ones_own_facts_and_the_others_refuse_them(facts, tmp_path):
    for name in OWN:
        assert placed(Place(name, tmp_path, (0,)), facts, MODEL, {}).items({})
    for name in ("proxies", "levels", "worlds"):
        with pytest.raises(ConfigError, match=f"bench {name} is about the sandbox alone"):
            placed(Place(name, tmp_path, (0,)), facts, MODEL, {})


def test_wrong_scores_are_made_of_the_facts_own(facts, tmp_path):
    items = placed(Place("scores", tmp_path, (0,)), facts, "sandbox", {}).items({})
    given = {fact.id: fact.score for fact in facts.forget}
    for item in items:
        found = signals.other_scores(item.arm.scores, 0, item.custom.facts)
        assert found.keys() == given.keys()
        if item.arm.scores.startswith(("tiers", "swapped")):
            assert sorted(found.values()) == sorted(given.values())
