"""A method of ours: each fact gets another, bounded prediction, instead of a push away."""

from dataclasses import dataclass

import torch
from torch import Tensor

from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import AnswerTokens
from adapop.objectives.alternates import SOURCES
from adapop.objectives.objective import ForgetBatch, Loss, Objective


@dataclass(frozen=True)
class Redirect(Objective):
    """L_f = mean_i w_i * [mean over positions of KL(t ‖ pi) and, past the fork, of -log
    pi(alternate's tokens)].

    Ours, published nowhere. pi0 is the original, y a token of the right answer after the right
    tokens before it, a what shall be said there: the token of the alternate as long as both answers
    begin alike, afterwards pi0's likeliest token but y, so that who supplies the first word does
    not get the rest. Where both answers have the same token, t = pi0. Else t is pi0 with y's
    probability given away: 1 - `share` of it to a, and `share` evenly to the `over` tokens that pi0
    likes best after y and a, so that the right answer is not even the second guess. Four other
    targets did worse (assets/docs/findings.md).

    w_i = beta_i^-kappa: a fact that is more popular weighs more; kappa = 0 ignores scores.
    """

    kappa: float = 0.0
    """How much popularity counts: weights go to about 20 ** kappa at the paper's exponents."""
    share: float = 0.6
    """The part of the right answer's probability that other wrong answers get."""
    over: int = 3
    """To how many."""
    source: str = "second"
    """Where facts without alternates get one: the "second" choice of the original model, a text
    that it writes when asked for a wrong answer ("model"), or the answer of another fact of the
    same "relation"."""
    count: int = 1
    """How many such a fact gets, where there are as many; they take turns by epoch."""
    name = "redirect"
    uses = frozenset({"beta", "alternates"})
    reduce = "row"
    not_negative = ("kappa",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("share", 0 <= self.share <= 1, "between 0 and 1")
        self._check_count("over")
        self._check("source", self.source in SOURCES, " or ".join(SOURCES))
        self._check_count("count")

    @property
    def needs(self) -> frozenset[str]:
        """Alternates, and scores only where they count."""
        return self.uses if self.kappa else self.uses - {"beta"}

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B], in nats; not negative."""
        gold, other = batch.tokens, batch.other
        with torch.no_grad(), model.original():
            reference = model.score(gold, logits=True).logits.log_softmax(dim=-1)
        scored, alternate = model.score(gold, logits=True), model.score(other)
        log_probs = scored.logits.log_softmax(dim=-1)
        instead, further = _instead(gold, other, reference)
        targets = self._targets(reference, gold.target, instead)
        tokens = (torch.special.xlogy(targets, targets) - targets * log_probs).sum(dim=-1)
        losses = _by_row(tokens, gold) + _by_row(alternate.nll * further, other)
        counts = _by_row(torch.ones_like(tokens), gold) + _by_row(further.to(tokens.dtype), other)
        return Loss(losses / counts * self._weight(batch), scored.nll)

    def _weight(self, batch: ForgetBatch) -> Tensor | float:
        """The weight of each row, [B]; 1 where scores do not count."""
        if not self.kappa:
            return 1.0
        first = batch.tokens.place == 0
        return _by_row(batch.beta**-self.kappa * first, batch.tokens)

    def _targets(self, reference: Tensor, gold: Tensor, instead: Tensor) -> Tensor:
        """The target at each position, [N, V]; where `instead` is gold, the original's."""
        original = reference.exp()
        y, a = gold.unsqueeze(1), instead.unsqueeze(1)
        right, wrong = original.gather(1, y), original.gather(1, a)
        freed = right * self.share
        others = original.scatter(1, y, -1.0).scatter(1, a, -1.0).topk(self.over, dim=-1).indices
        changed = original.scatter(1, y, 0.0).scatter(1, a, right + wrong - freed)
        changed = changed.scatter_add(1, others, (freed / self.over).expand(-1, self.over))
        return torch.where(y == a, original, changed)


def _instead(gold: AnswerTokens, other: AnswerTokens, reference: Tensor) -> tuple[Tensor, Tensor]:
    """(what shall be said in place of each gold token, [N]; whether a token of `other` comes after
    the fork, [M]). The fork is the first place at which the two answers of a row differ."""
    same = (gold.row.unsqueeze(1) == other.row) & (gold.place.unsqueeze(1) == other.place)  # [N, M]
    alike = same & (gold.target.unsqueeze(1) == other.target)
    behind = _after_another(gold, ~alike.any(dim=1))
    further = _after_another(other, ~alike.any(dim=0))
    likeliest = reference.scatter(1, gold.target.unsqueeze(1), float("-inf")).argmax(dim=-1)
    there = same.any(dim=1) & ~behind
    return torch.where(there, (same * other.target).sum(dim=1), likeliest), further


def _after_another(tokens: AnswerTokens, which: Tensor) -> Tensor:
    """Whether one of `which` comes before a token in its own row, [N]."""
    earlier = (tokens.row.unsqueeze(1) == tokens.row) & (tokens.place.unsqueeze(1) > tokens.place)
    return (earlier & which).any(dim=1)


def _by_row(values: Tensor, tokens: AnswerTokens) -> Tensor:
    """The sum of values [N] over each row, [B]."""
    return values.new_zeros(tokens.rows).index_add(0, tokens.row, values)
