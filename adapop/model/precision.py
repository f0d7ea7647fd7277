"""The precision that a GPU here calculates in, and logits in float32 for models with narrower
weights: in bf16 a logit near 29 is off by up to 0.06.

Precision "auto" is, on a CPU, the precision in which a trial of the model's shape is faster
(`with_precision`). Processors differ tenfold: some compute bfloat16, others emulate it. Results
stay in the cache.
"""

import json
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import torch
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers import LlamaConfig, LlamaForCausalLM

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.errors import ConfigError
from adapop.model.adapter import with_adapter
from adapop.model.catalogue import INNER, MODELS, footprint, shape_of
from adapop.online.cache import Cache
from adapop.paths import SHIPPED
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


AUTO, FLOAT32, BFLOAT16 = "auto", "float32", "bfloat16"
USUAL = "smollm2"  # its shape is tried in place of a model that is not on this disk yet
# a shape that no Llama can have; no usable cache
FAULTS = (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError, StrictDataclassError)
FAULTS += (ConfigError,)
BLOCKS, VOCABULARY = 2, 8_192  # of the model in a trial
ROWS, TOKENS, STEPS = 2, 8, 3  # the first step is slower, because it also sets things up


def with_precision(config: RunConfig) -> RunConfig:
    """The configuration, with precision "auto" replaced by the one to use."""
    if config.precision != AUTO:
        return config
    if config.model in SHIPPED:
        return replace(config, precision=FLOAT32)
    if has_gpu(config):
        return replace(config, precision=BFLOAT16)
    wide, shape = replace(config, precision=FLOAT32), shape_of(config.model)
    if shape is None and Path(config.model).is_dir():
        return wide  # no estimate for it, or no model
    shape = shape or MODELS[USUAL].shape
    if footprint(shape, wide, TOKENS, rows=1).total > psutil.virtual_memory().available:
        return replace(config, precision=BFLOAT16)  # half of the memory
    try:
        sizes, trials = _sizes(shape), Cache()
        if (trial := trials.get(*_key(sizes))) is None:
            seconds = {name: _seconds(sizes, name) for name in (FLOAT32, BFLOAT16)}
            trial = trials.put(seconds, *_key(sizes))
    except FAULTS:
        return wide
    return replace(config, precision=min(trial.value, key=trial.value.get))


def speed_note(config: RunConfig) -> tuple[Remark, ...]:
    """A remark on the trial of a model's precision on this CPU; () without a trial."""
    shape = shape_of(config.model)
    if (
        config.model in SHIPPED
        or has_gpu(config)
        or (shape is None and Path(config.model).is_dir())
    ):
        return ()
    try:
        known = Cache().get(*_key(_sizes(shape or MODELS[USUAL].shape)))
    except FAULTS:
        return ()
    if known is None:
        return ()
    other = BFLOAT16 if config.precision == FLOAT32 else FLOAT32
    factor = known.value[other] / known.value[config.precision]
    trial = {"precision": config.precision, "other": other, "factor": factor}
    return (Remark("precision_tried", trial),)


def _sizes(shape: Mapping[str, Any]) -> dict[str, int]:
    """The settings of a Llama whose blocks are like those of the model."""
    hidden, heads = shape["hidden_size"], shape["num_attention_heads"]
    head = shape.get("head_dim") or hidden // heads
    return {
        "hidden_size": hidden,
        "intermediate_size": next((shape[name] for name in INNER if shape.get(name)), 4 * hidden),
        "num_attention_heads": heads,
        "num_key_value_heads": shape.get("num_key_value_heads") or heads,
        "head_dim": head + head % 2,  # even, because Llama's position encoding rotates pairs
        "vocab_size": min(VOCABULARY, shape["vocab_size"]),
        "num_hidden_layers": BLOCKS,
    }


def _key(sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The cache key of a trial: by shape, machine and version of torch."""
    cpu, threads = torch.backends.cpu.get_cpu_capability(), str(torch.get_num_threads())
    return "precision", json.dumps(sizes), platform.node(), torch.__version__, cpu, threads


def _seconds(sizes: Mapping[str, int], precision: str) -> float:
    """Seconds of the fastest forward and backward pass with an adapter, without the first."""
    with torch.random.fork_rng(devices=[]):
        base = LlamaForCausalLM(LlamaConfig(**sizes)).to(getattr(torch, precision))
        network = with_adapter(base, make_config(model=USUAL))
        ids = torch.arange(ROWS * TOKENS).view(ROWS, TOKENS) % sizes["vocab_size"]
        times = []
        for _ in range(STEPS):
            began = time.perf_counter()
            network(input_ids=ids).logits.float().logsumexp(-1).sum().backward()
            times.append(time.perf_counter() - began)
    return min(times[1:])
