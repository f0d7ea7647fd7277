"""Each method's gradient in float64, against numerical differentiation: on a tiny GPT-NeoX with its adapter, as Llama's
norm computes in float32 whatever it is given. A weight under stop-gradient is a constant to the gradient but not to the
loss: `gradcheck` then looks at the loss with the weight written out, and the method must have its gradient."""

from types import SimpleNamespace

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch.autograd import gradcheck
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import Row, collate
from adapop.objectives import OBJECTIVES, ForgetBatch, make_objective
from stirred import stirred

OTHERS = [Row((1, 5, 9), (8, 2), 0), Row((1, 4), (10, 11), 1)]
ARGUMENTS = {"rmu": {"layer": 1}, "adaptive-rmu": {"layer": 0}}


@pytest.fixture(scope="module")
def tiny():
    """Two blocks, width 8, 12 tokens, float64; the adapter sits on one projection and does something."""
    torch.manual_seed(0)
    shape = dict(hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2, vocab_size=12)
    base = GPTNeoXForCausalLM(GPTNeoXConfig(**shape, initializer_range=0.6)).double()
    lora = LoraConfig(r=1, lora_alpha=2, target_modules=["query_key_value"], layers_to_transform=[0])
    network = get_peft_model(base, lora)
    stirred(network.double().eval(), 1.0)
    return AdaptedModel(network, tokenizer=SimpleNamespace(eos_token_id=11))


@pytest.fixture(scope="module")
def batch(tiny):
    tokens, other = (collate(rows, 0) for rows in ([Row((1, 5, 9), (7, 3, 2), 0), Row((1, 4), (6,), 1)], OTHERS))
    with torch.no_grad(), tiny.original():
        before, instead = tiny.score(tokens), tiny.score(other)
    assert before.nll.dtype == torch.float64
    return ForgetBatch(
        tokens, beta=torch.tensor([0.3, 0.3, 0.3, 1.7], dtype=torch.float64), reference_nll=before.nll,
        reference_gold=before.gold, other=other, other_reference_nll=instead.nll,
        unwanted=torch.tensor([True, False, True, True]), target=torch.linspace(0, 1, 8, dtype=torch.float64),
    )  # fmt: skip


def frozen(name, model, batch):
    """The method's loss as it stands, with its weights or targets as constants."""
    with torch.no_grad():
        now = model.score(batch.tokens, logits=True)
        p = torch.exp(-now.nll)
        if name == "ceu":
            gold = torch.nn.functional.one_hot(batch.tokens.target, 12).bool()
            target = now.logits.masked_fill(gold, -torch.inf).softmax(-1)
            counted = torch.tensor([0.0, 1.0, 1.0, 1.0])
        else:
            weight = {"adapop": p**batch.beta, "wga": p, "satimp": p**5 * (1 - p)}[name]

    def loss(*_):
        scored = model.score(batch.tokens, logits=True)
        if name == "ceu":
            return -(target * scored.logits.log_softmax(-1)).sum(-1) * counted
        return -weight * scored.nll

    return loss


@pytest.mark.quick("adapop-None", "wga-None", "npo-None", "rmu-arguments6", "altpo-None", "redirect-None")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [(objective.name, ARGUMENTS.get(objective.name)) for objective in OBJECTIVES] + [("redirect", {"kappa": 0.5})],
)
def test_gradient_of_the_forget_loss(tiny, batch, name, arguments):
    ours = lambda *_: make_objective(name, arguments).forget_loss(tiny, batch).loss  # noqa: E731
    if name not in ("adapop", "wga", "satimp", "ceu"):
        assert gradcheck(ours, tiny.parameters)  # which it changes in place, and puts back
        return
    theirs = frozen(name, tiny, batch)
    assert gradcheck(theirs, tiny.parameters)
    torch.testing.assert_close(ours(), theirs())
    for left, right in zip(*(torch.autograd.grad(loss().sum(), tiny.parameters) for loss in (ours, theirs))):
        torch.testing.assert_close(left, right)
        assert left.any()


@pytest.mark.parametrize("name", ["gd", "rmu"])
def test_gradient_of_the_retain_loss(tiny, batch, name):
    method = make_objective(name, ARGUMENTS.get(name))
    assert gradcheck(lambda *_: method.retain_loss(tiny, batch.tokens).loss, tiny.parameters)
    loss = method.retain_loss(tiny, batch.tokens).loss
    assert all(part.any() for part in torch.autograd.grad(loss.sum(), tiny.parameters))
