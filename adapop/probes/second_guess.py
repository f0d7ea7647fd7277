"""The second guess: whether a forgotten answer is the next best, which a greedy reply hides.

Answers are identified by their first token. The right answer is ranked among the answers of the
fact's relation; without a relation, or with fewer than `FEWEST` different first tokens, among all
tokens.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import torch
from torch import Tensor

from adapop.facts.fact import Fact, OwnAnswer
from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import Row, encode_facts
from adapop.probes.ways import place_of

FEWEST = 3
Guesses = dict[tuple[str, str], float]
Rivals = Mapping[str, frozenset[int]]


def rivals(model: AdaptedModel, facts: Iterable[Fact]) -> Rivals:
    """Relation -> first tokens of its answers, behind the lead of the model's own words; only
    relations with at least `FEWEST` such tokens."""
    firsts: dict[str, set[int]] = {}
    named, spoken = [fact for fact in facts if fact.relation], {}
    for fact in named:
        if own := model.spoken.get(fact.id):
            reply = own.lead + own.answer  # of a fact to retain, all of it
            if place := place_of(fact, reply):
                spoken[fact.id] = OwnAnswer(own.gold, reply[: place[0]], reply[place[0] :])
    rows = encode_facts(model.tokenizer, named, model.system, spoken=spoken)
    for fact, row in zip(named, rows):
        firsts.setdefault(fact.relation, set()).add(row.answer[0])
    return {name: frozenset(tokens) for name, tokens in firsts.items() if len(tokens) >= FEWEST}


def guess(gold: int, others: frozenset[int] | None, logits: Tensor) -> tuple[bool, int]:
    """Whether the gold token is the first or second guess, and its rank among `others`, from 1.
    Second: at most one of `others` is likelier, and it is the likeliest token of all. others: None
    for all tokens. logits: [V]."""
    if others is None:
        rank = 1 + int((logits > logits[gold]).sum())
        return rank <= 2, rank
    greedy, known = int(logits.argmax()), sorted(others)
    values, gold_value = logits[known].tolist(), logits[gold].item()
    ahead = {other for other, value in zip(known, values) if value > gold_value}
    return gold == greedy or not ahead - {greedy}, 1 + len(ahead)


@torch.no_grad()
def second_guesses(model: AdaptedModel, facts: Sequence[Fact]) -> dict[str, Guesses]:
    """Measure -> its value by fact id and rewording: "top2", 1 if the right answer is the first or
    second guess, else 0; "rank", the second value of `guess`."""
    model.network.eval()
    pairs = [(fact, question) for fact in facts for question in fact.paraphrases]
    rows = model.rows([fact for fact, _ in pairs], [question for _, question in pairs])
    known = rivals(model, facts)

    def guessed(some: Sequence[Row]) -> list[tuple[bool, int]]:
        batch = model.batch(some)
        logits = model.score(batch, logits=True).logits[batch.place == 0]
        others = (known.get(pairs[row.fact][0].relation) for row in some)
        return [guess(row.answer[0], own, of) for row, own, of in zip(some, others, logits)]

    guesses = list(chain.from_iterable(model.in_pieces(rows, model.at_once(rows), guessed)))
    keys = [(fact.id, question) for fact, question in pairs]
    return {
        "top2": {key: float(near) for key, (near, _) in zip(keys, guesses)},
        "rank": {key: float(rank) for key, (_, rank) in zip(keys, guesses)},
    }
