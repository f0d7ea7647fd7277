"""The precision that a GPU here calculates in, and logits in float32 for models with narrower
weights: in bf16 a logit near 29 is off by up to 0.06."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from adapop.config.run import RunConfig
from adapop.remark import Remark

NARROW = (torch.bfloat16, torch.float16)
PART = 16_384  # rows of the output layer that are widened to float32 at a time
AMPERE = (8, 0)  # the first compute capability with bf16 arithmetic


def has_gpu(config: RunConfig) -> bool:
    """Whether there is a GPU here that a real model is put on."""
    return config.device != "cpu" and torch.cuda.is_available()


def emulated_bfloat16(config: RunConfig) -> tuple[Remark, ...]:
    """A remark if the run is in bf16 and a GPU here, such as a T4, only emulates it."""
    if config.precision == "float32" or not has_gpu(config):
        return ()
    for device in range(torch.cuda.device_count()):
        if (arch := torch.cuda.get_device_capability(device)) < AMPERE:
            about = {"gpu": torch.cuda.get_device_name(device), "capability": "{}.{}".format(*arch)}
            return (Remark("emulated_bfloat16", about),)
    return ()


@contextmanager
def exact_products() -> Iterator[None]:
    """A context in which float32 matrices are multiplied in float32, whatever torch is set to."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def set_products(config: RunConfig, device: torch.device) -> None:
    """Sets how this process multiplies float32 matrices, for the model that was just loaded.

    If the base is in bf16 on a GPU, only the adapter is in float32: its products are rounded to
    TF32, which is several times as fast and still finer than the base. Products of the output layer
    (`logits_of`) and of other models are not rounded."""
    rounded = config.precision == "bfloat16" and device.type == "cuda"
    torch.set_float32_matmul_precision("high" if rounded else "highest")


def logits_of(head: nn.Module, states: Tensor) -> Tensor:
    """The logits [N, V] that an output layer makes of states [N, D]; in float32 if its weights are
    narrower. A layer of another kind, such as one with an adapter, is just called."""
    return _in_float32(head, states) if _is_narrow(head) else head(states)


def widened(head: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
    """A forward hook that replaces a layer's output by that of `logits_of`."""
    return _in_float32(head, inputs[0]).to(output.device) if _is_narrow(head) else output


def full_precision(values: Tensor) -> Tensor:
    """The values in float32, or unchanged in float64."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _is_narrow(head: nn.Module) -> bool:
    return type(head) is nn.Linear and head.weight.dtype in NARROW


def _in_float32(head: nn.Linear, states: Tensor) -> Tensor:
    logits = _Product.apply(states.to(head.weight.device), head.weight)
    return logits if head.bias is None else logits + head.bias.float()


class _Product(torch.autograd.Function):
    """States [N, D] times a frozen matrix [V, D] in float32; the matrix is widened in parts."""

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
