"""Our own method: trains each fact towards another prediction instead of away from its answer."""

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

    Ours, published nowhere. pi0 is the original model; y is the next token of the right answer,
    after those before it; a is the token taught instead. Up to the fork, the first place at which
    both answers differ, a is the alternate's token; after it, pi0's likeliest token other than y,
    so that a user who supplies the first word does not get the rest. t = pi0 where y = a. Else t is
    pi0 with y's probability given away: 1 - `share` of it to a, `share` in equal parts to the
    `over` tokens that pi0 likes best after y and a, so that the right answer is not even second.
    Four other targets did worse ("Redirect, other targets" in assets/recorded/tuned.csv).

    w_i = beta_i^-kappa: popular facts weigh more; with kappa = 0 scores are ignored.
    """

    kappa: float = 0.0
    """How much popularity counts: at the paper's exponents weights reach about 20 ** kappa."""
    share: float = 0.6
    """The part of the right answer's probability that goes to the `over` other tokens."""
    over: int = 3
    """How many other tokens share that part."""
    source: str = "second"
    """How facts without alternates get one: it is the "second" choice of the original model, a text
    that the original "model" writes when asked for a wrong answer, or the answer of another fact of
    the same "relation"."""
    count: int = 1
    """How many alternates such a fact gets, at most; they take turns by epoch."""
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
        """Alternates; scores only if kappa is not 0."""
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
        losses = scored.per_row(tokens) + alternate.per_row(alternate.nll * further)
        counts = scored.per_row(torch.ones_like(tokens)) + alternate.per_row(further.to(tokens))
        first = gold.place == 0
        weight = scored.per_row(batch.beta**-self.kappa * first) if self.kappa else 1.0
        return Loss(losses / counts * weight, scored.nll)

    def _targets(self, reference: Tensor, gold: Tensor, instead: Tensor) -> Tensor:
        """The target at each position, [N, V]; the original's where `instead` is gold."""
        original = reference.exp()
        y, a = gold.unsqueeze(1), instead.unsqueeze(1)
        right, wrong = original.gather(1, y), original.gather(1, a)
        freed = right * self.share
        others = original.scatter(1, y, -1.0).scatter(1, a, -1.0).topk(self.over, dim=-1).indices
        changed = original.scatter(1, y, 0.0).scatter(1, a, right + wrong - freed)
        changed = changed.scatter_add(1, others, (freed / self.over).expand(-1, self.over))
        return torch.where(y == a, original, changed)


def _instead(gold: AnswerTokens, other: AnswerTokens, reference: Tensor) -> tuple[Tensor, Tensor]:
    """(the token taught in place of each gold token, [N]; whether a token of `other` comes after
    the fork, [M]). The fork is the first place at which the two answers of a row differ; without
    one, as where "120" is taught in place of "12", the next likeliest tokens are taught."""
    same = (gold.row.unsqueeze(1) == other.row) & (gold.place.unsqueeze(1) == other.place)  # [N, M]
    alike = same & (gold.target.unsqueeze(1) == other.target)
    apart = ~alike.any(dim=1)
    forks = ((gold.row.unsqueeze(1) == gold.row) & apart).any(dim=1)
    further = _after_another(other, ~alike.any(dim=0))
    likeliest = reference.scatter(1, gold.target.unsqueeze(1), float("-inf")).argmax(dim=-1)
    there = same.any(dim=1) & forks & ~_after_another(gold, apart)
    return torch.where(there, (same * other.target).sum(dim=1), likeliest), further


def _after_another(tokens: AnswerTokens, which: Tensor) -> Tensor:
    """Whether an earlier token of its row is in `which`, for each token, [N]."""
    earlier = (tokens.row.unsqueeze(1) == tokens.row) & (tokens.place.unsqueeze(1) > tokens.place)
    return (earlier & which).any(dim=1)
