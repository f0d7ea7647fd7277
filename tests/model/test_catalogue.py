import pytest

from adapop.config.presets import make_config
from adapop.facts.benchmarks import SYSTEM, benchmark_of, system_prompt
from adapop.facts.fact import SANDBOX, Fact, FactSet
from adapop.model.catalogue import MODELS, footprint, preset_of
from adapop.popularity.beta import BetaMap
from adapop.remark import Remark
from adapop.report import published
from adapop.report.beside_paper import differences, setting_of
from adapop.runs.preflight import preflight


def facts(*ids):
    return FactSet("any", tuple(Fact(name, "Q?", "A") for name in ids))


@pytest.mark.parametrize("preset", MODELS.values(), ids=lambda preset: preset.id)
def test_shape_gives_the_parameters_that_the_model_is_known_for(preset):
    weights = footprint(preset.shape, make_config(model=preset.id), tokens=1).weights
    assert weights / 2 == pytest.approx(1e9 * preset.billions, rel=0.01)  # two bytes each


def test_models_of_the_papers_are_there_and_a_folder_is_known_by_its_name():
    assert {preset.paper for preset in MODELS.values()} == {"", *published.PAPER_MODELS}
    for name, title in published.PAPER_MODELS.items():
        (model,) = [p for p in MODELS.values() if p.id.rpartition("/")[2].lower() == title.lower()]
        assert model.paper == name
    # As trained: 16 or 36 layers, 50,304 tokens; twins differ in what they read alone.
    for size in ("1b", "8b"):
        read, never = (MODELS[f"allegrolab/hubble-{size}-100b_toks-{kind}-hf"] for kind in ("perturbed", "standard"))
        assert read.shape == never.shape and read.shape["vocab_size"] == 50304
    assert MODELS["meta-llama/Llama-3.1-8B-Instruct"].title == "Llama-3.1-8B-Instruct (8.03 B, gated)"
    for name, model_id in (
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("/data/llama-3.1-8b-instruct/", "meta-llama/Llama-3.1-8B-Instruct"),
        ("C:\\models\\gemma-7b-it", "google/gemma-7b-it"), ("gemma-7b", None), (SANDBOX, None), ("", None),
    ):  # fmt: skip
        assert getattr(preset_of(name), "id", None) == model_id


def test_what_is_known_of_a_benchmark_and_a_model():
    assert benchmark_of(facts("duet-rare-0", "duet-popular-3")) == "duet"
    assert benchmark_of(facts("rwku-forget-0")) == "rwku"
    assert benchmark_of(facts("duet-rare-0", "rwku-forget-0")) is None
    assert benchmark_of(facts("one")) is None and benchmark_of(facts()) is None
    assert system_prompt("any/model", facts("duet-rare-0")) == SYSTEM
    assert system_prompt("any/model", facts("one")) == system_prompt(SANDBOX, facts("duet-rare-0")) == ""

    def costs(model):
        return preflight(facts("one"), make_config(model=model)).costs

    memory, time, licence, note = costs("google/gemma-7b-it")
    assert 2 * 8.5e9 < memory.values["bytes"] < 20 * 2**30
    assert licence.values["page"] == "https://huggingface.co/google/gemma-7b-it" and "no system role" in note
    assert len(costs("Qwen/Qwen2.5-0.5B-Instruct")) == len(costs("/data/Llama-3.1-8B-Instruct")) == 2
    assert costs("some/other") == (Remark("memory_unknown"), time)


def test_what_differs_is_named():
    duet, rwku = facts("duet-rare-0"), facts("rwku-forget-0")
    llama = "meta-llama/Llama-3.1-8B-Instruct"
    assert setting_of(make_config(model=llama), rwku) == "Llama RWKU"
    assert setting_of(make_config(model="Qwen/Qwen2.5-0.5B-Instruct"), duet) is None
    assert setting_of(make_config(model=llama), facts("one")) is None

    def differences_of(*named, of=duet, model=llama, **changes):
        return differences(make_config(*named, model=model, **changes), of)

    plain = differences_of().rows
    for setting, row in (
        ({"learning_rate": 2e-4}, ("learning rate", "0.0002", "0.0001")),
        ({"controller": "fixed"}, ("controller", "fixed", "dual")),
        ({"beta": BetaMap.constant(1.0)}, ("beta", "a 1, b 0, low 0.05, high 2", "a 58.7, b 0.796, low 0.05, high 2")),
        ({"system": "Answer."}, ("system prompt", "of its own", "asks for short facts")),
    ):
        assert row in differences_of(**setting).rows and row not in plain
    tuned = differences_of(model="SwetieePawsss/Llama-3.1-8B-Instruct-DUET-LoRA-merged").rows
    starts = [dict((name, own) for name, own, _ in rows)["start"] for rows in (tuned, plain)]
    assert starts == ["fine-tuned on DUET by LoRA", "not fine-tuned"]
    notes = differences_of().note, differences_of(preset="as-released").note
    assert notes[0].endswith("the paper's text.") and notes[1].endswith("the paper's code.")
    assert ("scores", "of its own", "never published") in differences_of(of=rwku).rows
