"""One prompt to both models: the original and the unlearned, with where the gold answer stands in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from adapop.errors import DataError, shown
from adapop.facts.fact import Fact
from adapop.model.adapted import AdaptedModel
from adapop.model.chat import encode_prompt
from adapop.model.tokens import collate, encode_facts
from adapop.probes.metrics import gold_rank, rouge_l_recall

TOP = 5


@dataclass(frozen=True)
class Answer:
    """What one model says to a prompt.

    text: the greedy answer. top: the likeliest first tokens with their probability. recall, gold_rank (of the first
    gold token, 1 is best), gold_logprob (nats, whole answer): None when no gold answer is known.
    """

    text: str
    top: tuple[tuple[str, float], ...]
    recall: float | None = None
    gold_rank: int | None = None
    gold_logprob: float | None = None


@dataclass(frozen=True)
class Asked:
    """One prompt and both answers. sent: the exact text the models saw, with the chat template."""

    prompt: str
    gold: str
    sent: str
    original: Answer
    unlearned: Answer


def ask(model: AdaptedModel, prompts: Sequence[str], golds: Sequence[str], max_new_tokens: int) -> list[Asked]:
    """Asks both models every prompt, greedily and with the same budget. A gold of "" means none is known.

    Raises:
        DataError: a prompt with its answer is longer than the model reads, or holds what is no text.
    """
    read = [encode_prompt(model.tokenizer, prompt, model.system) for prompt in prompts]
    limit = model.context
    for prompt, ids in zip(prompts, read):
        if limit is not None and len(ids) + max_new_tokens > limit:
            raise DataError(
                f"{shown(prompt)!r} has {len(ids):,} tokens, and the model reads {limit:,} with the answer's "
                f"{max_new_tokens:,}.",
                "Shorten it.",
            )
    unlearned = _answers(model, prompts, golds, max_new_tokens)
    with model.original():
        original = _answers(model, prompts, golds, max_new_tokens)
    sent = [model.tokenizer.decode(ids) for ids in read]
    return [Asked(*row) for row in zip(prompts, golds, sent, original, unlearned)]


@torch.no_grad()
def _answers(model: AdaptedModel, prompts: Sequence[str], golds: Sequence[str], max_new_tokens: int) -> list[Answer]:
    answers = []
    for prompt, gold, text in zip(prompts, golds, model.generate(prompts, max_new_tokens)):
        # without a gold answer any token will do: only the first prediction is read
        fact = Fact("asked", prompt, gold or "?")
        batch = collate(encode_facts(model.tokenizer, [fact], model.system), model.tokenizer.pad_token_id)
        scored = model.score(batch, logits=True)
        likely = scored.logits[0].softmax(-1).topk(TOP)
        top = tuple(
            (model.tokenizer.decode([token]).strip(), round(probability, 4))
            for token, probability in zip(likely.indices.tolist(), likely.values.tolist())
        )
        answer = Answer(text, top)
        if gold:
            rank = int(gold_rank(scored, batch.target.to(model.device))[0])
            answer = replace(
                answer, recall=rouge_l_recall(gold, text), gold_rank=rank, gold_logprob=-float(scored.nll.sum())
            )
        answers.append(answer)
    return answers
