"""Four facts whose answers have one to three tokens, and what a loss does to the adapter."""

import torch

from adapop.facts.fact import Fact

FACTS = (
    Fact("one", "Who wrote the book Emma?", "Austen", alternates=("Dickens", "Tolstoy")),
    Fact("three", "What is one plus two?", "three four five", alternates=("five four",)),
    Fact(
        "two", "Who wrote Emma and when and why and for whom?", "Austen of Dickens", alternates=("Kafka of four six",)
    ),
    Fact("tail", "What comes after Monday?", "Tuesday", alternates=("Friday",)),
)
LENGTHS = [1, 3, 3, 1]


def weights(model):
    """The adapter's weights as one vector, which later steps leave alone."""
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters])


def gradient(model, loss):
    """The adapter's gradient as one vector, without leaving anything in the shared model."""
    grads = torch.autograd.grad(loss.sum(), model.parameters, allow_unused=True)
    return torch.cat([torch.zeros(0) if part is None else part.flatten() for part in grads])
