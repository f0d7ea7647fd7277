"""Precision "auto": on a CPU, the precision in which a trial of the model's shape is faster.

Processors differ tenfold: some compute bfloat16, others emulate it. Results stay in the cache.
"""

import json
import platform
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import LlamaConfig, LlamaForCausalLM

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.errors import ConfigError
from adapop.model.adapter import with_adapter
from adapop.model.catalogue import MODELS, shape_of
from adapop.model.memory import INNER, footprint
from adapop.model.precision import has_gpu
from adapop.online.cache import Cache
from adapop.paths import SHIPPED
from adapop.remark import Remark

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
