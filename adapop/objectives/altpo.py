"""Alternate preference optimisation."""

from dataclasses import dataclass

from torch.nn.functional import logsigmoid

from adapop.model.adapted import AdaptedModel
from adapop.objectives.alternates import SOURCES
from adapop.objectives.objective import ForgetBatch, Loss, Objective


@dataclass(frozen=True)
class AlternatePreference(Objective):
    """L_f = -(2/beta) mean_i log sigmoid(beta * [log (pi/pi_ref)(alternate_i) - log
    (pi/pi_ref)(y_i)]).

    Mekala et al., COLING 2025, arXiv 2409.13474. DPO with a plausible wrong answer preferred to the
    right one. Where a fact has several alternates, each epoch uses the next one. Relations:
    swapping the two answers changes the sign of the bracket.
    """

    beta: float = 0.5
    source: str = "model"
    """How facts without alternates get one: the original "model" writes it before training; it is
    the answer of another fact of the same "relation"; or it is the "second" choice, the original's
    own next best reply."""
    count: int = 1
    """How many alternates such a fact gets, at most. The authors take 5."""
    name = "altpo"
    uses = frozenset({"reference", "alternates"})
    reduce = "row"

    def __post_init__(self) -> None:
        self._check("beta", self.beta > 0, "above 0")
        self._check("source", self.source in SOURCES, " or ".join(SOURCES))
        self._check_count("count")

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]; positive."""
        return preferred(model, batch, self.beta)


@dataclass(frozen=True)
class CounterfactualPreference(AlternatePreference):
    """L_f = -mean_i log sigmoid(beta * [log (pi/pi_ref)(alternate_i) - log (pi/pi_ref)(y_i)]).

    DPO (Rafailov et al., NeurIPS 2023, arXiv 2305.18290) as RWKU runs it (Jin et al., NeurIPS 2024,
    arXiv 2406.10890): a fabrication by the model preferred to the truth, no retain term (alpha =
    0). RWKU's texts are passages about a person, ours are answers. Relations: AltPO's loss times
    beta / 2.
    """

    beta: float = 0.1
    name = "dpo"

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]; positive."""
        loss = preferred(model, batch, self.beta)
        return Loss(self.beta / 2 * loss.loss, loss.nll)


def preferred(model: AdaptedModel, batch: ForgetBatch, beta: float) -> Loss:
    """-(2/beta) log sigmoid(beta * [log ratio of `batch.other` - log ratio of the answer]), [B].
    Log ratios are of the model to the original, summed over a text's tokens, in nats."""
    gold, other = model.score(batch.tokens), model.score(batch.other)
    log_ratio = gold.per_row(batch.reference_nll - gold.nll)
    other_ratio = other.per_row(batch.other_reference_nll - other.nll)
    return Loss(-(2 / beta) * logsigmoid(beta * (other_ratio - log_ratio)), gold.nll)
