"""`bench real` on a tiny model taught to answer as text: trials, the choice, reported runs, tables; and `bench speed
--real` on the same."""

import json
from dataclasses import replace

import pytest

from adapop.config.presets import make_config
from adapop.errors import ConfigError
from adapop.experiments import real, trial
from adapop.experiments.engine import Finished
from adapop.experiments.plans import facts_of
from adapop.experiments.run import OWN, Place, placed, rates_for, run, write
from adapop.facts.world import sandbox_facts
from bench_rows import cells, row
from raised import raised
from spoken import as_text, taught
from taught import own_facts


@pytest.fixture(scope="module")
def facts():
    whole = own_facts(18)
    rows = [*whole.forget, *whole.retain, *whole.holdout]
    groups = {"forget": rows[:8], "retain": rows[8:12], "holdout": rows[12:15], "examples": rows[15:]}
    return replace(whole, **{name: tuple(group) for name, group in groups.items()})


@pytest.fixture(scope="module")
def base(facts, tmp_path_factory):
    """The folder of a base model that goes on with lines of questions and answers."""
    rows = [*facts.forget, *facts.retain, *facts.holdout, *facts.examples]
    return taught(tmp_path_factory.mktemp("base") / "model", rows, None, lambda _: as_text(rows))


def in_this_process(items, function):
    for item in items:
        yield Finished(item, function(item))


def arm_rows(items, left, retained):
    """A row of each trial by its key, with these shares left and retained."""
    return {
        item.key: row(
            key=item.key, arm=item.arm.title, rate=item.config.learning_rate, config=item.config.to_json(),
            shares={"forget/direct/all": [9, 1.0, left], "retain/direct/all": [9, 0.9, 0.9 * retained]},
        )
        for item in items
    }  # fmt: skip


@pytest.mark.slow
def test_it_chooses_on_one_half_and_reports_the_other(monkeypatch, facts, base, tmp_path):
    monkeypatch.setattr(real, "RATES", (1e-3, 1e-2))  # for a tiny model
    own, changes = Place("real", tmp_path, (1, 2)), {"epochs": 3, "lora_rank": 8, "lora_alpha": 16}
    place = real.placed(own, facts, str(base), "text-examples", changes, ("adapop", "redirect"))
    assert run(place, in_this_process, lambda line: None) == {}
    rows = place.results.rows()
    trials, reported = ([row for row in rows.values() if (real.AT in row["arm"]) == tried] for tried in (True, False))
    assert {row["seed"] for row in trials} == {0} and not any(row["failed"] for row in rows.values())
    assert sorted((row["arm"], row["seed"]) for row in reported) == [
        ("AdaPop", 1), ("AdaPop", 2), ("Redirect (ours)", 1), ("Redirect (ours)", 2)]  # fmt: skip
    models = {json.loads(row["config"])["model"] for row in rows.values()}
    assert models == {"model"}, "its name, and no path of this machine"
    for one in trials:
        assert {cell.rpartition("/")[0] for cell in one["shares"]} == {"forget/direct", "retain/direct"}
        assert one["shares"]["forget/direct/all"][:2] == (len(facts_of(facts.forget, "validation")), 1.0)
    whole = reported[0]["shares"]
    assert whole["forget/reworded/all"][0] == len(facts_of(facts.forget, "test"))
    assert {"holdout/reworded/all", "forget/attacks/all", "retain/direct/all"} <= whole.keys()
    assert any(row["shares"]["forget/direct/all"][2] < 1 for row in reported), "something was forgotten"
    assert "| AdaPop | " in write(place)
    assert run(place, in_this_process, lambda line: None) == {} and place.results.rows() == rows


@pytest.mark.parametrize("left, tried, rate", [
    (0.2, 1, 5e-5),  # done at the lowest rate
    (0.9, 3, 5e-5),  # never enough: all are alike, the first is taken
])  # fmt: skip
def test_rates_go_up_until_half_is_forgotten(facts, tmp_path, left, tried, rate):
    place = real.placed(Place("real", tmp_path, (1,)), facts, "smollm2", "text-examples", {}, ("npo",))
    known = {}
    while new := [item for item in place.items(known) if item.split == "validation" and item.key not in known]:
        assert not [item for item in place.items(known) if item.split == "test"]
        known |= arm_rows(new, left, 0.9)
    (reported,) = [item for item in place.items(known) if item.split == "test"]
    assert len(known) == tried
    assert (reported.config.learning_rate, reported.config.alpha0) == (rate, 1.0)
    assert (reported.arm.title, reported.seed) == ("NPO", 1)


