"""Methods as a user writes them, for `test_public_api`: this file is on the path, as a user's own would be."""

from dataclasses import dataclass, field

import torch

from adapop import ForgetBatch, Loss, Objective


@dataclass(frozen=True)
class Focal(Objective):
    """Ascent that lets go of a token as it fades: WGA with a power of one's own."""

    power: float = 1

    def forget_loss(self, model, batch: ForgetBatch) -> Loss:
        nll = model.score(batch.tokens).nll
        return Loss(-torch.exp(-self.power * nll).detach() * nll, nll)


@dataclass(frozen=True)
class ByScore(Objective):
    """Popularity-weighted ascent, written by hand."""

    uses = frozenset({"beta"})
    floor: float | int = 0
    kept: tuple[str, ...] = field(default_factory=tuple)

    def forget_loss(self, model, batch: ForgetBatch) -> Loss:
        nll = model.score(batch.tokens).nll
        return Loss(-torch.exp(-batch.beta * nll).detach() * nll, nll)


@dataclass(frozen=True)
class Wanting(Objective):
    """Asks for what nobody brings."""

    uses = frozenset({"gold"})


class NoMethod:
    """No objective at all."""
