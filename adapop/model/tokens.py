"""Facts as batches of answer tokens, on which every loss and metric is computed; and the results of
a forward pass at these tokens, which several batches may share.

Question and answer are tokenised in one piece, as the chat template writes them (see `chat`). The
answer's tokens stand where the model would write it: right after the prompt, or after the lead of
its own reply. Rows to be scored are padded on the right: a causal model never sees what follows, so
it needs no mask. Rows to be continued are padded on the left. Only the answer's content tokens
count, unless `include_tail` adds the tokens that the chat template writes after it. No user's text
becomes a control token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import takewhile
from typing import TypeVar

import torch
from torch import Tensor
from transformers import LogitsProcessor, PreTrainedTokenizerBase

from adapop.errors import DataError
from adapop.facts.fact import GROUPS, Fact, FactSet, OwnAnswer
from adapop.model.chat import encode_answer, encode_prompt, plain, turn_end

Lines = Sequence[Sequence[int]]
NAMED = 3  # rows in a message about rows that are too long


@dataclass(frozen=True)
class Row:
    """One prompt with its gold answer, as token ids."""

    prompt: tuple[int, ...]
    """Ids of all tokens before the answer: the chat prompt, and the lead if there is one."""
    answer: tuple[int, ...]
    """Ids of the gold answer, with the template's tail if it is included."""
    fact: int
    """Index of the fact in its group."""
    tail: int = 0
    """How many of the answer's last tokens are the template's, not content."""
    text: str = field(default="", compare=False)
    """The answer's text, as it is scored."""
    spans: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    """(start, end) of each content token in the text, in characters."""

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.answer)


@dataclass(frozen=True)
class Tree:
    """Attention among tokens on L lines of T columns; up to R rows on a line share beginnings."""

    positions: Tensor
    """Position of each token in its row, [L, T]; 0 in padding."""
    part: Tensor
    """The row on its line that each token belongs to, [L, T], from 0; R in padding."""
    shared: Tensor
    """Number of first tokens two rows of a line share, [L, R + 1, R + 1]; T on the diagonal."""

    def to(self, device: torch.device) -> Tree:
        positions, part, shared = (
            on_device(value, device) for value in (self.positions, self.part, self.shared)
        )
        return Tree(positions, part, shared)


Moved = TypeVar("Moved", Tensor, Tree)


@dataclass(frozen=True)
class AnswerTokens:
    """B rows with N answer tokens, on L lines (B unless packed) padded to T columns."""

    ids: Tensor
    """Token ids, [L, T]."""
    tree: Tree | None
    """Attention among tokens, if rows are packed; None if each row has a line of its own."""
    lengths: Tensor
    """Tokens of each row, [B]."""
    target: Tensor
    """Gold id of each answer token, [N]."""
    row: Tensor
    """Batch row of each answer token, [N]."""
    predicts: Tensor
    """Flat index, line * T + column, of the token that predicts each answer token, [N]."""
    reads: Tensor
    """Flat index, line * T + column, of each answer token itself, [N]."""
    place: Tensor
    """Index of each answer token in its answer, from 0, [N]."""
    content: Tensor
    """Whether the token belongs to the answer and not to the template's tail, [N], bool."""
    fact: Tensor
    """Index of each row's fact in its group, [B]."""

    @property
    def rows(self) -> int:
        """Number of rows, B."""
        return self.fact.shape[0]

    @property
    def count(self) -> int:
        """Number of answer tokens, N."""
        return self.target.shape[0]

    def at(self, values: Tensor, positions: Tensor) -> Tensor:
        """The values, [L, T, ...] for all columns, at `predicts` or `reads`: [N, ...]. The result
        is on the device of `values`: a model spread over GPUs has several."""
        return values.flatten(0, 1)[positions.to(values.device)]

    def to(self, device: torch.device) -> AnswerTokens:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        there = {name: value for name, value in values.items() if value is not None}
        return replace(self, **{name: on_device(value, device) for name, value in there.items()})


