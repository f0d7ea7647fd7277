"""Methods that train on all logits of an answer's tokens: UNDIAL lowers the gold one, CE-U leaves
it out, PDU flattens them."""

from dataclasses import dataclass, replace

import torch

from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import Row
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
