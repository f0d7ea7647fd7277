"""The second guess: whether a forgotten answer is still the next best, which the greedy reply does not show."""

from collections.abc import Sequence
from itertools import chain

import torch

from adapop.facts.fact import Fact
from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import Row, collate, encode_facts

Guesses = dict[tuple[str, str], float]


@torch.no_grad()
def second_guesses(model: AdaptedModel, facts: Sequence[Fact]) -> dict[str, Guesses]:
    """By measure, of each fact's id and rewording, both by the first token of the answers:

    - "top2": 1 if the right answer is the likeliest of all tokens, or likelier than all other answers of its relation
      but the one that is; else 0.
    - "rank": of the right answer among the different answers of its relation, 1 is the likeliest.
    """
    model.network.eval()
    pairs = [(fact, question) for fact in facts for question in fact.paraphrases]
    rows = encode_facts(model.tokenizer, [fact for fact, _ in pairs], model.system, [asked for _, asked in pairs])
    firsts: dict[str, set[int]] = {}
    for (fact, _), row in zip(pairs, rows):
        firsts.setdefault(fact.relation, set()).add(row.answer[0])

    def guessed(some: Sequence[Row]) -> list[tuple[bool, int]]:
        batch = collate(some, model.tokenizer.pad_token_id).to(model.device)
        logits = model.score(batch, logits=True).logits[batch.place == 0]
        return [_guess(row.answer[0], firsts[pairs[row.fact][0].relation], of) for row, of in zip(some, logits)]

    each = list(chain.from_iterable(model.in_pieces(rows, model.at_once(rows), guessed)))
    asked = [(fact.id, question) for fact, question in pairs]
    return {
        "top2": {key: float(near) for key, (near, _) in zip(asked, each)},
        "rank": {key: float(rank) for key, (_, rank) in zip(asked, each)},
    }


def _guess(gold: int, answers: set[int], logits: torch.Tensor) -> tuple[bool, int]:
    """Whether the gold token is the first or second guess, and its rank among the answers. logits: [V]."""
    greedy, known = int(logits.argmax()), sorted(answers)
    ahead = {other for other, value in zip(known, logits[known].tolist()) if value > logits[gold].item()}
    return gold == greedy or not ahead - {greedy}, 1 + len(ahead)