def on_device(tensor: Moved, device: torch.device) -> Moved:
    """The tensor on a device; to a GPU from pinned memory, so that the host does not wait."""
    if isinstance(tensor, Tree):
        return tensor.to(device)
    if device.type != "cuda" or tensor.is_cuda:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def encode_facts(
    tokenizer: PreTrainedTokenizerBase,
    facts: Sequence[Fact],
    system: str | None = "",
    questions: Sequence[str] | None = None,
    include_tail: bool = False,
    spoken: Mapping[str, OwnAnswer] | None = None,
) -> list[Row]:
    """One row per fact, with its own question or the given one.

    include_tail: whether the answer includes the tokens with which the template ends a turn.
    spoken: fact id -> the model's own answer and its lead; unused if the gold answer has changed.
    Raises DataError: an answer has no token. DataError, ModelError: as `encode_prompt`."""
    texts = [fact.question for fact in facts] if questions is None else questions
    tail = turn_end(tokenizer) if include_tail else ()
    rows = []
    for index, (fact, question) in enumerate(zip(facts, texts, strict=True)):
        own = (spoken or {}).get(fact.id)
        text = own.answer if own and own.gold == fact.answer else fact.answer
        encoded = encode_answer(tokenizer, question, text, system, own.lead if own else "")
        if not encoded.answer:
            message = f"The answer of {fact.id!r} has no token in this model."
            raise DataError(message, "Replace it.")
        answer = encoded.answer + tail
        rows.append(Row(encoded.prompt, answer, index, len(tail), text, encoded.spans))
    return rows


def common(first: Sequence[int], second: Sequence[int]) -> int:
    """Number of tokens that two prompts share at their beginning."""
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(first, second)))


def collate(rows: Sequence[Row], pad_id: int, lines: Lines = ()) -> AnswerTokens:
    """Rows as one batch, each on a line of its own or several on a line (see `packing`). lines:
    indices of the rows on each line, in the order of their prompts."""
    texts: list[list[int]] = []
    parts: list[list[int]] = []
    positions: list[list[int]] = []
    alike: list[list[int]] = []
    # for each row: its line, and the columns of its tokens
    begins: list[tuple[int, list[int]]] = [(0, [])] * len(rows)
    for number, line in enumerate(lines or [[place] for place in range(len(rows))]):
        text: list[int] = []
        part: list[int] = []
        position: list[int] = []
        columns: list[int] = []
        shares: list[int] = []
        for turn, place in enumerate(line):
            tokens, before = rows[place].prompt + rows[place].answer, columns
            shared = common(rows[line[turn - 1]].prompt, rows[place].prompt) if turn else 0
            columns = [*before[:shared], *range(len(text), len(text) + len(tokens) - shared)]
            begins[place] = number, columns
            text += tokens[shared:]
            part += [turn] * (len(tokens) - shared)
            position += range(shared, len(tokens))
            shares.append(shared)
        texts.append(text)
        parts.append(part)
        positions.append(position)
        alike.append(shares)
    width = max(map(len, texts))
    reads, predicts = [], []
    for row, (begins_on, columns) in zip(rows, begins, strict=True):
        at = [begins_on * width + column for column in columns[len(row.prompt) - 1 :]]
        reads += at[1:]
        predicts += at[:-1]
    scored = [(i, row, place) for i, row in enumerate(rows) for place in range(len(row.answer))]
    return AnswerTokens(
        ids=_filled(texts, width, pad_id),
        tree=_tree(parts, positions, alike, width) if lines else None,
        lengths=torch.tensor([row.length for row in rows]),
        target=torch.tensor([row.answer[place] for _, row, place in scored]),
        row=torch.tensor([i for i, _, _ in scored]),
        predicts=torch.tensor(predicts),
        reads=torch.tensor(reads),
        place=torch.tensor([place for _, _, place in scored]),
        content=torch.tensor([place < len(row.answer) - row.tail for _, row, place in scored]),
        fact=torch.tensor([row.fact for row in rows]),
    )


