"""Self-distillation with adjusted logits."""

from dataclasses import dataclass

import torch

from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective


@dataclass(frozen=True)
class Undial(Objective):
    """L_f = mean over answer tokens of CE(softmax(z_ref - beta * onehot(gold)), softmax(z)).

    Dong, Lin, Belkin, Huerta and Vulic, NAACL 2025, arXiv 2402.10052. The teacher is the original
    model with the gold logit lowered by beta, so a gold token that leads by more than beta stays
    the most likely: weak forgetting at beta = 3 (the AdaPop paper's runs; the authors take 3 to 30)
    follows from the formula. The authors' code has no label mask and averages over prompt and
    padding; here only answer tokens count. Relations: at beta = 0 the teacher is the original
    model, and the gradient at the start is 0.
    """

    beta: float = 3.0
    name = "undial"
    not_negative = ("beta",)

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per token, [N], in nats; positive."""
        with torch.no_grad(), model.original():
            reference = model.score(batch.tokens, logits=True).logits
        gold = batch.tokens.target.unsqueeze(1)
        lowered = reference.gather(1, gold) - self.beta
        teacher = reference.scatter(1, gold, lowered).softmax(dim=-1)
        scored = model.score(batch.tokens, logits=True)
        return Loss(-(teacher * scored.logits.log_softmax(dim=-1)).sum(-1), scored.nll)
