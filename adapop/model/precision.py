"""Whether there is a GPU here, and whether it can calculate in the run's precision."""

import torch

from adapop.config.run import RunConfig

AMPERE = (8, 0)  # the first compute capability with bf16 arithmetic


def has_gpu() -> bool:
    """Whether there is a GPU here that a real model would be put on."""
    return torch.cuda.is_available()


def emulated_bfloat16(config: RunConfig) -> tuple[str, ...]:
    """What to know, as a sentence, where the run is in bf16 and a GPU here (a T4, say) has no arithmetic for it."""
    if config.precision != "bfloat16" or not torch.cuda.is_available():
        return ()
    for device in range(torch.cuda.device_count()):
        if (found := torch.cuda.get_device_capability(device)) < AMPERE:
            return (
                f"The GPU ({torch.cuda.get_device_name(device)}, compute capability {found[0]}.{found[1]}) has no bf16 "
                "arithmetic, which torch then emulates, slowly. With --precision float32 the weights take twice the "
                "memory; a GPU from Ampere on (A10, L4, A100 ...) has it.",
            )
    return ()
