"""Primal-dual unlearning."""

from dataclasses import dataclass, replace

from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective


@dataclass(frozen=True)
class PrimalDualUnlearning(Objective):
    """L_f = mean over answer tokens of (max_v z_v - mean_v z_v)^2: flattens the predicted logits.

    Entesari et al., NeurIPS 2025, arXiv 2506.05314. The retain weight is the dual variable of a
    bound on the retain loss, see `training.controller.PrimalDual`. L_f is quadratic in logits, so a
    retain weight of 1 (the AdaPop paper's runs) is small: the method's authors start at 50 to 100.
    """

    predicting: bool = True
    """Whether the logits that predict each answer token are flattened. False: the logits after it,
    as in the authors' code, whose mask is not shifted: the first prediction is never flattened."""
    name = "pdu"

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per token, [N], in squared logits; non-negative."""
        scored = model.score(batch.tokens, logits=True)
        logits = scored.logits
        if not self.predicting:
            after = replace(batch.tokens, predicts=batch.tokens.reads)
            logits = model.score(after, logits=True).logits
        return Loss((logits.amax(-1) - logits.mean(-1)).square(), scored.nll)
