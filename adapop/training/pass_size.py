"""How many rows a forward pass can take: measured on an accelerator, estimated on the CPU."""

import os
from collections.abc import Sequence
from heapq import nlargest

import torch

from adapop.model.footprint import footprint
from adapop.model.out_of_memory import free_bytes
from adapop.model.tokens import Row
from adapop.training.gradient import StepGradient

SHARE = 0.9  # of the free memory: allocators round up, and pieces lie between
TRIED = 4  # rows of the second trial; the first has one


def rows_that_fit(gradient: StepGradient, retain: Sequence[Row]) -> int:
    """Rows a pass, from 1 to a step's forget and retain rows together, for the longest rows there are.

    On an accelerator a step is tried on 1 and on 4 of them, without being made; the line through the two peaks says
    how many fit beside AdamW's moments. On the CPU the estimate of `footprint` stands for the measurement.
    """
    rows = [*gradient.forget.rows, *retain]
    most = 2 * min(gradient.config.batch, len(gradient.forget.rows))
    if gradient.model.device.type == "cuda":
        return max(1, min(most, _measured(gradient, retain)))
    longest = max(row.length for row in rows)
    answer = max(len(row.answer) for row in rows)
    needs = footprint(gradient.model.shape, gradient.config, longest, rows=1, answer=answer)
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # torchrun's: so many share this machine's memory
    free = SHARE * free_bytes(gradient.model.device) / processes
    return max(1, min(most, int((free - needs.adapter) / needs.activations)))


def _measured(gradient: StepGradient, retain: Sequence[Row]) -> int:
    device, parameters = gradient.model.device, gradient.model.parameters
    longest = [nlargest(TRIED, rows, key=lambda row: row.length) for rows in (gradient.forget.rows, retain)]
    held, peaks, recomputes = torch.cuda.memory_allocated(device), [], gradient.model.recomputes
    gradient.model.network.train()
    for rows in (1, TRIED):
        gradient.rows = rows
        torch.cuda.reset_peak_memory_stats(device)
        gradient.add(longest[0][:rows], longest[1][:rows], epoch=1, alpha=1.0)
        peaks.append(torch.cuda.max_memory_allocated(device) - held)
        for parameter in parameters:
            parameter.grad = None
        if gradient.model.recomputes != recomputes:  # memory ran out on one row: these peaks are of what failed
            return _measured(gradient, retain)
        if gradient.rows < rows:
            return gradient.rows
    moments = 2 * sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    a_row = max(1, (peaks[1] - peaks[0]) // (TRIED - 1))
    return 1 + int((SHARE * free_bytes(device) - moments - peaks[0]) // a_row)
