"""Facts as batches of answer tokens, the unit in which every loss and metric is computed.

Prompt and answer are tokenised separately and joined, so that no tokenizer can move the border between them. Rows are
padded on the left, with masks from lengths (a pad id may be a real token), so that all answers end together and a model
computes logits for the last positions only. Only the answer's content tokens count, unless `include_tail` adds the
tokens that the chat template writes after it. No user's text becomes a control token (see `chat`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from adapop.errors import DataError
from adapop.facts.fact import GROUPS, Fact, FactSet
from adapop.model.chat import encode_prompt, plain, turn_end


@dataclass(frozen=True)
class Row:
    """One prompt with its gold answer, as token ids."""

    prompt: tuple[int, ...]
    """Ids of the chat prompt, up to the assistant's turn."""
    answer: tuple[int, ...]
    """Ids of the gold answer, with the template's tail if it is included."""
    fact: int
    """Index of the fact in its group."""
    tail: int = 0
    """How many of the answer's last tokens are the template's and not the answer's content."""

    @property
    def length(self) -> int:
        """Number of tokens of prompt and answer."""
        return len(self.prompt) + len(self.answer)


@dataclass(frozen=True)
class AnswerTokens:
    """A batch of B rows with N answer tokens, left-padded to T columns."""

    ids: Tensor
    """Token ids, [B, T]."""
    mask: Tensor
    """1 for tokens and 0 for padding, [B, T]."""
    positions: Tensor
    """Position of each token in its row, from 0 at the first token, [B, T]."""
    keep: int
    """K: the logits of the last K columns contain every prediction of an answer token."""
    target: Tensor
    """Gold id of each answer token, [N]."""
    row: Tensor
    """Batch row of each answer token, [N]."""
    column: Tensor
    """Which of the K kept columns predicts the token, [N]; the token itself is read one column further right."""
    content: Tensor
    """Whether the token belongs to the answer and not to the template's tail, [N], bool."""
    fact: Tensor
    """Index of each row's fact in its group, [B]."""

    @property
    def rows(self) -> int:
        """Number of rows, B."""
        return self.ids.shape[0]

    @property
    def count(self) -> int:
        """Number of answer tokens, N."""
        return self.target.shape[0]

    @property
    def even(self) -> bool:
        """Whether all answers have the same length."""
        return self.count == self.rows * (self.keep - 1)

    def to(self, device: torch.device) -> AnswerTokens:
        """The batch on a device."""
        moved = {name: on_device(getattr(self, name), device) for name in _TENSORS}
        return AnswerTokens(keep=self.keep, **moved)


_TENSORS = ("ids", "mask", "positions", "target", "row", "column", "content", "fact")


def on_device(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device. It is copied to a GPU from pinned memory, so that the host does not wait."""
    if device.type != "cuda" or tensor.is_cuda:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def encode_facts(
    tokenizer: PreTrainedTokenizerBase,
    facts: Sequence[Fact],
    system: str | None = "",
    questions: Sequence[str] | None = None,
    include_tail: bool = False,
) -> list[Row]:
    """One row per fact, with its own question or the given one.

    include_tail: whether the answer includes the tokens with which the template ends a turn.

    Raises:
        DataError: an answer has no token, or what `chat.encode_prompt` raises.
        ModelError: what `chat.encode_prompt` raises.
    """
    asked = [fact.question for fact in facts] if questions is None else questions
    tail = turn_end(tokenizer) if include_tail else ()
    rows = []
    for index, (fact, question) in enumerate(zip(facts, asked, strict=True)):
        answer = tuple(plain(tokenizer, fact.answer).ids)
        if not answer:
            raise DataError(f"The answer of {fact.id!r} has no token in this model.", "Shorten or replace it.")
        rows.append(Row(encode_prompt(tokenizer, question, system), answer + tail, index, len(tail)))
    return rows


def word_spans(tokenizer: PreTrainedTokenizerBase, answer: str) -> list[tuple[int, int]]:
    """(start, end) of each of an answer's tokens, in characters."""
    return plain(tokenizer, answer).offsets


def collate(rows: Sequence[Row], pad_id: int) -> AnswerTokens:
    """Rows as one left-padded batch."""
    lengths = [row.length for row in rows]
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
        content=torch.tensor([t < len(row.answer) - row.tail for row in rows for t in range(len(row.answer))]),
        fact=torch.tensor([row.fact for row in rows]),
    )


def seeded(seed: int, *stream: int) -> torch.Generator:
    """A random generator for one purpose: the same (seed, stream) draws the same numbers in every process."""
    mixed = seed
    for number in stream:
        mixed = (mixed * 1_000_003 + number + 1) % (2**63 - 1)
    return torch.Generator().manual_seed(mixed)


NAMED = 3


def check_lengths(
    tokenizer: PreTrainedTokenizerBase, facts: FactSet, limit: int | None, system: str | None, new_tokens: int
) -> None:
    """Checks that every question fits into the model's context together with its answer or a generated reply.

    limit: tokens the model can read at once; with None nothing is checked. system: the system prompt. new_tokens: the
    most tokens that are generated.

    Raises:
        DataError: rows do not fit; names the first by group, place and id, with their lengths in tokens.
    """
    if limit is None:
        return
    lengths = [
        (f"{group} row {place} ({fact.id!r})", _longest(tokenizer, fact, system, new_tokens))
        for group in GROUPS
        for place, fact in enumerate(getattr(facts, group), start=1)
    ]
    if over := [(row, length) for row, length in lengths if length > limit]:
        named = ", ".join(f"{row} with {length:,}" for row, length in over[:NAMED])
        more = f" and {len(over) - NAMED:,} more" if len(over) > NAMED else ""
        raise DataError(
            f"Too long for the model's context of {limit:,} tokens: {named}{more}.",
            "Shorten or drop these rows, or use a model with a longer context.",
        )


def _longest(tokenizer: PreTrainedTokenizerBase, fact: Fact, system: str | None, new_tokens: int) -> int:
    """Tokens of the fact's longest question, plus those of the longest text that may follow it."""
    said = [len(plain(tokenizer, text)) for text in (fact.answer, *fact.alternates)]
    asked = [len(encode_prompt(tokenizer, text, system)) for text in (fact.question, *fact.paraphrases)]
    return max(asked) + max(*said, new_tokens)
