"""The logit lens: the rank of the answer after each layer.

Source: nostalgebraist 2020; for deleted facts Patil et al., ICLR 2024, arXiv 2309.17410.

The final norm and the output head are applied to the output of each layer, at the position that
predicts the answer's first token, and the token is ranked. An answer with rank 1 in a middle layer
but not at the end is still computed, and then suppressed. Middle layers may favour any answer of
the right kind, so a wrong answer of the same relation is ranked as the control. The adapter changes
the layers, so each model has its own forward pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median

import torch
from torch import Tensor, nn

from adapop.errors import ModelError
from adapop.facts.fact import Fact
from adapop.model.adapted import AdaptedModel
from adapop.model.precision import logits_of
from adapop.probes.metrics import rank_of
from adapop.probes.recovery import base
from adapop.progress import Progress

ROWS = 64  # per forward pass, which keeps the hidden states of every layer and position


@dataclass(frozen=True)
class LensRow:
    """One layer, counted from 1, and the facts of a tier of scores, or of "all".

    original, unlearned: share of facts whose answer has rank 1 there, [0, 1]. *_rank: median rank.
    control, control_rank: of a wrong answer in the unlearned model; None where no fact has one."""

    tier: str
    layer: int
    facts: int
    original: float
    unlearned: float
    control: float | None
    original_rank: float
    unlearned_rank: float
    control_rank: float | None


@dataclass(frozen=True)
class Lensed:
    """The result of the logit lens. facts: ranks of each answer's first token after each layer; 1
    is the best rank. layers: their number; the last ranks are the model's own."""

    rows: tuple[LensRow, ...]
    facts: tuple[base.Found, ...]
    layers: int


def lens(model: AdaptedModel, facts: Sequence[Fact], progress: Progress) -> Lensed:
    """The ranks of each trained question's answer after every layer of both models. Raises
    ModelError: no final norm or output head is found in the model."""
    base.check(model, facts)
    by_fact = base.found_in_both(model, facts, 0, progress, partial(_ranks, model))
    layers = len(by_fact[0].original)
    return Lensed(_rows(facts, by_fact, layers), by_fact, layers)


def norm_and_head(model: AdaptedModel) -> tuple[nn.Module, nn.Module]:
    """The final norm and the output head, as found in models built like Llama, Qwen or Gemma.
    Raises ModelError: the decoder has no `norm`, or the model no output embeddings."""
    network = model.network.get_base_model()
    norm, head = getattr(network.get_decoder(), "norm", None), network.get_output_embeddings()
    if norm is None or head is None:
        missing = "final norm" if norm is None else "output head"
        reason = f"The lens finds no {missing} in this model ({type(network).__name__})."
        fix = "It reads models that are built like Llama, Qwen or Gemma"
        raise ModelError(reason, f"{fix}; the other probes work without it.")
    return norm, head


@torch.no_grad()
def _ranks(
    model: AdaptedModel, facts: Sequence[Fact], others: Sequence[Fact], progress: Progress
) -> tuple[list[list[int]], list[list[int]]]:
    """Ranks of the first answer tokens of `facts` and `others` after each layer, [facts, L] each.

    Those of the last layer come from the model's own logits: transformers has already applied the
    norm to the last of `hidden_states`, and some models change logits (Gemma's soft cap)."""
    norm, head = norm_and_head(model)
    all_ranks: tuple[list[Tensor], list[Tensor]] = ([], [])
    for batch, wrong in base.opening_batches(model, facts, others, progress, ROWS):
        output = model.forward(batch, hidden=True)  # each row has one answer token
        read = [batch.at(state, batch.predicts) for state in output.hidden_states[1:-1]]
        logits = [*(logits_of(head, norm(state)) for state in read), output.logits]
        for layer in logits:
            base.check_logits(layer)
        for target, ranks in zip((batch.target, wrong.target), all_ranks):
            ranks.append(torch.stack([rank_of(layer.float(), target) for layer in logits], dim=1))
    right, instead = (torch.cat(ranks).tolist() for ranks in all_ranks)
    return right, instead


def _rows(facts: Sequence[Fact], by_fact: Sequence[base.Found], layers: int) -> tuple[LensRow, ...]:
    rows = []
    for tier, count, sides in base.sides_by_tier(facts, by_fact):
        for layer in range(layers):
            ranks = [[fact[layer] for fact in side] for side in sides]
            shares = (fmean(rank == 1 for rank in side) if side else None for side in ranks)
            medians = (median(side) if side else None for side in ranks)
            rows.append(LensRow(tier, layer + 1, count, *shares, *medians))
    return tuple(rows)