def _tree(parts: Lines, positions: Lines, alike: Lines, width: int) -> Tree:
    """The tree of a batch. alike: tokens that each row of a line shares with the row before it.
    Rows are in order, so two rows share the least number that the neighbours between them share."""
    most = max(map(len, alike))
    shared = torch.zeros(len(alike), most + 1, most + 1, dtype=torch.long)
    for of_line, shares in zip(shared, alike):
        for row, count in enumerate(shares[1:], start=1):
            of_line[row, :row] = of_line[row - 1, :row].clamp(max=count)
            of_line[row, row - 1] = count
    shared += shared.mT.clone()
    shared.diagonal(dim1=1, dim2=2).fill_(width)
    return Tree(_filled(positions, width, 0), _filled(parts, width, most), shared)


def _filled(lines: Lines, width: int, value: int) -> Tensor:
    return torch.tensor([[*line, *[value] * (width - len(line))] for line in lines])


def to_continue(prompts: Lines, pad_id: int, device: torch.device) -> dict[str, Tensor]:
    """The input of transformers' `generate`: the prompts padded on the left, [B, T], and a mask
    that is 0 at padding. The mask is made from lengths, because a pad id may be a real token."""
    width = max(map(len, prompts))
    pads = [width - len(prompt) for prompt in prompts]
    ids = torch.tensor([[pad_id] * pad + list(prompt) for pad, prompt in zip(pads, prompts)])
    mask = torch.tensor([[0] * pad + [1] * (width - pad) for pad in pads])
    return {"input_ids": ids.to(device), "attention_mask": mask.to(device)}


def check_lengths(
    tokenizer: PreTrainedTokenizerBase,
    facts: FactSet,
    limit: int | None,
    system: str | None,
    new_tokens: int,
) -> None:
    """Checks that every question fits into the model's context with its answer or a reply.

    limit: tokens that the model can read at once; with None nothing is checked. system: the system
    prompt. new_tokens: the most tokens that are generated. Raises DataError: rows do not fit; names
    the first by group, place and id, with their tokens."""
    if limit is None:
        return
    lengths = []
    for group in GROUPS:
        for place, fact in enumerate(getattr(facts, group), start=1):
            longest = _longest(tokenizer, fact, system, new_tokens)
            lengths.append((f"{group} row {place} ({fact.id!r})", longest))
    if over := [(row, length) for row, length in lengths if length > limit]:
        named = ", ".join(f"{row} with {length:,}" for row, length in over[:NAMED])
        more = f" and {len(over) - NAMED:,} more" if len(over) > NAMED else ""
        message = f"Too long for the model's context of {limit:,} tokens: {named}{more}."
        fix = "Shorten or drop these rows, or use a model with a longer context."
        raise DataError(message, fix)


def _longest(
    tokenizer: PreTrainedTokenizerBase, fact: Fact, system: str | None, new_tokens: int
) -> int:
    """Tokens of the fact's longest question, plus those of the longest text that may follow it."""
    answers = [len(plain(tokenizer, text)) for text in (fact.answer, *fact.alternates)]
    texts = (fact.question, *fact.paraphrases)
    longest = max(len(encode_prompt(tokenizer, text, system)) for text in texts)
    tail = len(turn_end(tokenizer)) if tokenizer.chat_template else 1
    return longest + max(*answers, new_tokens) + tail


