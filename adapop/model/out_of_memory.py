"""Running out of memory: detection, free memory, and retries in smaller pieces."""

import gc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import psutil
import torch

from adapop.errors import RunError

Item = TypeVar("Item")
Result = TypeVar("Result")
# texts of failed allocations that are no OutOfMemoryError: on the CPU, pinned memory, cuBLAS
ALLOCATORS = (
    "DefaultCPUAllocator", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
)  # fmt: skip
CONTAINER = Path("/sys/fs/cgroup")
# for cgroups version 2 and 1, the files that hold: the memory limit, the memory in use, and
# statistics whose entry named last counts cached files that can be released
LIMITS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat",
     "total_inactive_file"),
)  # fmt: skip


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that an allocation failed, on an accelerator or on the CPU."""
    of_kind = isinstance(error, (torch.OutOfMemoryError, MemoryError))
    return of_kind or any(text in str(error) for text in ALLOCATORS)


def free_bytes(device: torch.device, container: Path = CONTAINER) -> int:
    """Bytes that tensors can still take. On a GPU: the free memory and what torch has reserved but
    does not use. On the CPU: what the system can give without swapping, or what is left of this
    container's limit if that is less."""
    if device.type == "cuda":
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + held
    return max(0, min([psutil.virtual_memory().available, *_left_in(container)]))


def _left_in(container: Path) -> Iterator[int]:
    """Bytes left up to the container's memory limit, where there is one."""
    for limit, used, statistics, files in LIMITS:
        most = (container / limit).read_text().strip() if (container / limit).is_file() else "max"
        if most != "max":
            counted = dict(map(str.split, (container / statistics).read_text().splitlines()))
            yield int(most) - int((container / used).read_text()) + int(counted[files])


def release() -> None:
    """Frees unreferenced objects, and returns torch's unused memory to a GPU."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def in_pieces(
    rows: Sequence[Item],
    size: int,
    work: Callable[[Sequence[Item]], Result],
    halved: Callable[[int], None] = lambda size: None,
) -> Iterator[Result]:
    """The work's result on each piece of at most `size` rows, halved whenever memory runs out.
    halved: called with each new size. Raises RunError: memory runs out on a single row."""
    start = 0
    while start < len(rows):
        piece = rows[start : start + size]
        result = None
        try:
            result = (work(piece),)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        if result is not None:
            yield result[0]
            start += len(piece)
            continue
        if len(piece) == 1:
            raise too_large(f"one row of {len(rows)}")
        size = len(piece) // 2
        halved(size)
        # not in the except block: there the traceback still holds the failed piece's tensors
        release()


def too_large(what: str) -> RunError:
    """The error for something, `what`, that does not fit into memory and cannot be made smaller."""
    fix = "Free memory on the device, shorten the facts, or use a smaller model or larger device."
    return RunError(f"Memory ran out on {what}, and no smaller size is left to try.", fix)