def test_a_share_is_of_what_the_original_knew():
    forget = {"forget/reworded/rare": [8, 0.5, 0.1], "forget/reworded/popular": [8, 0.8, 0.6]}
    one = row(shares=forget | {"holdout/direct/all": [9, 0.1, 0.1]})
    assert real.OUTCOMES["popular − rare"](one) == pytest.approx(0.6 / 0.8 - 0.1 / 0.5)
    assert real.share("holdout", "direct")(one) is None, "too little was known"
    assert real.share("utility", "direct")(one) is None, "it was not asked"
    assert cells(real.outcome_table({"AdaPop": [one]}), "AdaPop")["rare"].startswith("0.20")


def test_a_hub_id_makes_no_folder(facts, tmp_path):
    place = real.placed(Place("real", tmp_path, (1,)), facts, "Qwen/Qwen2.5-0.5B-Instruct", "chat", {}, ("npo",))
    assert place.name == "real-Qwen-Qwen2.5-0.5B-Instruct-chat"


def test_what_it_cannot_do_is_named(facts, tmp_path):
    for asking, changes, names, match in (
        ("loudly", {}, ("npo",), "--asking"), ("chat", {}, ("nobody",), "nobody"),
        ("chat", {"learning_rate": 1.0}, ("npo",), "learning_rate")):  # fmt: skip
        raised(ConfigError, match, real.placed, Place("real", tmp_path, (1,)), facts, "smollm2", asking, changes, names)


@pytest.mark.slow
def test_a_base_is_loaded_once_and_its_adapter_set_back(base):
    config = make_config(model=str(base), precision="float32", asking="text-examples")
    model = trial.fresh_model(config)
    before = {name: value.clone() for name, value in model.adapter_state().items()}
    for value in model.parameters:
        value.data.add_(1.0)
    assert trial.fresh_model(config) is model
    assert all(value.equal(before[name]) for name, value in model.adapter_state().items())
    assert trial.fresh_model(replace(config, seed=1)) is not model


MODEL = "some/model"


@pytest.fixture(scope="module")
def mine():
    given = sandbox_facts()
    return replace(given, name="mine", forget=given.forget[:4])


@pytest.mark.slow
def test_a_sweep_goes_over_the_papers_rates_or_around_a_given_one(mine, tmp_path):
    for model, given, rates in (
        (MODEL, {}, (1e-6, 5e-6, 1e-5, 5e-5, 1e-4)),  # the paper's sweep
        ("people", {}, (2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3)),
        (MODEL, {"learning_rate": 1e-4}, (3.16e-5, 5.62e-5, 1e-4, 1.78e-4, 3.16e-4)),
    ):
        assert rates_for(model, given) == rates
    for name in ("rates", "forgetting"):
        items = placed(Place(name, tmp_path, (0,)), mine, MODEL, {}).items({})
        assert {item.config.learning_rate for item in items} == {1e-6, 5e-6, 1e-5, 5e-5, 1e-4}
        assert {item.config.model for item in items} == {MODEL} and {item.custom.facts for item in items} == {mine}

    def rates(changes):
        items = placed(Place("ablation", tmp_path, (0,)), mine, MODEL, changes).items({})
        return sorted(item.config.learning_rate for item in items if item.arm.title.startswith("AdaPop, α fixed, β"))

    assert rates({}) == [1e-6, 5e-6, 1e-5, 5e-5, 1e-4] and rates({"learning_rate": 3e-5}) == [3e-5]


@pytest.mark.slow
def test_what_needs_no_sandbox_takes_ones_own_facts_and_the_others_refuse_them(mine, tmp_path):
    for name in OWN:
        assert placed(Place(name, tmp_path, (0,)), mine, MODEL, {}).items({})
    for name in ("proxies", "levels", "worlds"):
        with pytest.raises(ConfigError, match=f"bench {name} is about the sandbox alone"):
            placed(Place(name, tmp_path, (0,)), mine, MODEL, {})


def test_wrong_scores_are_made_of_the_facts_own(mine, tmp_path):
    items = placed(Place("scores", tmp_path, (0,)), mine, "sandbox", {}).items({})
    given = {fact.id: fact.score for fact in mine.forget}
    for item in items:
        scores = trial.other_scores(item.arm.scores, 0, item.custom.facts)
        assert scores.keys() == given.keys()
        if item.arm.scores.startswith(("tiers", "swapped")):
            assert sorted(scores.values()) == sorted(given.values())
