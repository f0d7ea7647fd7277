import json
from dataclasses import replace

import pytest

from adapop.config.presets import make_config
from adapop.errors import AdaPopError
from adapop.facts.catalog import load_facts
from adapop.facts.fact import Fact, FactSet
from adapop.model.catalogue import SANDBOX_MODEL, shape_of
from adapop.model.converted import INSTALL
from adapop.model.tokens import encode_facts
from adapop.paths import PACKAGED
from adapop.popularity.beta import BetaMap
from adapop.remark import Remark
from adapop.runs.amount import total_steps
from adapop.runs.pace import Pace
from adapop.runs.preflight import preflight
from raised import raised

SHAPE = {"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 10, "intermediate_size": 768}
SHAPE |= {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 8192, "tie_word_embeddings": True}


def test_the_sandbox_is_ready_and_says_what_will_happen(sandbox):
    plan = preflight(sandbox, make_config())
    assert (plan.readiness, plan.problems, plan.doubts) == ("ready", (), ())
    counts = {"facts": 256, "retain": 256, "holdout": 256, "steps": 80, "epochs": 5}
    assert plan.counts == Remark("counts", counts)
    assert [cost.kind for cost in plan.costs] == ["longest_row", "time_unknown", "memory_more"]
    uneven = preflight(sandbox, make_config(batch=25)).counts
    assert uneven == Remark("counts_uneven", counts | {"steps": 55, "sizes": "23 or 24"}), "eleven even steps an epoch"


def test_what_stands_in_the_way(sandbox, monkeypatch):
    def problems(facts, *named, **changes):
        return preflight(facts, make_config(*named, **changes)).problems

    assert problems(replace(sandbox, forget=())) == (Remark("no_forget"),)
    assert problems(replace(sandbox, retain=())) == (Remark("no_retain"),)
    facts = replace(sandbox, forget=(replace(sandbox.forget[0], score=None), *sandbox.forget[1:]))
    assert problems(facts)[0] == Remark("no_score", {"facts": 1})
    assert problems(facts, "wga") == problems(facts, preset="beta-1") == ()
    long = replace(sandbox.forget[0], question="word " * SANDBOX_MODEL["max_position_embeddings"])
    plan = preflight(replace(sandbox, forget=(long, *sandbox.forget[1:])), make_config())
    (problem,) = plan.problems
    assert problem.kind == "too_long" and problem.values["tokens"] > problem.values["context"] == 1024
    raised(AdaPopError, "the model reads 1,024", plan.check)
    monkeypatch.setitem(PACKAGED, "smollm2", ("no_such_package",))
    cities = load_facts("cities")
    assert INSTALL["smollm2"] in problems(cities, model="smollm2")[-1]
    assert "no such file" in problems(cities, model="no.gguf")[-1]


def test_what_is_doubtful(sandbox):
    def doubts(facts, *named, **changes):
        return preflight(facts, make_config(*named, **changes)).doubts

    facts = replace(sandbox, retain=(*sandbox.retain, replace(sandbox.forget[0], id="twice")))
    assert doubts(facts)[0] == Remark("both_ways", {"questions": 1})
    facts = replace(sandbox, forget=(replace(sandbox.forget[0], score=None), *sandbox.forget[1:]))
    assert doubts(facts, missing_score="uniform")[0] == Remark("no_score_uniform", {"facts": 1})
    forget = tuple(Fact(str(i), f"Who {i}?", "Ann", score=10.0**i) for i in range(1, 5))
    assert Remark("answers_apart") in doubts(FactSet("mine", forget, (Fact("r", "Who r?", "Bob"),)))
    own = Fact("a", "Which of Bern and Rome lies in Italy?", "Rome", score=10.0)
    facts = FactSet("mine", (own, Fact("b", "Who?", "Ann", score=20.0)), (Fact("r", "Where?", "Rome"),))
    (doubt,) = doubts(facts, "wga", model="some/model")
    assert doubt == Remark("weak_answers", {"answers": 1, "named": "Rome (in its question)"})
    alike = replace(sandbox, forget=tuple(replace(fact, score=500.0) for fact in sandbox.forget))
    assert doubts(alike) and doubts(alike, beta=BetaMap.constant(1.0)) == ()
    assert Remark("best_flatters") in doubts(sandbox, keep="best")
    own = replace(sandbox, name="mine", forget=(Fact("a", "In which country is Siena?", "Italy", score=3.0),))
    assert Remark("not_its_world", {"questions": 1}) in doubts(own, "wga")
    assert "not_its_world" not in [doubt.kind for doubt in doubts(own, "wga", model="some/model")]


def test_the_longest_row_and_the_time_are_those_of_training(sandbox, model):
    first, *others = sandbox.forget
    for question in (first.question, "Who is <|user|> Bob, and who <|assistant|> Ann?"):
        facts = replace(sandbox, forget=(replace(first, question=question), *others))
        rows = encode_facts(model.tokenizer, [*facts.forget, *facts.retain])
        longest = Remark("longest_row", {"tokens": max(row.length for row in rows)})
        assert preflight(facts, make_config()).costs[0] == longest
    config = make_config(epochs=2)
    assert total_steps(len(sandbox.forget), config) == 32
    timed = preflight(sandbox, config, Pace(0.2, 0.5, 0.6)).costs[1]
    assert timed.kind == "time_by_last_run" and timed.values["seconds"] == pytest.approx(8.0)
    assert preflight(sandbox, config).costs[1] == Remark("time_unknown"), "nothing was timed yet"
    # By the presets' configurations: nothing is loaded or downloaded, nothing is timed.
    for model in ("meta-llama/Llama-3.1-8B-Instruct", "some/unknown-model"):
        memory, time, *_ = preflight(sandbox, make_config(model=model)).costs
        assert time == Remark("time_unknown")
        assert memory.kind == ("memory_unknown" if model == "some/unknown-model" else "memory_least")
    memory, timed, *_ = preflight(sandbox, make_config(model="google/gemma-7b-it", epochs=2), Pace(5, 30, 60)).costs
    assert "at least 17.2 GiB" in memory.text()
    assert timed == Remark("time_by_last_run", {"seconds": 16 * 5 + 2 * 30 + 60}) and "about 3 min" in timed.text()


def test_a_folder_s_config_json_is_enough_for_the_memory(sandbox, tmp_path, monkeypatch):
    def memory_cost():
        return preflight(sandbox, make_config(model=str(tmp_path))).costs[0]

    path, unknown = tmp_path / "config.json", Remark("memory_unknown")
    assert shape_of(str(tmp_path)) is None and memory_cost() == unknown
    odd = {"hidden_size": "256"}, {"head_dim": 2.5}, {"intermediate_size": [512, 1024]}, {"num_experts": 8}
    for spoilt in ("[]", "{", "[" * 10**5, '{"text_config": 1}', *(json.dumps(SHAPE | change) for change in odd)):
        path.write_text(spoilt)
        assert shape_of(str(tmp_path)) is None and memory_cost() == unknown
    path.write_text(json.dumps({"text_config": SHAPE}))
    assert shape_of(str(tmp_path)) == SHAPE
    least = memory_cost()
    assert least.kind == "memory_least", "no GPU is here, and none is spoken of"
    monkeypatch.setattr("adapop.model.precision.has_gpu", lambda config: True)
    assert memory_cost() == Remark("memory_of_gpu", least.values)
