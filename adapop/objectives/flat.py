"""Loss adjustment with only forget data."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from adapop.assets import read_json
from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective

# f-divergence -> (g(x), f*(g(x))): Nowozin, Cseke and Tomioka, f-GAN, NeurIPS 2016, arXiv
# 1606.00709; Jeffrey's conjugate is the authors' series. In the last three g, the authors' code has
# exp(x) for exp(-x), so its loss would raise the answer or lower the refusal: corrected here.
DIVERGENCES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "total-variation": (lambda x: torch.tanh(x) / 2, lambda x: torch.tanh(x) / 2),
    "kl": (lambda x: x, lambda x: torch.exp(x - 1)),
    "pearson": (lambda x: x, lambda x: x.square() / 4 + x),
    "jensen-shannon": (
        lambda x: math.log(2) - softplus(-x),
        lambda x: x + softplus(-x) - math.log(2),
    ),
    "jeffrey": (lambda x: x, lambda x: x + x.square() / 4 + x**3 / 16),
    "reverse-kl": (lambda x: -torch.exp(-x), lambda x: x - 1),
    "squared-hellinger": (lambda x: -torch.expm1(-x), torch.expm1),
    "neyman": (lambda x: -torch.expm1(-x), lambda x: -2 * torch.expm1(-x / 2)),
}
REFUSALS = read_json("flat-refusals.json", tuple[str, ...])


class Refusing(Objective):
    """A method that teaches a refusal in place of the answer. Arguments: `refusal`, the text, and
    maybe `several`: whether a fact gets another of REFUSALS in each epoch."""

    refusal: str = ""
    several: bool = False
    uses = frozenset({"refusal"})
    reduce = "row"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("refusal", bool(self.refusal.strip()), "a text")

    @property
    def refusals(self) -> tuple[str, ...]:
        """The texts taught in place of the answer: one, or several that take turns."""
        return REFUSALS if self.several else (self.refusal,)


@dataclass(frozen=True)
class Flat(Refusing):
    """L_f = mean_i [-g(P_i(refusal)) + f*(g(P_i(answer)))], P_i a text's mean probability.

    Yaxuan Wang et al., ICLR 2025, arXiv 2410.11143. P_i is that of the LoRA port used for the
    AdaPop paper's runs; the authors' code divides by the length of the padded batch. The refusal
    ends with the tokenizer's end-of-sequence token, even where the chat template ends a turn with
    another one (Gemma's <end_of_turn>). The answer's end is trained on only with `include_tail`, as
    in every method. As published there is no retain term (alpha = 0), and at high rates every
    question is refused, retained ones too. With alpha above 0 the method is "FLAT + retain".
    """

    divergence: str = "total-variation"
    """A key of DIVERGENCES."""
    refusal: str = "I don't know."
    several: bool = False
    """Whether a fact gets another of REFUSALS in each epoch; the authors draw one from a list."""
    name = "flat"

    def __post_init__(self) -> None:
        known = f"one of {', '.join(DIVERGENCES)}"
        self._check("divergence", self.divergence in DIVERGENCES, known)
        super().__post_init__()

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]; dimensionless."""
        gain, loss = DIVERGENCES[self.divergence]
        gold, other = model.score(batch.tokens), model.score(batch.other)
        refused, answered = (scored.row_mean(torch.exp(-scored.nll)) for scored in (other, gold))
        return Loss(loss(answered) - gain(refused), gold.nll)
