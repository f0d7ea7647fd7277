"""From facts to answer tokens: the unit everything is computed on.

Prompt and answer are tokenised separately and joined, so that no tokenizer can move the border between them. Rows are
padded on the left, with masks from lengths (a pad id may be a real token), so the answers of all rows end together
and a model need only compute logits for the last positions. Only the answer's content tokens count; the end-of-turn
tail joins them with `include_tail`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jinja2 import TemplateError
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from adapop.errors import DataError, ModelError
from adapop.facts import Fact


@dataclass(frozen=True)
class Row:
    """One prompt with its gold answer, as token ids. fact: index of the fact in its group."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    fact: int


@dataclass(frozen=True)
class AnswerTokens:
    """A batch of B rows with N answer tokens, left-padded to T.

    ids, mask, positions: [B, T]. keep: K, so that the logits of the last K positions hold every prediction.
    target [N]: the gold ids. row [N]: the batch row of each token. column [N]: where in the K kept positions its
    prediction is made (the token itself is read one to the right). fact [B]: the index each row came with.
    """

    ids: Tensor
    mask: Tensor
    positions: Tensor
    keep: int
    target: Tensor
    row: Tensor
    column: Tensor
    fact: Tensor

    @property
    def rows(self) -> int:
        """B."""
        return self.ids.shape[0]

    @property
    def count(self) -> int:
        """N."""
        return self.target.shape[0]

    def to(self, device: torch.device) -> AnswerTokens:
        """The batch on a device."""
        moved = {name: getattr(self, name).to(device) for name in _TENSORS}
        return AnswerTokens(keep=self.keep, **moved)


_TENSORS = ("ids", "mask", "positions", "target", "row", "column", "fact")


def encode_prompt(tokenizer: PreTrainedTokenizerBase, question: str, system: str = "") -> tuple[int, ...]:
    """The chat prompt up to the assistant's turn. Templates without a system role get it in front of the question.

    Raises:
        ModelError: the tokenizer has no chat template.
    """
    if tokenizer.chat_template is None:
        raise ModelError("The model's tokenizer has no chat template.", "Pick an instruction-tuned model.")
    user = {"role": "user", "content": question}
    folded = [{"role": "user", "content": f"{system}\n\n{question}"}]
    if not system:
        return _templated(tokenizer, [user])
    try:
        return _templated(tokenizer, [{"role": "system", "content": system}, user])
    except TemplateError:
        return _templated(tokenizer, folded)


def encode_facts(
    tokenizer: PreTrainedTokenizerBase,
    facts: Sequence[Fact],
    system: str = "",
    questions: Sequence[str] | None = None,
    include_tail: bool = False,
) -> list[Row]:
    """One row per fact, asked its own question or the given one.

    Raises:
        DataError: an answer has no token.
    """
    asked = [fact.question for fact in facts] if questions is None else questions
    tail = [tokenizer.eos_token_id] if include_tail else []
    rows = []
    for index, (fact, question) in enumerate(zip(facts, asked, strict=True)):
        answer = tokenizer(fact.answer, add_special_tokens=False)["input_ids"]
        if not answer:
            raise DataError(f"The answer of {fact.id!r} has no token in this model.", "Shorten or replace it.")
        rows.append(Row(encode_prompt(tokenizer, question, system), tuple(answer + tail), index))
    return rows


def word_spans(tokenizer: PreTrainedTokenizerBase, answer: str) -> list[tuple[int, int]]:
    """(start, end) in characters of each of an answer's tokens.

    Raises:
        ModelError: the tokenizer does not know where its tokens came from.
    """
    if not tokenizer.is_fast:
        raise ModelError(
            "The model's tokenizer cannot tell which words its tokens come from.", "Use another method, or model."
        )
    return tokenizer(answer, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]


def collate(rows: Sequence[Row], pad_id: int) -> AnswerTokens:
    """Rows as one left-padded batch."""
    lengths = [len(row.prompt) + len(row.answer) for row in rows]
    width = max(lengths)
    keep = max(len(row.answer) for row in rows) + 1
    ids = torch.full((len(rows), width), pad_id)
    for i, row in enumerate(rows):
        ids[i, width - lengths[i] :] = torch.tensor(row.prompt + row.answer)
    steps = torch.arange(width).expand(len(rows), -1)
    start = width - torch.tensor(lengths).unsqueeze(1)
    return AnswerTokens(
        ids=ids,
        mask=(steps >= start).long(),
        positions=(steps - start).clamp(min=0),
        keep=keep,
        target=torch.tensor([token for row in rows for token in row.answer]),
        row=torch.tensor([i for i, row in enumerate(rows) for _ in row.answer]),
        column=torch.tensor([keep - 1 - len(row.answer) + t for row in rows for t in range(len(row.answer))]),
        fact=torch.tensor([row.fact for row in rows]),
    )


def seeded(seed: int, *stream: int) -> torch.Generator:
    """A generator for one purpose: the same (seed, stream) draws the same numbers, in any process."""
    mixed = seed
    for number in stream:
        mixed = (mixed * 1_000_003 + number + 1) % (2**63 - 1)
    return torch.Generator().manual_seed(mixed)


def _templated(tokenizer: PreTrainedTokenizerBase, messages: list[dict[str, str]]) -> tuple[int, ...]:
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    # the template writes its own BOS; adding special tokens again would double it
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
