"""What a model still knows, by group, tier and form of the question.

`quick` is what every epoch can afford: generated recall on the forget facts. `full` adds retain, holdout and utility,
every rewording, and the teacher-forced metrics against the original model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from adapop.facts import TIERS, Fact, FactSet
from adapop.metrics import cosines, delta_logprob, delta_rank, hidden_cosine, kl, rouge_l_recall
from adapop.model import AdaptedModel
from adapop.tokens import collate, encode_facts

DIRECT, REWORDED = "direct", "reworded"
EVAL_BATCH = 256


@dataclass(frozen=True)
class Measurement:
    """Means over the facts of one group and tier, asked in one form. tier "all" is the whole group.

    facts: how many facts. recall: ROUGE-L recall of the greedy answer, [0, 1]. words: mean length of the answers.
    The rest is None where it was not measured; see `metrics` for units and directions.
    """

    group: str
    tier: str
    form: str
    facts: int
    recall: float
    words: float
    cosine: float | None = None
    nll: float | None = None
    delta_logprob: float | None = None
    delta_rank: float | None = None
    hidden_cosine: float | None = None
    kl: float | None = None


def quick(model: AdaptedModel, facts: FactSet, max_new_tokens: int) -> list[Measurement]:
    """Recall of the forget facts by tier: the trained question, and each fact's first rewording."""
    rows = _generated(model, "forget", DIRECT, facts.forget, lambda fact: (fact.question,), max_new_tokens)
    reworded = [fact for fact in facts.forget if fact.paraphrases]
    return rows + _generated(model, "forget", REWORDED, reworded, lambda f: f.paraphrases[:1], max_new_tokens)


def full(model: AdaptedModel, facts: FactSet, max_new_tokens: int, cosine: bool = False) -> list[Measurement]:
    """Everything, on forget, retain, holdout and utility. The metrics of internals come with the direct rows."""
    rows = []
    for group in ("forget", "retain", "holdout", "utility"):
        members = getattr(facts, group)
        rows += _generated(
            model,
            group,
            DIRECT,
            members,
            lambda fact: (fact.question,),
            max_new_tokens,
            cosine,
            _internals(model, members),
        )
        reworded = [fact for fact in members if fact.paraphrases]
        rows += _generated(model, group, REWORDED, reworded, lambda fact: fact.paraphrases, max_new_tokens, cosine)
    return rows


def _generated(
    model: AdaptedModel,
    group: str,
    form: str,
    facts: Sequence[Fact],
    asks: Callable[[Fact], Iterable[str]],
    max_new_tokens: int,
    cosine: bool = False,
    internals: dict[str, list[float]] | None = None,
) -> list[Measurement]:
    """Measurements by tier of what the model answers; a fact asked in several ways counts their mean."""
    asked = [(index, question) for index, fact in enumerate(facts) for question in asks(fact)]
    if not asked:
        return []
    answers = model.generate([question for _, question in asked], max_new_tokens)
    values: dict[str, list[list[float]]] = {"recall": [[] for _ in facts], "words": [[] for _ in facts]}
    for (index, _), answer in zip(asked, answers):
        values["recall"][index].append(rouge_l_recall(facts[index].answer, answer))
        values["words"][index].append(len(answer.split()))
    if cosine:
        values["cosine"] = [[] for _ in facts]
        for (index, _), value in zip(asked, cosines([facts[i].answer for i, _ in asked], answers)):
            values["cosine"][index].append(value)
    per_fact = {name: [sum(row) / len(row) for row in rows] for name, rows in values.items()} | (internals or {})
    return _by_tier(group, form, facts, per_fact)


def _by_tier(group: str, form: str, facts: Sequence[Fact], values: dict[str, list[float]]) -> list[Measurement]:
    rows = []
    for tier in ("all", *TIERS):
        chosen = [i for i, fact in enumerate(facts) if tier in ("all", fact.tier)]
        if chosen and not (tier != "all" and len(chosen) == len(facts) and facts[0].tier == "unknown"):
            means = {name: sum(column[i] for i in chosen) / len(chosen) for name, column in values.items()}
            rows.append(Measurement(group, tier, form, len(chosen), **means))
    return rows


@torch.no_grad()
def _internals(model: AdaptedModel, facts: Sequence[Fact]) -> dict[str, list[float]]:
    """The teacher-forced metrics of each fact's own question, original against unlearned."""
    values: dict[str, list[float]] = {"nll": [], "delta_logprob": [], "delta_rank": [], "hidden_cosine": [], "kl": []}
    rows = encode_facts(model.tokenizer, facts, model.system)
    model.network.eval()
    for start in range(0, len(rows), EVAL_BATCH):
        batch = collate(rows[start : start + EVAL_BATCH], model.tokenizer.pad_token_id).to(model.device)
        after = model.score(batch, logits=True, hidden=True)
        with model.original():
            before = model.score(batch, logits=True, hidden=True)
        lengths = after.per_row(torch.ones_like(after.nll))
        values["nll"] += (after.per_row(after.nll) / lengths).tolist()
        values["delta_logprob"] += delta_logprob(before, after).tolist()
        values["delta_rank"] += delta_rank(before, after, batch.target).tolist()
        values["hidden_cosine"] += hidden_cosine(before, after).tolist()
        values["kl"] += kl(before, after).tolist()
    return values
