"""Random generators by seed and purpose."""

import torch


def seeded(seed: int, *stream: int) -> torch.Generator:
    """The random generator for a purpose, `stream`: the same draws for a seed in every process."""
    mixed = seed
    for number in stream:
        mixed = (mixed * 1_000_003 + number + 1) % (2**63 - 1)
    return torch.Generator().manual_seed(mixed)
