"""The precision that "auto" comes to: what a trial on this CPU finds faster, once, unless something else decides."""

import pytest
import torch

from adapop.config.presets import make_config
from adapop.model import cpu_speed
from adapop.model.cpu_speed import speed_note, with_precision
from adapop.model.loading import adapted_model
from adapop.runs.execute import prepare
from families import saved


@pytest.fixture
def trials(monkeypatch):
    """Trials that take the seconds of SECONDS; a list of the precisions tried so far."""
    tried = []
    monkeypatch.setattr(cpu_speed, "_seconds", lambda sizes, name: (tried.append(name), SECONDS[name])[1])
    return tried


SECONDS = {"float32": 2.0, "bfloat16": 1.0}


def precision(model="any/model", **changes):
    return with_precision(make_config(model=model, **changes)).precision


def test_the_faster_one_is_taken_and_tried_once(trials, monkeypatch):
    assert precision() == "bfloat16" and precision() == "bfloat16"
    assert trials == ["float32", "bfloat16"]
    monkeypatch.setitem(SECONDS, "bfloat16", 5.0)
    assert precision("gemma3-270m") == "float32", "another shape is another trial"
    assert len(trials) == 4
    note = speed_note(with_precision(make_config(model="gemma3-270m")))
    assert note == ("Precision: float32; in a trial on this CPU a step in bfloat16 took 2.5 times as long.",)


def test_nothing_is_tried_where_something_else_decides(trials, monkeypatch):
    assert precision(precision="float32") == "float32"
    assert precision(precision="bfloat16") == "bfloat16"
    assert precision("sandbox") == precision("people", precision="auto") == "float32"
    assert precision("meta-llama/Llama-3.1-8B-Instruct") in ("bfloat16", "float32")
    trials.clear()
    monkeypatch.setattr(cpu_speed.psutil, "virtual_memory", lambda: type("Memory", (), {"available": 2**30}))
    assert precision("Qwen/Qwen2.5-7B-Instruct") == "bfloat16", "in float32 it does not fit"
    monkeypatch.setattr(cpu_speed, "has_gpu", lambda: True)
    assert precision() == "bfloat16"
    assert trials == [] and speed_note(make_config(model="any/model", precision="bfloat16")) == ()


def test_a_trial_takes_time_in_either_precision_for_every_family(tmp_path):
    for family in ("llama", "neox"):
        folder = saved(family, tmp_path / family)
        sizes = cpu_speed._sizes(cpu_speed.shape_of(str(folder)))
        assert all(cpu_speed._seconds(sizes, name) > 0 for name in ("float32", "bfloat16"))


def test_a_run_records_what_it_came_to_and_its_model_is_in_it(tiny, trials, tmp_path):
    folder = saved("llama", tmp_path / "model")
    run = prepare(make_config(model=str(folder)), tiny, tmp_path / "runs")
    assert run.config.precision == "bfloat16"
    model = adapted_model(run.config)
    assert model.network.get_base_model().get_input_embeddings().weight.dtype == torch.bfloat16
    assert any(note.startswith("Precision: bfloat16;") for note in model.notes)
