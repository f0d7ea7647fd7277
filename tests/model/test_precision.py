"""A GPU without bf16 arithmetic is named before a run and after it; no GPU is none of it."""

import pytest
import torch

from adapop.config.presets import make_config
from adapop.facts.fact import SANDBOX
from adapop.model.loading import adapted_model
from adapop.model.precision import emulated_bfloat16, logits_of, set_products
from adapop.remark import Remark
from adapop.runs.preflight import preflight


def gpus(monkeypatch, *found):
    """From now on torch sees these GPUs, as (name, compute capability)."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(found))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(found))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: found[device][0])
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: found[device][1])


T4, A100 = ("Tesla T4", (7, 5)), ("NVIDIA A100", (8, 0))


@pytest.mark.parametrize(("found", "warned"), [([], False), ([T4], True), ([A100], False), ([A100, T4], True)])
def test_a_gpu_without_bf16_is_named_before_a_run(sandbox, monkeypatch, found, warned):
    gpus(monkeypatch, *found)
    slow = Remark("emulated_bfloat16", {"gpu": "Tesla T4", "capability": "7.5"})
    assert (slow in preflight(sandbox, make_config(model="any/model")).costs) == warned
    for changes in ({"model": "any/model", "precision": "float32"}, {"model": SANDBOX}):
        assert emulated_bfloat16(make_config(**changes)) == ()


@pytest.fixture
def as_before():
    """Torch's own setting again, after a test that changes it."""
    yield
    torch.set_float32_matmul_precision("highest")


@pytest.mark.usefixtures("as_before")
def test_only_beside_bf16_on_a_gpu_is_a_product_in_float32_rounded():
    for precision, device, found in (
        ("bfloat16", "cuda", "high"), ("float32", "cuda", "highest"), ("bfloat16", "cpu", "highest"),
    ):  # fmt: skip
        set_products(make_config(model="a/model", precision=precision), torch.device(device))
        assert torch.get_float32_matmul_precision() == found
    torch.set_float32_matmul_precision("high")
    adapted_model(make_config())
    assert torch.get_float32_matmul_precision() == "highest", "the sandbox's numbers, whatever ran before"


@pytest.mark.usefixtures("as_before")
def test_the_products_of_the_output_layer_are_never_rounded(monkeypatch):
    torch.set_float32_matmul_precision("high")
    found, multiply = [], torch.Tensor.__matmul__

    def noted(one, other):
        found.append(torch.get_float32_matmul_precision())
        return multiply(one, other)

    monkeypatch.setattr(torch.Tensor, "__matmul__", noted)
    states = torch.randn(3, 16, dtype=torch.bfloat16, requires_grad=True)
    logits_of(torch.nn.Linear(16, 50, dtype=torch.bfloat16).requires_grad_(False), states).sum().backward()
    assert found == ["highest"] * 2, "forward and backward"
    assert torch.get_float32_matmul_precision() == "high"
