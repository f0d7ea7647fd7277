"""Any prompt answered by both models, the original and the unlearned, with rank and probability of the gold answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from adapop.errors import DataError, shown
from adapop.facts.fact import Fact
from adapop.model.adapted import AdaptedModel
from adapop.model.chat import encode_prompt
from adapop.model.tokens import encode_facts
from adapop.probes.metrics import gold_rank, rouge_l_recall

TOP = 5
WHOLE = 128  # tokens: a reply that is read is not cut short, as the measured ones are


@dataclass(frozen=True)
class Answer:
    """One model's reply to a prompt."""

    text: str
    """The greedy reply."""
    top: tuple[tuple[str, float], ...]
    """The most likely first tokens, each with its probability."""
    recall: float | None = None
    """ROUGE-L recall of the gold answer, [0, 1]; None without a gold answer, as the two fields below."""
    gold_rank: int | None = None
    """Rank of the first gold token, 1 is best."""
    gold_logprob: float | None = None
    """Log-probability of the whole gold answer, nats."""
    gold_ranks: tuple[int, ...] = ()
    """Rank of each gold token, given the gold tokens before it: a wrong reply may begin as the right one does."""


@dataclass(frozen=True)
class Asked:
    """One prompt with both models' answers."""

    prompt: str
    """The question, without the chat template."""
    gold: str
    """The right answer, "" if none is known."""
    sent: str
    """The exact text that the models read, with the chat template."""
    original: Answer
    """The original model's answer."""
    unlearned: Answer
    """The unlearned model's."""


def ask(model: AdaptedModel, prompts: Sequence[str], golds: Sequence[str], max_new_tokens: int) -> list[Asked]:
    """Both models' answers to every prompt, in their order, decoded greedily.

    golds: the right answer of each prompt, "" where none is known. max_new_tokens: budget of an answer, at least 1.

    Raises:
        DataError: a prompt with its answer exceeds the model's context, or contains invalid characters.
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


def whole_reply(model: AdaptedModel, prompts: Sequence[str], least: int) -> int:
    """Tokens that the replies to these prompts may have to be read whole: `WHOLE`, or as many as the longest prompt
    leaves of the model's context, and `least` at least."""
    longest = max(len(encode_prompt(model.tokenizer, prompt, model.system)) for prompt in prompts)
    return max(least, min(WHOLE, (model.context or WHOLE + longest) - longest))


@torch.no_grad()
def _answers(model: AdaptedModel, prompts: Sequence[str], golds: Sequence[str], max_new_tokens: int) -> list[Answer]:
    answers = []
    for prompt, gold, text in zip(prompts, golds, model.generate(prompts, max_new_tokens)):
        # without a gold answer any text will do: only the prediction of its first token is used
        fact = Fact("asked", prompt, gold or "?")
        batch = model.batch(encode_facts(model.tokenizer, [fact], model.system))
        scored = model.score(batch, logits=True)
        likely = scored.logits[0].softmax(-1).topk(TOP)
        top = tuple(
            (model.tokenizer.decode([token]).strip(), round(probability, 4))
            for token, probability in zip(likely.indices.tolist(), likely.values.tolist())
        )
        answer = Answer(text, top)
        if gold:
            ranks = tuple(gold_rank(scored, batch.target.to(model.device)).tolist())
            answer = replace(
                answer,
                recall=rouge_l_recall(gold, text),
                gold_rank=ranks[0],
                gold_logprob=-float(scored.nll.sum()),
                gold_ranks=ranks,
            )
        answers.append(answer)
    return answers
