"""In bf16 nothing of an answer's score is lost in the output layer, and no copy of it in float32 is kept."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import linear

from adapop.config.presets import make_config
from adapop.model import precision as head
from adapop.model.adapted import AdaptedModel
from adapop.model.adapter import with_adapter
from adapop.model.tokens import Row, collate
from adapop.probes.measure import quick
from families import random_network

ROWS = [Row((5, 6, 7, 8), (14, 15), 0), Row((5, 9), (16,), 1)]


def scored(kind, monkeypatch, exact=True):
    """A random model in bf16 with logits of some size, and the scores of its rows."""
    torch.manual_seed(0)
    base = random_network(kind).bfloat16()
    base.get_output_embeddings().weight.data *= 40
    model = AdaptedModel(with_adapter(base, make_config(lora_rank=2)), SimpleNamespace(pad_token_id=0))
    model.network.eval()
    if not exact:
        monkeypatch.setattr(head, "NARROW", ())
    return model, model.score(collate(ROWS, 0), logits=True)


@pytest.mark.parametrize("part", [7, head.PART])
def test_the_output_layer_multiplies_in_float32(monkeypatch, part):
    """Values and gradients, whatever part of the matrix is widened at a time."""
    monkeypatch.setattr(head, "PART", part)
    layer = torch.nn.Linear(16, 50, dtype=torch.bfloat16).requires_grad_(False)
    states = torch.randn(9, 16, dtype=torch.bfloat16, requires_grad=True)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        found = head.logits_of(layer, states)
    assert found.dtype == torch.float32 and {tensor.dtype for tensor in kept} == {torch.bfloat16}
    wanted = linear(states.float(), layer.weight.float(), layer.bias.float())
    torch.testing.assert_close(found, wanted)
    assert not torch.equal(layer(states).float(), wanted)
    weights = torch.randn(9, 50)
    (ours,), (theirs,) = (torch.autograd.grad((logits * weights).sum(), states) for logits in (found, wanted))
    torch.testing.assert_close(ours, theirs)


def test_scores_in_bf16_are_not_rounded_to_bf16(monkeypatch):
    model, fine = scored("llama", monkeypatch)
    assert fine.logits.dtype == torch.float32 and not torch.equal(fine.logits, fine.logits.bfloat16().float())
    _, coarse = scored("llama", monkeypatch, exact=False)
    assert torch.equal(coarse.logits, coarse.logits.bfloat16().float())
    assert 1e-3 < (fine.nll - coarse.nll).abs().max() < 0.5
    assert model.packs, "rows share their beginning in bf16 as well"


def test_confidence_in_bf16_is_not_read_off_the_replies(fresh, small):
    model = fresh()
    assert any(quick(model, small, 2).confidence["direct"])
    model.narrow = True
    assert not any(quick(model, small, 2).confidence["direct"])
