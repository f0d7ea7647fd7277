"""Scores and gradients of a batch are those of its rows alone, unpadded and in float32, whatever the architecture."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import cross_entropy

from adapop.config.presets import make_config
from adapop.config.run import ALL_LINEAR
from adapop.model.adapted import AdaptedModel
from adapop.model.loading import as_trained, with_adapter
from adapop.model.tokens import Row, collate
from families import ARCHITECTURES, random_network

SHARED = (5, 6, 7, 8, 9, 10)
ROWS = [
    Row((*SHARED, 11, 12, 13), (14, 15), 0),
    Row((*SHARED, 11), (16,), 1),
    Row((*SHARED, 20, 21, 22, 23, 24, 25), (26, 27, 28), 2),
    Row(SHARED, (29,), 3),
    Row((*SHARED, 11, 12, 13), (30, 31, 32, 33), 4),
]


def adapted(kind):
    """A random model with an adapter on all linear layers (or some that peft can adapt) that does something."""
    base = random_network(kind)
    as_trained(base)
    targets = {"gpt2": ("c_attn", "c_fc"), "mamba": ("in_proj", "x_proj")}.get(kind, (ALL_LINEAR,))
    network = with_adapter(base, make_config(lora_targets=targets, lora_rank=2))
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if "lora_B" in name:
                weight.copy_(0.1 * torch.randn(weight.shape, generator=generator))
    network.train()
    return AdaptedModel(network, SimpleNamespace(pad_token_id=0))


def gradient(model, nll):
    """Of a loss in which every token has a weight of its own."""
    model.network.zero_grad()
    (nll * torch.linspace(0.5, 1.5, len(nll))).sum().backward()
    return torch.cat([weight.grad.flatten() for weight in model.parameters if weight.grad is not None])


def alone(model):
    """The nll of each row's answer by a forward pass of its own: no padding, mask, positions or chosen logits."""
    found = []
    for row in ROWS:
        logits = model.network(input_ids=torch.tensor([row.prompt + row.answer]), use_cache=False).logits[0]
        predicted = logits[len(row.prompt) - 1 : -1].float()
        found.append(cross_entropy(predicted, torch.tensor(row.answer), reduction="none"))
    return torch.cat(found)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_batch_is_its_rows_alone(kind):
    model = adapted(kind)
    expected = alone(model)
    wanted = gradient(model, expected)
    nll = model.score(collate(ROWS, 0)).nll
    found = gradient(model, nll)
    torch.testing.assert_close(nll, expected, atol=1e-5, rtol=0)
    assert (found - wanted).norm() < 1e-5 * wanted.norm()
    assert expected.std() > 0.1 and wanted.norm() > 0.1
