from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import linear

from adapop.config.presets import make_config
from adapop.errors import ConfigError
from adapop.facts.fact import SANDBOX
from adapop.model import precision as own
from adapop.model.adapted import AdaptedModel
from adapop.model.adapter import with_adapter
from adapop.model.loading import adapted_model
from adapop.model.precision import emulated_bfloat16, logits_of, set_products, speed_note, with_precision
from adapop.model.tokens import Row, collate
from adapop.probes.measure import quick
from adapop.remark import Remark
from adapop.runs.execute import prepare
from adapop.runs.preflight import preflight
from families import random_network, saved

T4, A100 = ("Tesla T4", (7, 5)), ("NVIDIA A100", (8, 0))
SECONDS = {"float32": 2.0, "bfloat16": 1.0}


@pytest.mark.parametrize(("gpus", "warned"), [([], False), ([T4], True), ([A100], False), ([A100, T4], True)])
def test_a_gpu_without_bf16_is_named_before_a_run(sandbox, monkeypatch, gpus, warned):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(gpus))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(gpus))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: gpus[device][0])
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: gpus[device][1])
    slow = Remark("emulated_bfloat16", {"gpu": "Tesla T4", "capability": "7.5"})
    assert (slow in preflight(sandbox, make_config(model="any/model")).costs) == warned
    for changes in ({"model": "any/model", "precision": "float32"}, {"model": SANDBOX}):
        assert emulated_bfloat16(make_config(**changes)) == ()


@pytest.fixture
def as_before():
    yield
    torch.set_float32_matmul_precision("highest")


@pytest.mark.usefixtures("as_before")
def test_products_in_float32_are_rounded_beside_bf16_on_a_gpu_alone_and_never_in_the_output_layer(monkeypatch):
    for precision, device, expected in (
        ("bfloat16", "cuda", "high"), ("float32", "cuda", "highest"), ("bfloat16", "cpu", "highest")):  # fmt: skip
        set_products(make_config(model="a/model", precision=precision), torch.device(device))
        assert torch.get_float32_matmul_precision() == expected
    torch.set_float32_matmul_precision("high")
    adapted_model(make_config())
    assert torch.get_float32_matmul_precision() == "highest", "the sandbox's numbers, whatever ran before"
    torch.set_float32_matmul_precision("high")
    precisions, multiply = [], torch.Tensor.__matmul__

    def noted(one, other):
        precisions.append(torch.get_float32_matmul_precision())
        return multiply(one, other)

    monkeypatch.setattr(torch.Tensor, "__matmul__", noted)
    states = torch.randn(3, 16, dtype=torch.bfloat16, requires_grad=True)
    logits_of(torch.nn.Linear(16, 50, dtype=torch.bfloat16).requires_grad_(False), states).sum().backward()
    assert precisions == ["highest"] * 2, "forward and backward"
    assert torch.get_float32_matmul_precision() == "high"


def scored(kind, monkeypatch, exact=True):
    torch.manual_seed(0)
    base = random_network(kind).bfloat16()
    base.get_output_embeddings().weight.data *= 40
    model = AdaptedModel(with_adapter(base, make_config(lora_rank=2)), SimpleNamespace(pad_token_id=0))
    model.network.eval()
    if not exact:
        monkeypatch.setattr(own, "NARROW", ())
    return model, model.score(collate([Row((5, 6, 7, 8), (14, 15), 0), Row((5, 9), (16,), 1)], 0), logits=True)


@pytest.mark.parametrize("part", [7, own.PART])
def test_the_output_layer_multiplies_in_float32(monkeypatch, part):
    """Values and gradients, whatever part of the matrix is widened at a time."""
    monkeypatch.setattr(own, "PART", part)
    layer = torch.nn.Linear(16, 50, dtype=torch.bfloat16).requires_grad_(False)
    states, saved_tensors = torch.randn(9, 16, dtype=torch.bfloat16, requires_grad=True), []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: saved_tensors.append(tensor) or tensor, lambda tensor: tensor
    ):
        output = own.logits_of(layer, states)
    assert output.dtype == torch.float32 and {tensor.dtype for tensor in saved_tensors} == {torch.bfloat16}
    expected = linear(states.float(), layer.weight.float(), layer.bias.float())
    torch.testing.assert_close(output, expected)
    assert not torch.equal(layer(states).float(), expected)
    weights = torch.randn(9, 50)
    (ours,), (theirs,) = (torch.autograd.grad((logits * weights).sum(), states) for logits in (output, expected))
    torch.testing.assert_close(ours, theirs)


