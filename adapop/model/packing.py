"""Packing: rows that begin alike share a line of a batch, which holds their beginning once.

A line is a tree: every token sees the tokens before it in its own row, at the positions they have
there. transformers' own mask functions do this if they are given positions in place of indices, so
no model needs code of its own. Rows cannot be packed where other layers than attention mix tokens
(state-space layers, convolutions) or where position ids are not read (ALiBi): `packs` excludes
these kinds, and tries all others.
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

LINE = 512  # approximate tokens of a line; attention costs the square of its length
SAVED = 1 / 3  # of the tokens must be saved, because a mask and longer lines cost something
_BATCH: ContextVar[AnswerTokens | None] = ContextVar("batch", default=None)


def packed_lines(rows: Sequence[Row]) -> list[list[int]]:
    """Indices of the rows on each line, in the order of their prompts; none if it saves little."""
    order = sorted(range(len(rows)), key=lambda place: rows[place].prompt)
    shared = [0, *(common(rows[one].prompt, rows[other].prompt) for one, other in pairwise(order))]
    own = [rows[place].length - alike for place, alike in zip(order, shared)]
    return lines_of(order, own, shared, max(row.length for row in rows))[0]


def lines_of(
    order: Sequence[int], own: Sequence[int], shared: Sequence[int], longest: int
) -> tuple[list[list[int]], int]:
    """(indices of the rows on each line, tokens read in all); no lines if packing would not pay.
    own, shared: for each row in order, the tokens that it adds to a line, and those that it has in
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
        read = {"input_ids": batch.ids, "position_ids": batch.tree.positions}
        # without a mask, transformers takes a step back in positions for the start of a new text
        yield read | {"attention_mask": torch.ones_like(batch.ids)}
    finally:
        _BATCH.reset(before)


# makes a mask of numbers; from a mask of booleans each layer would make its own
_ADDITIVE_MASK = ALL_MASK_ATTENTION_FUNCTIONS["eager"]


def _per_row_mask(make_mask: Callable) -> Callable:
    """The maker of masks, changed to also separate the rows of a packed batch."""

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

        return _ADDITIVE_MASK(mask_function=and_masks(in_its_row, sees), device=device, **given)

    return of_pack


for _name in ("sdpa", "eager"):
    ALL_MASK_ATTENTION_FUNCTIONS.register(_name, _per_row_mask(ALL_MASK_ATTENTION_FUNCTIONS[_name]))


def trial_rows(vocabulary: int) -> list[Row]:
    """Rows on which `packs` tries a model: of different lengths, the first without tokens of its
    own before the answer. Ids are drawn from the whole vocabulary; after such unusual text bf16
    errs by a fifth."""
    rng = random.Random(0)
    one, two, three = (tuple(rng.randrange(vocabulary) for _ in range(3)) for _ in range(3))
    longer = Row((*one, *three[:2]), two[:1], 1)
    return [Row(one, two[:2], 0), longer, Row((*one, *two), three[1:], 2)]


@torch.no_grad()
def packs(base: torch.nn.Module, logits: Callable[[AnswerTokens], Tensor]) -> bool:
    """Whether a base gives packed rows the same logits [N, V] as unpacked ones, up to rounding. In
    bf16, rounding hides the effect of a state or of ALiBi on few tokens, so such models are
    excluded first."""
    if not can_drop_rows(base) or getattr(base.config.get_text_config(), "alibi", False):
        return False
    rows = trial_rows(base.get_input_embeddings().weight.shape[0])
    alone, packed = logits(collate(rows, 0)), logits(collate(rows, 0, [[0, 2, 1]]))
    rounding = torch.finfo(base.get_output_embeddings().weight.dtype).eps ** 0.5
    alone, packed = alone.double(), packed.double()
    return bool((packed - alone).norm() <= rounding * (alone - alone.mean()).norm())
