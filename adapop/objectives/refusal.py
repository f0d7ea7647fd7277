"""Methods that teach a refusal in place of the answer, as a preference or by plain fine-tuning."""

from dataclasses import dataclass

from adapop.model.adapted import AdaptedModel
from adapop.objectives.altpo import preferred
from adapop.objectives.flat import Refusing
from adapop.objectives.objective import ForgetBatch, Loss


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
