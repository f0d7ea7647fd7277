"""What a method is: a forget loss, and what it needs to be given.

The trainer owns the loop, the retain weight and the denominators. A method returns *unreduced* losses, and the
trainer divides by counts over the whole optimiser step, so that 1x32, 4x8 and 32x1 micro-batches give one gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from adapop.errors import ConfigError
from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import AnswerTokens

REDUCE = ("token", "row")
USES = frozenset({"beta", "reference", "alternates", "refusal", "words"})


@dataclass(frozen=True)
class ForgetBatch:
    """Forget rows of one forward pass, with what the method's `uses` names; the rest is None.

    tokens: B rows, N answer tokens. beta [N]: the exponent of each token's fact. reference_nll, reference_gold [N]:
    -log p and raw logit of each gold token under the original model, computed once per fact. other: the same B
    prompts with what is to be said instead, an alternate or a refusal. other_reference_nll: as reference_nll, of its
    tokens. unwanted [N]: whether a token is part of a word that carries the fact. target: what `begin` returned.
    """

    tokens: AnswerTokens
    beta: Tensor | None = None
    reference_nll: Tensor | None = None
    reference_gold: Tensor | None = None
    other: AnswerTokens | None = None
    other_reference_nll: Tensor | None = None
    unwanted: Tensor | None = None
    target: Tensor | None = None


@dataclass(frozen=True)
class Loss:
    """What a method returns: `loss` [N] or [B], unreduced, with gradient; `nll` [N] in nats, for the record."""

    loss: Tensor
    nll: Tensor


@dataclass(frozen=True)
class Begun:
    """What a method finds out once, before training. target: a constant that every batch brings. notes: sentences for
    the user. Both follow from the original model, the facts and the seed, so a resumed run finds the same."""

    target: Tensor | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Objective:
    """A method of unlearning. Its fields are its arguments.

    uses: what its forget batches must bring, of USES. reduce: whether `forget_loss` returns a value per answer "token"
    or per "row"; the trainer averages accordingly. retains: whether there is a retain term at all. joins: whether
    forget and retain rows may share a forward pass: not where the two gradients are taken at different weights.
    """

    name: ClassVar[str] = ""
    uses: ClassVar[frozenset[str]] = frozenset()
    reduce: ClassVar[str] = "token"
    retains: ClassVar[bool] = True
    joins: ClassVar[bool] = True

    def begin(self, model: AdaptedModel, tokens: AnswerTokens, seed: int) -> Begun:
        """Called once with the first forget rows, before anything is trained."""
        return Begun()

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """The unreduced forget loss of a batch."""
        raise NotImplementedError

    def retain_loss(self, model: AdaptedModel, tokens: AnswerTokens) -> Loss:
        """The unreduced retain loss, [N]: the answer tokens' negative log-likelihood in nats."""
        nll = model.score(tokens).nll
        return Loss(nll, nll)

    def backward(self, model: AdaptedModel, accumulate: Callable[[], Any]) -> Any:
        """Adds a step's forget gradient. accumulate: does so for all of the step's rows at the weights as they are, and
        returns what it saw, for this to return. A method that calls it at other weights does not join."""
        return accumulate()

    def _check(self, name: str, holds: bool, bound: str) -> None:
        """Raises a ConfigError that names the argument unless it is in range."""
        if not holds:
            value = getattr(self, name)
            raise ConfigError(
                f"The argument {name} of {self.name or type(self).__name__} is {value!r}.", f"It must be {bound}."
            )
