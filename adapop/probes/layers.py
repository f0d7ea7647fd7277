"""The logit lens as a grid: how likely each token of a reply is after every layer of both models.

As `recovery.lens`, which ranks the answers of all facts with a wrong answer as the control.
"""

from dataclasses import dataclass

import torch

from adapop.errors import ModelError
from adapop.model.adapted import AdaptedModel
from adapop.model.paired import PairedModel
from adapop.model.precision import logits_of
from adapop.model.tokens import Row
from adapop.probes.inspection import Question
from adapop.probes.recovery import base
from adapop.probes.recovery.lens import norm_and_head
from adapop.probes.tokenwise import Column, readable, written

WORDS = 3


@dataclass(frozen=True)
class Cell:
    """One layer at one token."""

    share: float
    """Probability of the reply's token, [0, 1], if the model ended after this layer."""
    words: tuple[str, ...]
    """The likeliest tokens there, readable."""


@dataclass(frozen=True)
class LayerGrid:
    """One reply in both models, a row a layer from the first to the last, a cell a token."""

    tokens: tuple[str, ...]
    """The reply's tokens, readable."""
    original: tuple[tuple[Cell, ...], ...]
    unlearned: tuple[tuple[Cell, ...], ...]


def layers_of(model: AdaptedModel, question: Question, most: int, by: str) -> LayerGrid:
    """The reply of one model, `by` "original" or "unlearned", in the layers of both. most: tokens
    of the reply. Raises ModelError: no final norm or output head is found. RunError: the weights
    are not numbers. As `tokenwise.inspect`."""
    if isinstance(model, PairedModel) and not model.compares:
        reason = (
            "The two models have different vocabularies or layers, so these cannot be compared."
        )
        raise ModelError(reason, "Compare their replies.")
    speaker = Column(by, lambda: model, 0.0 if by == "original" else 1.0)
    with speaker.speaking():
        reply = written(model, question, most)
    end = (reply.end,) if reply.end is not None else ()
    ids = (*reply.begun, *reply.written, *end)
    row = Row(reply.read, ids, 0)
    names = tuple(readable(model.tokenizer, token) for token in ids)
    with model.original():
        before = _cells(model, row)
    return LayerGrid(names, before, _cells(model, row))


@torch.no_grad()
def _cells(model: AdaptedModel, row: Row) -> tuple[tuple[Cell, ...], ...]:
    """The cells of one model. The last layer's come from its own logits, see `recovery.lens`."""
    norm, head = norm_and_head(model)
    model.network.eval()
    batch = model.batch([row])
    output = model.forward(batch, hidden=True)
    read = [batch.at(state, batch.predicts) for state in output.hidden_states[1:-1]]
    logits = [*(logits_of(head, norm(state)) for state in read), output.logits]
    target, rows = batch.target.unsqueeze(1), []
    for layer in logits:
        base.check_logits(layer)
        shares = layer.float().softmax(-1)
        gold = shares.gather(1, target.to(shares.device)).squeeze(1).tolist()
        tops = shares.topk(WORDS).indices.tolist()
        texts = [tuple(readable(model.tokenizer, token) for token in top) for top in tops]
        rows.append(tuple(Cell(round(one, 5), words) for one, words in zip(gold, texts)))
    return tuple(rows)
