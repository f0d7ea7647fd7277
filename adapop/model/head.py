"""Logits in float32 of a model whose weights are narrower: in bf16 a logit near 29 is off by up to 0.06."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from adapop.model.precision import exact_products

NARROW = (torch.bfloat16, torch.float16)
PART = 16_384  # rows of the output layer that are in float32 at a time


def logits_of(head: nn.Module, states: Tensor) -> Tensor:
    """What an output layer makes of states [N, D]: [N, V], in float32 where its own weights are narrower.

    A layer of another kind, such as one with an adapter, gives what it gives.
    """
    return _in_float32(head, states) if _is_narrow(head) else head(states)


def widened(head: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
    """The output of a layer that was just called, as `logits_of`: a forward hook."""
    return _in_float32(head, inputs[0]).to(output.device) if _is_narrow(head) else output


def full_precision(values: Tensor) -> Tensor:
    """The values in float32, or in float64 if they are."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _is_narrow(head: nn.Module) -> bool:
    return type(head) is nn.Linear and head.weight.dtype in NARROW


def _in_float32(head: nn.Linear, states: Tensor) -> Tensor:
    logits = _Product.apply(states.to(head.weight.device), head.weight)
    return logits if head.bias is None else logits + head.bias.float()


class _Product(torch.autograd.Function):
    """States [N, D] times a frozen matrix [V, D] in float32, of which only a part is held in float32."""

    @staticmethod
    @exact_products()
    def forward(ctx: Any, states: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight)
        ctx.dtype, states = states.dtype, states.float()
        logits = states.new_empty(len(states), len(weight))
        for columns, part in zip(logits.split(PART, 1), weight.split(PART)):
            columns.copy_(states @ part.float().T)
        return logits

    @staticmethod
    @once_differentiable
    @exact_products()
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (weight,) = ctx.saved_tensors
        states = gradient.new_zeros(len(gradient), weight.shape[1])
        for columns, part in zip(gradient.split(PART, 1), weight.split(PART)):
            states += columns @ part.float()
        return states.to(ctx.dtype), None
