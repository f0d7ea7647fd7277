"""The baseline of `bench speed`: training, scoring and generation as public trainers of unlearning do them.

Rows go through the model one by one and their gradients are accumulated, logits are computed for every position and the
whole vocabulary, and the reference model of NPO is a deep copy. Nothing else is made slow: no logging, no host reads.
"""

import copy
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, logsigmoid

from adapop.config.run import RunConfig
from adapop.model.adapted import AdaptedModel
from adapop.model.chat import encode_prompt
from adapop.model.tokens import Row

BETA = 0.5


def training_steps(
    model: AdaptedModel, forget: Sequence[Row], retain: Sequence[Row], config: RunConfig
) -> Iterator[None]:
    """Steps of NPO with a retain term over `config.batch` rows each, over and over. Yields after each."""
    network = model.network
    reference = copy.deepcopy(network).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters, lr=config.learning_rate)
    network.train()
    while True:
        for start in range(0, len(forget) - config.batch + 1, config.batch):
            for i in range(start, start + config.batch):
                log_ratio = -nll_sum(network, forget[i], model.device)
                with torch.no_grad():
                    log_ratio = log_ratio + nll_sum(reference, forget[i], model.device)
                kept = nll_sum(network, retain[i % len(retain)], model.device) / len(retain[i % len(retain)].answer)
                loss = -2 / BETA * logsigmoid(-BETA * log_ratio) + config.alpha0 * kept
                (loss / config.batch).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters, config.clip)
            optimizer.step()
            optimizer.zero_grad()
            yield


def nll_sum(network: torch.nn.Module, row: Row, device: torch.device) -> Tensor:
    """Negative log-likelihood of a row's answer, from the logits of all its positions."""
    ids = torch.tensor([row.prompt + row.answer], device=device)
    labels = ids.clone()
    labels[:, : len(row.prompt)] = -100
    logits = network(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits.float()
    return cross_entropy(logits[0, :-1], labels[0, 1:], ignore_index=-100, reduction="sum")


@torch.no_grad()
def scores(model: AdaptedModel, rows: Sequence[Row]) -> list[float]:
    """Each row's nll, one by one."""
    model.network.eval()
    return [nll_sum(model.network, row, model.device).item() for row in rows]


@torch.no_grad()
def answers(model: AdaptedModel, questions: Sequence[str], tokens: int) -> list[str]:
    """Greedy answers of exactly so many tokens, one by one."""
    model.network.eval()
    written = []
    for question in questions:
        ids = torch.tensor([encode_prompt(model.tokenizer, question, model.system)], device=model.device)
        output = model.network.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            min_new_tokens=tokens,
            max_new_tokens=tokens,
            pad_token_id=model.tokenizer.pad_token_id,
        )
        written.append(model.tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True))
    return written
