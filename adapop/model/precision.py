"""Whether there is a GPU here, whether it can calculate in the run's precision, and how exactly it multiplies."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from adapop.config.run import RunConfig

AMPERE = (8, 0)  # the first compute capability with bf16 arithmetic


def has_gpu() -> bool:
    """Whether there is a GPU here that a real model would be put on."""
    return torch.cuda.is_available()


def emulated_bfloat16(config: RunConfig) -> tuple[str, ...]:
    """What to know, as a sentence, where the run is in bf16 and a GPU here (a T4, say) has no arithmetic for it."""
    if config.precision == "float32" or not torch.cuda.is_available():
        return ()
    for device in range(torch.cuda.device_count()):
        if (arch := torch.cuda.get_device_capability(device)) < AMPERE:
            return (
                f"The GPU ({torch.cuda.get_device_name(device)}, compute capability {arch[0]}.{arch[1]}) has no bf16 "
                "arithmetic, which torch then emulates, slowly. With --precision float32 the weights take twice the "
                "memory; a GPU from Ampere on (A10, L4, A100 ...) has it.",
            )
    return ()


@contextmanager
def exact_products() -> Iterator[None]:
    """A context in which matrices in float32 are multiplied in float32, whatever is set."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def set_products(config: RunConfig, device: torch.device) -> None:
    """Sets for this process how matrices in float32 are multiplied, by the model that was just loaded.

    Beside a base in bf16 on a GPU only the adapter is in float32: its products are rounded to TF32, several times as
    fast and still finer than the base's. Those of the output layer are not, see `head`, nor those of any other model.
    """
    rounded = config.precision == "bfloat16" and device.type == "cuda"
    torch.set_float32_matmul_precision("high" if rounded else "highest")