def test_scores_in_bf16_are_not_rounded_to_bf16_and_confidence_is_not_read_off_replies(monkeypatch, fresh, small):
    model, fine = scored("llama", monkeypatch)
    assert fine.logits.dtype == torch.float32 and not torch.equal(fine.logits, fine.logits.bfloat16().float())
    _, coarse = scored("llama", monkeypatch, exact=False)
    assert torch.equal(coarse.logits, coarse.logits.bfloat16().float())
    assert 1e-3 < (fine.nll - coarse.nll).abs().max() < 0.5
    assert model.packs, "rows share their beginning in bf16 as well"
    model = fresh()
    assert any(quick(model, small, 2).confidence["direct"])
    model.narrow = True
    assert not any(quick(model, small, 2).confidence["direct"])


@pytest.fixture
def trials(monkeypatch):
    """Trials that take the seconds of SECONDS; a list of the precisions tried so far."""
    tried = []
    monkeypatch.setattr(own, "_seconds", lambda sizes, name: (tried.append(name), SECONDS[name])[1])
    return tried


def precision(model="any/model", **changes):
    return with_precision(make_config(model=model, **changes)).precision


def test_the_faster_one_is_taken_and_tried_once(trials, monkeypatch):
    assert precision() == "bfloat16" and precision() == "bfloat16" and trials == ["float32", "bfloat16"]
    monkeypatch.setitem(SECONDS, "bfloat16", 5.0)
    assert precision("gemma3-270m") == "float32", "another shape is another trial"
    assert len(trials) == 4
    (note,) = speed_note(with_precision(make_config(model="gemma3-270m")))
    assert note == Remark("precision_tried", {"precision": "float32", "other": "bfloat16", "factor": 2.5})


def test_nothing_is_tried_where_something_else_decides(trials, monkeypatch):
    assert precision(precision="float32") == "float32" and precision(precision="bfloat16") == "bfloat16"
    assert precision("sandbox") == precision("people", precision="auto") == "float32"
    assert precision("meta-llama/Llama-3.1-8B-Instruct") in ("bfloat16", "float32")
    trials.clear()
    monkeypatch.setattr(own.psutil, "virtual_memory", lambda: type("Memory", (), {"available": 2**30}))
    assert precision("Qwen/Qwen2.5-7B-Instruct") == "bfloat16", "in float32 it does not fit"
    monkeypatch.setattr(own, "has_gpu", lambda config: True)
    assert precision() == "bfloat16"
    assert trials == [] and speed_note(make_config(model="any/model", precision="bfloat16")) == ()


def test_without_a_usable_cache_there_is_no_trial_and_no_note(trials, monkeypatch):
    def unusable():
        raise ConfigError("The cache folder cannot be used.", "")

    monkeypatch.setattr(own, "Cache", unusable)
    assert precision() == "float32" and trials == [] and speed_note(make_config(model="any/model")) == ()


def test_a_trial_takes_time_in_either_precision_for_every_family(tmp_path):
    for family in ("llama", "neox"):
        folder = saved(family, tmp_path / family)
        sizes = own._sizes(own.shape_of(str(folder)))
        assert all(own._seconds(sizes, name) > 0 for name in ("float32", "bfloat16"))


def test_a_run_records_what_it_came_to_and_its_model_is_in_it(tiny, trials, tmp_path):
    folder = saved("llama", tmp_path / "model")
    run = prepare(make_config(model=str(folder)), tiny, tmp_path / "runs")
    assert run.config.precision == "bfloat16"
    model = adapted_model(run.config)
    assert model.network.get_base_model().get_input_embeddings().weight.dtype == torch.bfloat16
    (note,) = (note for note in model.notes if note.kind == "precision_tried")
    assert note.values["precision"] == "bfloat16"
