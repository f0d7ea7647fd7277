"""Reference-free negative preference optimisation."""

from dataclasses import dataclass

from torch.nn.functional import logsigmoid

from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective


@dataclass(frozen=True)
class SimpleNegativePreference(Objective):
    """L_f = gamma * -(2/beta) mean_i log sigmoid(beta * (NLL_i / n_i - delta)).

    Fan et al., NeurIPS 2025, arXiv 2410.07163. NLL_i is summed over the n_i answer tokens; there is
    no reference model. The margin of that paper is beta * delta here.
    """

    beta: float = 4.5
    delta: float = 0.0
    gamma: float = 0.125
    name = "simnpo"
    reduce = "row"
    above_zero = ("beta", "gamma")

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]; positive."""
        scored = model.score(batch.tokens)
        margin = scored.row_mean(scored.nll) - self.delta
        return Loss(-self.gamma * (2 / self.beta) * logsigmoid(self.beta * margin), scored.nll)
