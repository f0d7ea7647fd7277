"""The interface of an unlearning method: a forget loss and its inputs.

The trainer owns the loop, the retain weight and the denominators. A method returns *unreduced*
losses, and the trainer divides by counts over the whole optimiser step, so that micro-batches of
1x32, 4x8 and 32x1 give the same gradient.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from adapop.errors import ConfigError
from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import AnswerTokens, Row
from adapop.remark import Remark

REDUCE = ("token", "row")
USES = frozenset({"beta", "reference", "alternates", "refusal", "words"})


@dataclass(frozen=True)
class ForgetBatch:
    """B forget rows of a forward pass, with N answer tokens. A field that the method does not ask
    for is None."""

    tokens: AnswerTokens
    """Prompts and gold answers."""
    beta: Tensor | None = None
    """Exponent of each token's fact, [N]."""
    reference_nll: Tensor | None = None
    """-log p of each gold token under the original model, [N], nats. Computed once per fact."""
    reference_gold: Tensor | None = None
    """Raw logit of each gold token under the original model, [N]."""
    other: AnswerTokens | None = None
    """The same B prompts with the text that is taught instead: an alternate answer or a refusal."""
    other_reference_nll: Tensor | None = None
    """-log p of each token of `other` under the original model, nats."""
    unwanted: Tensor | None = None
    """Whether a token is part of a word that carries the fact, [N], bool."""
    target: Tensor | None = None
    """The `target` that `begin` returned."""


@dataclass(frozen=True)
class Loss:
    """The loss of one forward pass."""

    loss: Tensor
    """Unreduced, with gradient: [N] or [B], as the method's `reduce` says."""
    nll: Tensor
    """-log p of each gold token, [N], nats; for the record."""
    counted: Tensor | None = None
    """Whether the mean is over this token, [N], bool; None for all of them."""


@dataclass(frozen=True)
class Begun:
    """The results of `begin`, computed once, before training. It depends on the original model, the
    facts and the seed only, so that a resumed run computes the same."""

    target: Tensor | None = None
    """A tensor given to every batch as `ForgetBatch.target`."""
    notes: tuple[str | Remark, ...] = ()
    """Notes for the user: remarks, or sentences of a method of one's own."""


@dataclass(frozen=True)
class Objective:
    """An unlearning method. Its dataclass fields are its arguments."""

    name: ClassVar[str] = ""
    """The name in `RunConfig.method` and on the command line, such as "adapop"."""
    uses: ClassVar[frozenset[str]] = frozenset()
    """What its forget batches must carry, a subset of USES."""
    reduce: ClassVar[str] = "token"
    """Whether `forget_loss` gives a value per answer "token" or per "row", to be averaged."""
    retains: ClassVar[bool] = True
    """Whether the loss has a retain term."""
    joins: ClassVar[bool] = True
    """Whether forget and retain rows may share a forward pass; False if `backward` moves the
    weights."""

    above_zero: ClassVar[tuple[str, ...]] = ()
    """Arguments that must be above 0."""
    not_negative: ClassVar[tuple[str, ...]] = ()
    """Arguments that must be at least 0."""

    def __post_init__(self) -> None:
        for name in self.above_zero:
            self._check(name, getattr(self, name) > 0, "above 0")
        for name in self.not_negative:
            self._check(name, getattr(self, name) >= 0, "at least 0")

    @property
    def needs(self) -> frozenset[str]:
        """The data that its forget batches need with these arguments, a subset of `uses`."""
        return self.uses

    def begin(self, model: AdaptedModel, tokens: AnswerTokens, seed: int) -> Begun:
        """Prepares the method; called once, before training. tokens: the first forget rows."""
        return Begun()

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """The unreduced forget loss of a batch: [N], or [B] of a method that reduces by "row"."""
        raise NotImplementedError

    def counted(self, row: Row) -> int:
        """How many tokens of a forget row's answer the mean of the forget loss is over."""
        return len(row.answer)

    def retain_loss(self, model: AdaptedModel, tokens: AnswerTokens) -> Loss:
        """The unreduced retain loss, [N]: the answer tokens' negative log-likelihood in nats."""
        nll = model.score(tokens).nll
        return Loss(nll, nll)

    def backward(self, model: AdaptedModel, accumulate: Callable[[], Any]) -> Any:
        """Adds a step's forget gradient and returns the result of `accumulate`, which adds the
        gradient of all rows of the step at the current weights. A method that calls it at other
        weights must set `joins` to False."""
        return accumulate()

    def _check_count(self, name: str) -> None:
        value = getattr(self, name)
        self._check(name, value >= 1 and value == int(value), "a whole number above 0")

    def _check(self, name: str, holds: bool, bound: str) -> None:
        """Raises ConfigError, with the argument and its bound, if the value is out of range."""
        if not holds:
            value = getattr(self, name)
            message = f"The argument {name} of {self.name or type(self).__name__} is {value!r}."
            raise ConfigError(message, f"It must be {bound}.")


def divergence(model: AdaptedModel, tokens: AnswerTokens) -> Loss:
    """KL(original || model) of the predictions at each answer token, [N], nats: a retain loss
    of any method. Liu, Liu and Stone 2022, whose code counts prompt and padding too."""
    with torch.no_grad(), model.original():
        reference = model.score(tokens, logits=True).logits.log_softmax(dim=-1)
    scored = model.score(tokens, logits=True)
    distance = reference.exp() * (reference - scored.logits.log_softmax(dim=-1))
    return Loss(distance.sum(-1), scored.nll)
