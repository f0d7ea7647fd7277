"""Rows that begin alike, packed: a line of a batch holds each shared beginning once.

So a line is a tree: every token sees the tokens before it in its own row, at the positions they
have there. This is done through transformers' own mask functions, which models with sliding windows
call with positions as with indices; so no model needs code of its own. Where layers pass on more
than attention does (state-space layers, convolutions) or where positions come from elsewhere
(ALiBi), rows cannot be packed: `packs` knows the kinds, and tries the rest.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate, pairwise

import torch
from torch import Tensor
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, and_masks

from adapop.model.generation import can_drop_rows
from adapop.model.tokens import AnswerTokens, Row, collate, common

LINE = 512  # about so many tokens a line, because attention grows with its square
SAVED = 1 / 3  # of the tokens must be saved, because a mask and longer lines cost something
_BATCH: ContextVar[AnswerTokens | None] = ContextVar("batch", default=None)


def packed_lines(rows: Sequence[Row]) -> list[list[int]]:
    """The rows of each line by their places, in the order of their prompts, as `tokens.collate`
    takes them; none where packing would not pay."""
    order = sorted(range(len(rows)), key=lambda place: rows[place].prompt)
    shared = [0, *(common(rows[one].prompt, rows[other].prompt) for one, other in pairwise(order))]
    own = [rows[place].length - alike for place, alike in zip(order, shared)]
    return lines_of(order, own, shared, max(row.length for row in rows))[0]


def lines_of(
    order: Sequence[int], own: Sequence[int], shared: Sequence[int], longest: int
) -> tuple[list[list[int]], int]:
    """(the rows of each line, tokens that are read in all); no lines where packing would not pay.
    own, shared: of each row in order, the tokens that it adds to a line and those that it has in
    common with the row before it. longest: tokens of the longest row."""
    ends = list(accumulate(own))
    count = -(-ends[-1] // max(LINE, 2 * longest))
    lines: list[list[int]] = [[] for _ in range(count)]
    widths = [0] * count
    for place, end, adds, alike in zip(order, ends, own, shared):
        line = (end - 1) * count // ends[-1]
        widths[line] += adds if lines[line] else adds + alike
        lines[line].append(place)
    lines, padded = [line for line in lines if line], len(order) * longest
    packed = len(lines) * max(widths)
    pays = padded - packed >= SAVED * padded
    return (lines, packed) if pays else ([], padded)


@contextmanager
def read_as(batch: AnswerTokens) -> Iterator[dict[str, Tensor]]:
    """A context with the model's inputs for a batch; tokens attend to their own row alone."""
    if batch.tree is None:
        yield {"input_ids": batch.ids}
        return
    before = _BATCH.set(batch)
    try:
        # with a mask, transformers does not take each step back of positions for a new text
        every = torch.ones_like(batch.ids)
        read = {"input_ids": batch.ids, "position_ids": batch.tree.positions}
        yield read | {"attention_mask": every}
    finally:
        _BATCH.reset(before)


# makes a mask of numbers: of true and false each layer would make it
_ADDED = ALL_MASK_ATTENTION_FUNCTIONS["eager"]


def _aware(make_mask: Callable) -> Callable:
    """The maker of masks, which also separates the rows of a batch that is packed."""

    def of_pack(*, mask_function: Callable, device: torch.device, **given) -> Tensor | None:
        batch = _BATCH.get()
        if batch is None:
            return make_mask(mask_function=mask_function, device=device, **given)
        tree = batch.tree.to(device)
        positions, part, shared = tree.positions, tree.part, tree.shared

        def sees(line: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return positions[line, key] < shared[line, part[line, query], part[line, key]]

        def in_its_row(line: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return mask_function(line, head, positions[line, query], positions[line, key])

        return _ADDED(mask_function=and_masks(in_its_row, sees), device=device, **given)

    return of_pack


for _name in ("sdpa", "eager"):
    ALL_MASK_ATTENTION_FUNCTIONS.register(_name, _aware(ALL_MASK_ATTENTION_FUNCTIONS[_name]))


def tried(vocabulary: int) -> list[Row]:
    """Rows that `packs` reads, of lengths that differ, the first with nothing of its own before the
    answer. Of the whole vocabulary: where texts begin with odd marks, bf16 rounds by a fifth."""
    rng = random.Random(0)
    one, two, three = (tuple(rng.randrange(vocabulary) for _ in range(3)) for _ in range(3))
    longer = Row((*one, *three[:2]), two[:1], 1)
    return [Row(one, two[:2], 0), longer, Row((*one, *two), three[1:], 2)]


@torch.no_grad()
def packs(base: torch.nn.Module, logits: Callable[[AnswerTokens], Tensor]) -> bool:
    """Whether a base gives the same logits [N, V], but for rounding, for packed rows as for others.
    In bf16 rounding is as large as what a state or ALiBi makes of few tokens: their kind tells."""
    if not can_drop_rows(base) or getattr(base.config.get_text_config(), "alibi", False):
        return False
    rows = tried(base.get_input_embeddings().weight.shape[0])
    alone, packed = logits(collate(rows, 0)), logits(collate(rows, 0, [[0, 2, 1]]))
    rounding = torch.finfo(base.get_output_embeddings().weight.dtype).eps ** 0.5
    alone, packed = alone.double(), packed.double()
    return bool((packed - alone).norm() <= rounding * (alone - alone.mean()).norm())
