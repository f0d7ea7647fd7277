"""Targeted preference optimisation."""

from dataclasses import dataclass

from torch.nn.functional import logsigmoid

from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective


@dataclass(frozen=True)
class TargetedPreference(Objective):
    """L_f = gamma * mean_i [-(2/beta) log sigmoid(beta * d_i) + mean NLL of the general tokens of y_i],
    d_i = mean over the unwanted tokens of y_i of z_ref[gold] - z[gold], on raw logits.

    Zhou et al., AAAI 2026, arXiv 2506.03142, per example and with gamma 0.1 and beta 0.2 as in its LoRA port. Unwanted
    tokens are those of words that carry the fact; general ones are stop words, punctuation and the end of the turn (see
    `adapop.objectives.fact_words`). The loss acts on logits, so its gradient does not fade as p -> 0, only once d is
    well above 1 / beta.
    """

    beta: float = 0.2
    gamma: float = 0.1
    name = "tpo"
    uses = frozenset({"reference", "words"})
    reduce = "row"
    above_zero = ("beta", "gamma")

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]; positive. A row without general tokens has no second term."""
        scored = model.score(batch.tokens)
        drop = scored.row_mean(batch.reference_gold - scored.gold, batch.unwanted)
        general = scored.row_mean(scored.nll, ~batch.unwanted)
        preference = -(2 / self.beta) * logsigmoid(self.beta * drop)
        return Loss(self.gamma * (preference + general), scored.nll)
