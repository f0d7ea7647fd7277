"""Negative preference optimisation."""

from dataclasses import dataclass

from torch.nn.functional import logsigmoid

from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective


@dataclass(frozen=True)
class NegativePreference(Objective):
    """L_f = -(2/beta) mean_i log sigmoid(-beta * [log pi(y_i|x_i) - log pi_ref(y_i|x_i)]).

    Zhang, Lin, Bai and Mei, COLM 2024, arXiv 2404.05868. Log-probabilities are sums over the
    answer. At the start the ratio is 0 and L_f = (2/beta) ln 2. Relations: its gradient tends to
    GA's (on sequence sums) as beta -> 0. NPO's authors take beta = 0.1, the AdaPop paper 0.5.
    """

    beta: float = 0.5
    name = "npo"
    uses = frozenset({"reference"})
    reduce = "row"
    above_zero = ("beta",)

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]; positive."""
        scored = model.score(batch.tokens)
        log_ratio = scored.per_row(batch.reference_nll - scored.nll)
        return Loss(-(2 / self.beta) * logsigmoid(-self.beta * log_ratio), scored.nll)
