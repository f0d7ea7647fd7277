"""Representation misdirection for unlearning: RMU, and Adaptive RMU, scaled to the model."""

from dataclasses import dataclass

import torch
from torch import Tensor

from adapop.model.adapted import AdaptedModel, seeded
from adapop.model.tokens import AnswerTokens, Scored
from adapop.objectives.objective import Begun, ForgetBatch, Loss, Objective
from adapop.remark import Remark

STREAM = (0, 2)  # its own random stream: the streams of the training order start at epoch 1


@dataclass(frozen=True)
class Steering(Objective):
    """L_f = mean_i (1/n_i) sum_t mean_d (h - r*u)^2,  L_r = mean over tokens of mean_d (h -
    h_ref)^2.

    h is the output of one block, u a unit vector of seeded uniform coordinates in [0, 1), r the
    target length that the subclass chooses. The code of the AdaPop paper's runs averages L_r over
    rows; here it is a mean over tokens, as the retain loss of every method.
    """

    layer: int = 7
    """The block, counted from 0."""
    predicting: bool = True
    """Whether h is taken where answer tokens are predicted. False: where they are read, as in the
    code of the paper's runs; then the state that predicts the first token is never steered, and an
    answer of one token has no other."""
    reduce = "row"
    not_negative = ("layer",)

    def length(self, norm: float) -> float:
        """Length of the target, given the mean norm of the original model's states."""
        raise NotImplementedError

    def begin(self, model: AdaptedModel, tokens: AnswerTokens, seed: int) -> Begun:
        """The target [D], and a note that compares its length with that of the replaced states.
        Raises ModelError: the model has no such block."""
        with model.original():
            norm, width = model.state_norm(tokens, self.layer)
        direction = torch.rand(width, generator=seeded(seed, *STREAM))
        length = self.length(norm)
        steering = "weak_steering" if length < norm / 2 else "steering"
        note = Remark(steering, {"block": self.layer, "length": length, "norm": norm})
        return Begun((length * direction / direction.norm()).to(model.device), (note,))

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]: mean squared difference between the coordinates of states and target."""
        scored = model.score(batch.tokens, block=self.layer)
        distance = (self._at(scored) - batch.target).square().mean(-1)
        return Loss(scored.row_mean(distance), scored.nll)

    def retain_loss(self, model: AdaptedModel, tokens: AnswerTokens) -> Loss:
        """Per token, [N]: mean squared difference of the state's coordinates to the original's."""
        with torch.no_grad(), model.original():
            reference = model.score(tokens, block=self.layer)
        scored = model.score(tokens, block=self.layer)
        distance = self._at(scored) - self._at(reference)
        return Loss(distance.square().mean(-1), scored.nll)

    def _at(self, scored: Scored) -> Tensor:
        """The states at the answer tokens, [N, D]."""
        return scored.states[0 if self.predicting else 1]


@dataclass(frozen=True)
class Rmu(Steering):
    """`Steering` of one block's forget states to `coefficient` * u.

    Li et al., ICML 2024, arXiv 2403.03218. The AdaPop paper's runs use layer 7, coefficient 2 and
    alpha 1, the authors coefficients of 6.5 to 20 and alpha around 1200. A coefficient far below
    the norm of the states has little effect.
    """

    coefficient: float = 2.0
    name = "rmu"
    above_zero = ("coefficient",)

    def length(self, norm: float) -> float:
        """The coefficient; the norm does not matter."""
        return self.coefficient


@dataclass(frozen=True)
class AdaptiveRmu(Steering):
    """`Steering` of one block's forget states to `scale` * norm * u.

    Dang et al., AAAI 2025, arXiv 2408.06223. The norm is measured once, on the original model, as
    in the authors' code, but over 64 forget facts instead of one batch, and without position 0,
    whose norm is huge in models like Llama. Relations: RMU with coefficient = scale * norm.
    """

    scale: float = 5.0
    name = "adaptive-rmu"
    above_zero = ("scale",)

    def length(self, norm: float) -> float:
        """scale * norm."""
        return self.scale * norm
