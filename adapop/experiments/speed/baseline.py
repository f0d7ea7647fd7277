"""The baselines of `bench speed`: training, scoring and generation as in public trainers.

A few rows go through the model at once, padded on the right with a mask, and their gradients are
accumulated; logits are computed for every position and the whole vocabulary, and the reference
model of NPO is a deep copy. Nothing else slows them down: no logging, no host reads.
"""

import copy
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, logsigmoid
from torch.nn.utils.rnn import pad_sequence

from adapop.config.run import RunConfig
from adapop.model.adapted import AdaptedModel
from adapop.model.chat import encode_prompt
from adapop.model.tokens import Row, to_continue

BETA = 0.5


def training_steps(
    model: AdaptedModel, forget: Sequence[Row], retain: Sequence[Row], config: RunConfig
) -> Iterator[None]:
    """Endless steps of NPO with a retain term, `config.micro_batch` rows a pass; yields each."""
    network = model.network
    reference = copy.deepcopy(network).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters, lr=config.learning_rate)
    network.train()
    while True:
        for start in range(0, len(forget) - config.batch + 1, config.batch):
            for i in range(start, start + config.batch, config.micro_batch):
                rows = forget[i : i + config.micro_batch]
                beside = [retain[j % len(retain)] for j in range(i, i + len(rows))]
                log_ratio = -nll_sums(network, rows, model.device)
                with torch.no_grad():
                    log_ratio = log_ratio + nll_sums(reference, rows, model.device)
                lengths = torch.tensor([len(row.answer) for row in beside], device=model.device)
                retained = nll_sums(network, beside, model.device) / lengths
                loss = -2 / BETA * logsigmoid(-BETA * log_ratio) + config.alpha0 * retained
                (loss.sum() / config.batch).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters, config.clip)
            optimizer.step()
            optimizer.zero_grad()
            yield


def nll_sums(network: torch.nn.Module, rows: Sequence[Row], device: torch.device) -> Tensor:
    """Negative log-likelihood of each row's answer, [B], from the logits of all positions."""
    return token_nll(network, rows, device).sum(1)


def token_nll(network: torch.nn.Module, rows: Sequence[Row], device: torch.device) -> Tensor:
    """Negative log-likelihood per token, [B, T - 1], 0 where no answer token is predicted."""
    padded = [torch.tensor([*row.prompt, *row.answer], device=device) for row in rows]
    ids = pad_sequence(padded, batch_first=True)
    mask = pad_sequence([torch.ones_like(row) for row in padded], batch_first=True)
    labels = ids.masked_fill(mask == 0, -100)
    for label, row in zip(labels, rows):
        label[: len(row.prompt)] = -100
    logits = network(input_ids=ids, attention_mask=mask, use_cache=False).logits.float()
    predicted, right = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    return cross_entropy(predicted, right, ignore_index=-100, reduction="none").view(len(rows), -1)


@torch.no_grad()
def scores(model: AdaptedModel, rows: Sequence[Row], at_once: int) -> list[float]:
    """Each row's negative log-likelihood, in nats."""
    model.network.eval()
    values = []
    for start in range(0, len(rows), at_once):
        values += nll_sums(model.network, rows[start : start + at_once], model.device).tolist()
    return values


@torch.no_grad()
def answers(model: AdaptedModel, questions: Sequence[str], tokens: int, at_once: int) -> list[str]:
    """Greedy answers of exactly `tokens` tokens."""
    model.network.eval()
    prompts = [encode_prompt(model.tokenizer, question, model.system) for question in questions]
    written, pad = [], model.tokenizer.pad_token_id
    greedy = dict(do_sample=False, min_new_tokens=tokens, max_new_tokens=tokens, pad_token_id=pad)
    for start in range(0, len(prompts), at_once):
        read = to_continue(prompts[start : start + at_once], pad, model.device)
        new = model.network.generate(**read, **greedy)[:, read["input_ids"].shape[1] :]
        written += model.tokenizer.batch_decode(new, skip_special_tokens=True)
    return written
