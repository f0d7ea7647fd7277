"""Adapters that do something."""

import torch


@torch.no_grad()
def stirred(model, size: float = 0.05, seed: int = 7):
    """The model or network, with random numbers of that size in every B of its adapter, at first 0."""
    generator = torch.Generator().manual_seed(seed)
    for name, weight in getattr(model, "network", model).named_parameters():
        if "lora_B" in name:
            weight.copy_(size * torch.randn(weight.shape, generator=generator))
    return model