@dataclass(frozen=True)
class Scored:
    """Results of a forward pass at its N answer tokens; float32, or float64 if the model is."""

    nll: Tensor
    """-log p of each gold token, [N], nats."""
    row: Tensor
    """The batch row of each token, [N]."""
    rows: int
    """Number of batch rows, B."""
    logits: Tensor | None = None
    """Logits that predict each token, [N, V]; like the next two fields, None unless asked for."""
    hidden: Tensor | None = None
    """Mean of the hidden states over the answer's positions and the last four layers, [B, D]."""
    states: Tensor | None = None
    """One block's output where each token is predicted and where it is read, [2, N, D]."""
    gold: Tensor | None = None
    """Raw logit of each gold token, [N]."""

    def per_row(self, values: Tensor) -> Tensor:
        """Sum of a per-token tensor over each row: [N] -> [B]."""
        return values.new_zeros(self.rows).index_add(0, self.row, values)

    def row_mean(self, values: Tensor, counted: Tensor | None = None) -> Tensor:
        """Mean of a per-token tensor over each row's tokens: [N] -> [B]. counted: [N], bool; the
        mean is over these tokens only, 0 for a row without one."""
        weight = torch.ones_like(values) if counted is None else counted.to(values.dtype)
        return self.per_row(values * weight) / self.per_row(weight).clamp(min=1)

    def confidence(self, batch: AnswerTokens) -> list[tuple[float, int]]:
        """(p, rank) for each row. p: probability of its answer, [0, 1], the geometric mean over
        content tokens. rank: of the answer's first token in the vocabulary, 1 is the most likely.
        Needs logits."""
        p = (-self.row_mean(self.nll, batch.content)).exp()
        first = batch.place == 0
        rank = 1 + (self.logits[first] > self.gold[first].unsqueeze(1)).sum(1)
        return list(zip(p.tolist(), rank.tolist()))

    def part(self, batch: AnswerTokens, token: int, row: int) -> Scored:
        """The results for `batch` alone, whose tokens and rows begin at these indices."""
        tokens, rows = slice(token, token + batch.count), slice(row, row + batch.rows)
        logits = None if self.logits is None else self.logits[tokens]
        hidden = None if self.hidden is None else self.hidden[rows]
        states = None if self.states is None else self.states[:, tokens]
        nll, gold = self.nll[tokens], self.gold[tokens]
        return Scored(nll, batch.row, batch.rows, logits, hidden, states, gold)


class FirstToken(LogitsProcessor):
    """How likely each reply of a batch was to begin with a given token; changes nothing."""

    def __init__(self, tokens: Sequence[int]) -> None:
        """tokens: id of a token for each reply."""
        self._tokens = tokens
        self.confidences: tuple[list[float], list[int]] = ([], [])
        """(probabilities, ranks) of the tokens, 1 is the most likely; a value for each reply."""

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """The scores unchanged. They are logits in float32, [B, V]."""
        if not self.confidences[0]:
            gold = scores.gather(1, torch.tensor(self._tokens, device=scores.device).unsqueeze(1))
            p = (gold - scores.logsumexp(1, keepdim=True)).exp()
            self.confidences = p.squeeze(1).tolist(), (1 + (scores > gold).sum(1)).tolist()
        return scores


class JointPass:
    """One forward pass over several batches, run when the first of them is scored."""

    def __init__(self, whole: AnswerTokens, parts: Sequence[AnswerTokens]) -> None:
        self.whole, self.parts = whole, parts
        self._result: tuple[tuple, Scored] | None = None

    def share(
        self, batch: AnswerTokens, settings: tuple, score: Callable[[AnswerTokens], Scored]
    ) -> Scored | None:
        """The results for one part; None if the batch is not in the pass, or a requested result is
        not. settings: (block, hidden, logits), as in `AdaptedModel.score`."""
        token = row = 0
        for part in self.parts:
            if part is batch:
                break
            token, row = token + part.count, row + part.rows
        else:
            return None
        if self._result is None:
            self._result = settings, score(self.whole)
        settings_used, scored = self._result
        fits = settings_used[:2] == settings[:2] and settings_used[2] >= settings[2]
        return scored.part(batch, token, row) if fits else None


def pooled(layers: tuple[Tensor, ...], batch: AnswerTokens) -> Tensor:
    """Mean over layers and over each row's answer positions, [B, D]."""
    tokens = torch.stack([batch.at(layer, batch.reads).float() for layer in layers]).mean(0)
    total = tokens.new_zeros(batch.rows, tokens.shape[1]).index_add(0, batch.row, tokens)
    return total / torch.bincount(batch.row, minlength=batch.rows).unsqueeze(1)
