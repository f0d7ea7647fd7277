"""Cross-entropy unlearning."""

from dataclasses import dataclass

import torch

from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import Row
from adapop.objectives.objective import ForgetBatch, Loss, Objective


@dataclass(frozen=True)
class CrossEntropyUnlearning(Objective):
    """L_f = (1/N) sum CE(sg[softmax(z with z[gold] = -inf)], softmax(z)).

    Yang 2025, arXiv 2503.01224. The target is the model's own prediction without the gold token.
    The mean is over the tokens that are not skipped. As published there is no retain term
    (alpha = 0).
    """

    skip: int = 1
    """Leading answer tokens that are left out, unless an answer has no others. (For such an answer
    the authors' code trains only on the end of the turn, and the model never stops.)"""
    name = "ceu"
    not_negative = ("skip",)

    def counted(self, row: Row) -> int:
        short = len(row.answer) - row.tail <= self.skip
        return len(row.answer) - (0 if short else self.skip)

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per token, [N], in nats; 0 for a token that is skipped."""
        tokens = batch.tokens
        scored = model.score(tokens, logits=True)
        others = scored.logits.detach().scatter(1, tokens.target.unsqueeze(1), -torch.inf)
        target = others.softmax(dim=-1)
        loss = -(target * scored.logits.log_softmax(dim=-1)).sum(-1)
        # not counting the template's tail
        short = scored.per_row(tokens.content.to(loss))[tokens.row] <= self.skip
        counted = (tokens.place >= self.skip) | short
        return Loss(torch.where(counted, loss, 0.0 * loss), scored.nll, counted)
