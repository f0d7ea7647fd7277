"""How many rows a forward pass can take: measured on an accelerator, estimated on the CPU."""

import os
from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import product, takewhile

import torch

from adapop.model.memory import footprint
from adapop.model.out_of_memory import free_bytes
from adapop.model.packing import lines_of
from adapop.model.tokens import Row, common
from adapop.training.gradient import StepGradient

SHARE = 0.9  # of the free memory: allocators round up and leave gaps
TRIED = 4  # rows of the second trial; the first has one
Trial = tuple[list[Row], list[Row]]  # rows to forget and to retain


def rows_that_fit(gradient: StepGradient, retain: Sequence[Row]) -> int:
    """Most rows in a pass, from 1 to a step's forget and retain rows, if all were the longest.

    `footprint` says how memory grows with the rows; if they are packed, their common beginning
    counts once. On an accelerator the gradient of a step is computed, without an update, on 1 and
    on 4 of the longest rows and of those with most answer tokens. The peaks scale the estimate, and
    AdamW's moments must fit as well. On the CPU the estimate is used as it is."""
    most = 2 * min(gradient.config.batch, len(gradient.forget.rows))
    needs = list(_needs(gradient, [*gradient.forget.rows, *retain], most))
    if gradient.model.device.type == "cuda":
        return _measure(gradient, retain, needs)
    adapter = footprint(gradient.model.shape, gradient.config, 1, rows=1).adapter
    # set by torchrun: how many processes share this machine's memory
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return _fitting(needs, SHARE * free_bytes(gradient.model.device) / processes - adapter)


def _needs(gradient: StepGradient, rows: Sequence[Row], most: int) -> Iterator[int]:
    """Bytes of a pass over the longest row, over the two longest, and so on, by `footprint`."""
    prompts, answer = [row.prompt for row in rows], max(len(row.answer) for row in rows)
    shared = common(min(prompts), max(prompts))  # by all; what only some share is left out
    lengths = nlargest(most, (row.length for row in rows))
    for count in range(1, most + 1):
        taken = lengths[:count]
        own = [length - shared for length in taken]
        lines, tokens = lines_of(range(count), own, [shared] * count, taken[0])
        if lines and not gradient.model.packs:
            tokens = count * taken[0]
        # counted as one row with so many tokens
        size = {"rows": 1, "answer": count * answer}
        yield footprint(gradient.model.shape, gradient.config, tokens, **size).activations


def _fitting(needs: Sequence[float], free: float) -> int:
    """The most rows that fit, at least 1. needs: bytes for 1 row, 2 rows, and so on."""
    return max(1, sum(1 for _ in takewhile(lambda need: need <= free, needs)))


def _trials(forget: Sequence[Row], retain: Sequence[Row], count: int) -> list[Trial]:
    """`count` rows to try: the longest ones and, if they differ, those with most answer tokens."""
    trials = []
    for size in (lambda row: row.length, lambda row: len(row.answer)):
        rows = nlargest(count, forget, key=size), nlargest(count, retain, key=size)
        trials += [] if rows in trials else [rows]
    return trials


def _measure(gradient: StepGradient, retain: Sequence[Row], needs: Sequence[int]) -> int:
    device, parameters = gradient.model.device, gradient.model.parameters
    count = min(TRIED, len(needs))
    trials = _trials(gradient.forget.rows, retain, count)
    held, peaks, recomputes = torch.cuda.memory_allocated(device), [], gradient.model.recomputes
    gradient.model.network.train()
    for rows, (forget, retained) in product((1, count), trials):
        gradient.rows = rows
        torch.cuda.reset_peak_memory_stats(device)
        gradient.add(forget[:rows], retained[:rows], epoch=1, alpha=1.0)
        peaks.append(torch.cuda.max_memory_allocated(device) - held)
        for parameter in parameters:
            parameter.grad = None
        # memory ran out on one row and blocks are now recomputed, so these peaks do not count
        if gradient.model.recomputes != recomputes:
            return _measure(gradient, retain, needs)
        if gradient.rows < rows:
            return gradient.rows
    one, several = max(peaks[: len(trials)]), max(peaks[len(trials) :])
    moments = 2 * sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    # measured bytes for each estimated byte
    real = max(1, several - one) / max(1, needs[count - 1] - needs[0])
    free = SHARE * free_bytes(device) - moments - one
    return _fitting([real * (need - needs[0]) for need in needs], free)
