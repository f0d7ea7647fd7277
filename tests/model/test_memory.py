"""The estimate against what a process really takes, for a model of a few MB made on the spot."""

import json
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoConfig

from adapop.config.presets import make_config
from adapop.experiments.speed.throughput import random_model
from adapop.model.adapted import AdaptedModel
from adapop.model.catalogue import shape_of
from adapop.model.memory import SANDBOX_MODEL, adapter_size, footprint, operations
from adapop.model.tokens import Row, collate

SHAPE = {
    "model_type": "llama", "vocab_size": 2000, "hidden_size": 256, "intermediate_size": 704, "num_hidden_layers": 6,
    "num_attention_heads": 8, "num_key_value_heads": 4, "tie_word_embeddings": False,
}  # fmt: skip


def kept_by(shape, config) -> tuple[int, int, int]:
    """Of a model of the shape: bytes of its base, weights of its adapter, bytes that a step keeps beside both."""
    model = random_model(shape, config, "cpu")
    model.network.train()
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor, tensor.untyped_storage().nbytes()
        return tensor

    rows = [Row(tuple(range(10, 71 - i % 2)), (5, 6, 7)[: 2 + i % 2], i) for i in range(16)]
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model.score(collate(rows, 0)).nll.sum()
    assert loss.requires_grad
    own = {weight.untyped_storage().data_ptr() for weight in model.network.parameters()}
    base = sum(weight.numel() * 4 for name, weight in model.network.named_parameters() if "lora" not in name)
    adapter = sum(weight.numel() for name, weight in model.network.named_parameters() if "lora" in name)
    return base, adapter, sum(size for place, (_, size) in kept.items() if place not in own)


@pytest.mark.parametrize("kind", [{"model_type": "llama"}, {"model_type": "gemma", "head_dim": 32}], ids=str)
def test_estimate_is_what_a_step_keeps(kind):
    _close({**SHAPE, **kind}, make_config("gd", model="x", precision="float32"))


@pytest.mark.parametrize("targets", [("c_attn", "c_proj"), ("all-linear",)])
def test_estimate_is_what_a_step_of_gpt2_keeps_by_its_own_names(targets, tmp_path):
    own = {"model_type": "gpt2", "vocab_size": 2000, "n_embd": 256, "n_layer": 6, "n_head": 8, "n_positions": 128,
           "n_inner": None, "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(own))
    _close(shape_of(str(tmp_path)), make_config("gd", model="x", precision="float32", lora_targets=targets))


def _close(shape, config):
    weights, adapter, kept = kept_by(shape, config)
    estimate = footprint(shape, config, 63, rows=16, answer=3)
    assert estimate.weights == weights
    assert adapter_size(shape, config) == adapter
    assert 0.95 * kept < estimate.activations < 1.2 * kept  # and what passes through memory in the backward pass


def test_estimates_of_other_models():
    plain = footprint(SHAPE, make_config("gd", model="x"), 63, rows=16)
    four = footprint(SHAPE, make_config("gd", model="x", four_bit=True), 63, rows=16)
    assert 0.25 < four.weights / plain.weights < 0.6 and four.activations == plain.activations
    # A block has 4 * 128 * 128 + 3 * 128 * 384 weights, its adapter 32 * (4 * 256 + 3 * 512).
    config = make_config()
    block, adapter = 4 * 128 * 128 + 3 * 128 * 384, 32 * (4 * 256 + 3 * 512)
    forward = 2 * 4 * (block + adapter) * 10 + 2 * 128 * 1728 * 2
    assert operations(SANDBOX_MODEL, config, 10, 2, backward=False) == forward
    assert operations(SANDBOX_MODEL, config, 10, 2) == 2 * forward + 2 * 4 * adapter * 10


def test_models_that_name_their_numbers_otherwise_are_estimated():
    for kind in ("gpt2", "gptj", "opt", "falcon", "bloom", "mpt"):
        network = SimpleNamespace(get_base_model=lambda kind=kind: SimpleNamespace(config=AutoConfig.for_model(kind)))
        shape = AdaptedModel.shape.fget(SimpleNamespace(network=network))
        assert footprint(shape, make_config("gd", model="x"), 64, rows=1).activations > 0
