"""Memory that runs out: how to tell, how much is left, and work on rows that goes on in smaller pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import psutil
import torch

from adapop.errors import RunError

Item = TypeVar("Item")
Result = TypeVar("Result")
# what failed allocations say that are not torch's own on the GPU: on the CPU, pinned memory, and cuBLAS's workspace
ALLOCATORS = ("DefaultCPUAllocator", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
CONTAINER = Path("/sys/fs/cgroup")
# of cgroups version 2 and 1: what a container may take, what it has taken, and what of that is files it can give back
LIMITS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that an allocation failed, on an accelerator or on the CPU."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or any(said in str(error) for said in ALLOCATORS)


def free_bytes(device: torch.device, container: Path = CONTAINER) -> int:
    """What tensors can still take: the device's free memory and what torch holds there unused; on the CPU, what the
    system can give without swapping, or this container if that is less."""
    if device.type == "cuda":
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + held
    return max(0, min([psutil.virtual_memory().available, *_left_in(container)]))


def _left_in(container: Path) -> Iterator[int]:
    """Bytes up to the limit of a container, where there is one."""
    for limit, taken, statistics, files in LIMITS:
        if (container / limit).is_file() and (most := (container / limit).read_text().strip()) != "max":
            counted = dict(line.split() for line in (container / statistics).read_text().splitlines())
            yield int(most) - int((container / taken).read_text()) + int(counted[files])


def release() -> None:
    """Gives unused memory back to the accelerator, where there is one, so that pieces of another size find room."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def in_pieces(
    rows: Sequence[Item],
    size: int,
    work: Callable[[Sequence[Item]], Result],
    mends: bool = True,
    halved: Callable[[int], None] = lambda size: None,
) -> Iterator[Result]:
    """The work's result on each piece of at most `size` rows; where memory runs out, the piece is halved and tried
    again, and later ones are no larger. mends: else it just runs out, for others make the same passes at once. halved:
    told that size, by who wants to begin with it the next time.

    Raises:
        RunError: one row is too much.
    """
    start = 0
    while start < len(rows):
        piece = rows[start : start + size]
        result = None
        try:
            result = (work(piece),)
        except RuntimeError as error:
            if not (mends and is_out_of_memory(error)):
                raise
        if result is not None:
            yield result[0]
            start += len(piece)
            continue
        if len(piece) == 1:
            raise too_large(f"one row of {len(rows)}")
        size = len(piece) // 2
        halved(size)
        release()  # here and not above: while an error is handled, its traceback holds the failed piece's tensors


def too_large(what: str) -> RunError:
    """The error that says so."""
    return RunError(
        f"Memory ran out on {what}, and there is nothing smaller to try.",
        "Free memory on the device, shorten the facts, or use a smaller model or a device with more.",
    )
