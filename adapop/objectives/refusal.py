"""Methods that teach a refusal in place of the answer: FLAT by an f-divergence from it, IdkDPO as a
preference, RT by plain fine-tuning."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from adapop.assets import read_json
from adapop.model.adapted import AdaptedModel
from adapop.objectives.altpo import preferred
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


@dataclass(frozen=True)
class RefusalPreference(Refusing):
    """L_f = -(2/beta) mean_i log sigmoid(beta * [log (pi/pi_ref)(refusal_i) - log
    (pi/pi_ref)(y_i)]).

    IdkDPO: the preference baseline of Maini et al., COLM 2024, arXiv 2401.06121, with the factor
    and the retain term of Dorna et al., OpenUnlearning, NeurIPS 2025, arXiv 2506.12618. TOFU draws
    a refusal from a list of a hundred; here sixteen of our own take turns by epoch. Relations:
    AltPO with the refusal as the alternate answer. The refusal includes the end of the turn, the
    answer only with `include_tail`, as in FLAT.
    """

    beta: float = 0.1
    several: bool = True
    """Whether each fact gets another of REFUSALS in each epoch; else always `refusal`."""
    refusal: str = "I don't know."
    name = "idkdpo"
    uses = frozenset({"reference", "refusal"})
    above_zero = ("beta",)

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]; positive."""
        return preferred(model, batch, self.beta)


@dataclass(frozen=True)
class RejectionTuning(Refusing):
    """L_f = mean_i of the mean negative log-likelihood of the refusal's tokens.

    RT of Jin et al., RWKU, NeurIPS 2024, arXiv 2406.10890: fine-tuning on questions about the
    target, answered by one refusal. As published there is no retain term (alpha = 0). The gold
    answer has no part in the loss: it falls only as the refusal takes its place.
    """

    refusal: str = "I do not know the answer."
    name = "rt"

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B], in nats; not negative."""
        gold, other = model.score(batch.tokens), model.score(batch.other)
        return Loss(other.row_mean(other.nll), gold.nll)
