"""What this machine's device does in a second: measured once for each precision, in about a second. Whatever else works
at that time is measured with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from statistics import median

import torch
from torch.nn.functional import scaled_dot_product_attention

from adapop.runs.forecast import Rates

SECONDS, LEAST = 0.05, 5  # of a measurement: until so long has passed, and so often
NUMBERS, CALLED = 2**24, 1000  # more than fits into a cache; calls of a measurement
FEW, WIDE = 4, 4096  # rows, and a matrix that is more than fits into a cache
ATTENTION = (16, 8, 64, 64)  # rows, heads, positions and width of a head, as short rows have them


@cache
def device_rates(precision: str, clock: Callable[[], float] = time.perf_counter) -> Rates:
    """Of the GPU where there is one, else of the CPU with the threads that torch has here. clock: counts seconds.

    Leaves torch's random numbers as they were.
    """
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        return _rates(precision, clock)


def _rates(precision: str, clock: Callable[[], float]) -> Rates:
    device, dtype = "cuda" if torch.cuda.is_available() else "cpu", getattr(torch, precision)
    rate = matrix_rate(device, dtype, clock)
    adapter = rate if dtype == torch.float32 else matrix_rate(device, torch.float32, clock)
    plain = {"device": device, "dtype": torch.float32}
    one, other, out = (torch.ones(NUMBERS, **plain) for _ in range(3))
    summed = _median(partial(torch.add, one, other, out=out), clock)
    layer, row = torch.nn.Linear(8, 8, **plain), torch.ones(1, 8, **plain)
    called = _median(lambda: [layer(row) for _ in range(CALLED)], clock)
    weights, few = torch.ones(WIDE, WIDE, device=device, dtype=dtype), torch.ones(FEW, WIDE, device=device, dtype=dtype)
    read = weights.nbytes / _median(partial(torch.nn.functional.linear, few, weights), clock)
    return Rates(rate, adapter, NUMBERS / summed, CALLED / called, *_attention_rates(device, dtype, clock), read)


def _attention_rates(device: str, dtype: torch.dtype, clock: Callable[[], float]) -> tuple[float, float]:
    """Operations of the forward pass a second of it, and a second of the backward pass: on a CPU the latter is slow in
    bfloat16."""
    rows, heads, positions, width = ATTENTION
    operations = 4 * rows * heads * positions**2 * width
    read = [torch.randn(ATTENTION, device=device, dtype=dtype, requires_grad=True) for _ in range(3)]
    seen = torch.ones(rows, 1, positions, positions, dtype=torch.bool, device=device).tril()
    attend = partial(scaled_dot_product_attention, *read, attn_mask=seen)
    mixed = attend()
    backward = partial(torch.autograd.grad, mixed, read, torch.ones_like(mixed), retain_graph=True)
    return operations / _median(attend, clock), operations / _median(backward, clock)


def matrix_rate(device: str, dtype: torch.dtype, clock: Callable[[], float] = time.perf_counter) -> float:
    """Floating-point operations a second of a large matrix product of random numbers."""
    size = 8192 if device == "cuda" else 1024
    one, other = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    return 2 * size**3 / _median(partial(torch.matmul, one, other), clock)


def seconds_of(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of one go, until the device is done."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    begun = clock()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - begun


def _median(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Of several goes, after one that does not count."""
    work()
    taken: list[float] = []
    while len(taken) < LEAST or sum(taken) < SECONDS:
        taken.append(seconds_of(work, clock))
    return median(taken)
