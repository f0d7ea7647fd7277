"""What a method is: a forget loss over answer tokens, and what it needs to be given.

The trainer owns the loop, the retain weight and the denominators. A method returns *unreduced* losses, and the
trainer divides by counts over the whole optimiser step, so that 1x32, 4x8 and 32x1 micro-batches give one gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from adapop.model import AdaptedModel
from adapop.tokens import AnswerTokens


@dataclass(frozen=True)
class ForgetBatch:
    """Forget rows of one forward pass.

    tokens: B rows, N answer tokens. beta [N]: the exponent of each token's fact, None unless the method uses it.
    reference_nll [N]: -log p under the original model, computed once per fact, None unless the method uses it.
    """

    tokens: AnswerTokens
    beta: Tensor | None = None
    reference_nll: Tensor | None = None


@dataclass(frozen=True)
class ForgetLoss:
    """What a method returns: `loss` [N] or [B], unreduced, in nats, with gradient; `nll` [N] for the record."""

    loss: Tensor
    nll: Tensor


@dataclass(frozen=True)
class Objective:
    """A method of unlearning.

    uses: what a forget batch must bring: "beta", "reference". reduce: whether `forget_loss` returns a value per
    answer "token" or per "row"; the trainer averages accordingly. retains: whether there is a retain term at all.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    uses: ClassVar[frozenset[str]] = frozenset()
    reduce: ClassVar[str] = "token"
    retains: ClassVar[bool] = True

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> ForgetLoss:
        """The unreduced forget loss of a batch."""
        raise NotImplementedError

    def retain_loss(self, model: AdaptedModel, tokens: AnswerTokens) -> Tensor:
        """The unreduced retain loss, [N]: the answer tokens' negative log-likelihood in nats."""
        return model.score(tokens).nll
