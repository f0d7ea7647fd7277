"""Rows that begin alike, packed: a line of a batch holds their common beginning once and then what follows in each.

Every token sees the common beginning and its own row, at the positions it has in its row. This is said through
transformers' own mask functions, which models with sliding windows call with positions as with indices; so no model
needs code of its own. Where layers pass on more than attention does (state-space layers, convolutions) or where
positions come from elsewhere (ALiBi), rows cannot be packed: `packs` knows the kinds, and tries the rest.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate, takewhile

import torch
from torch import Tensor
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, and_masks

from adapop.model.generation import can_drop_rows
from adapop.model.tokens import AnswerTokens, Row, collate

LINE = 512  # about so many tokens a line, because attention grows with its square
ALIKE = 192  # the same where lines begin differently, and the longest decides how far all are padded
SAVED = 1 / 3  # of the tokens must be saved, because a mask and longer lines cost something
FEWEST = 256  # tokens must be saved: a pass that is so small takes little less time without them
_BATCH: ContextVar[AnswerTokens | None] = ContextVar("batch", default=None)


def dealt(rows: Sequence[Row], shared: int | None = None) -> tuple[int, list[Sequence[Row]]]:
    """(tokens of the common beginning, the rows of each line), as `tokens.collate` takes them; a row a line, from its
    beginning, where packing would not pay. shared: tokens to take for the common beginning; all of it by default."""
    shared = common(rows) if shared is None else shared
    ends = list(accumulate(row.length - shared for row in rows))
    count = -(-ends[-1] // max(LINE - shared, shared))
    lines = [[] for _ in range(count)]
    for row, end in zip(rows, ends):
        lines[(end - 1) * count // ends[-1]].append(row)
    lines = [line for line in lines if line]
    padded = len(rows) * max(row.length for row in rows)
    packed = len(lines) * max(shared + sum(row.length - shared for row in line) for line in lines)
    pays = padded - packed >= max(FEWEST, SAVED * padded)
    return (shared, lines) if pays else (0, [[row] for row in rows])


def alike(rows: Sequence[Row]) -> tuple[Sequence[int], list[Sequence[Row]]]:
    """(tokens of each line's common beginning, the rows of each line), as `tokens.collate` takes them: rows whose
    prompts have half or more of their beginning in common share a line. rows: sorted by their prompts."""
    limit = max(ALIKE, 2 * max(row.length for row in rows))
    shared, lines, tokens = [], [], 0  # tokens: of the last line's rows, were each written out
    for row in rows:
        common = _common(lines[-1][0].prompt, row.prompt) if lines else 0
        if 2 * common >= len(row.prompt) and tokens + row.length - len(lines[-1]) * common <= limit:
            lines[-1].append(row)
            shared[-1], tokens = common, tokens + row.length
        else:
            lines.append([row])
            shared.append(len(row.prompt))
            tokens = row.length
    widest = max(head + sum(row.length - head for row in line) for head, line in zip(shared, lines))
    padded = len(rows) * max(row.length for row in rows)
    return (shared, lines) if padded - len(lines) * widest >= SAVED * padded else ([], [[row] for row in rows])


def common(rows: Sequence[Row]) -> int:
    """How many tokens at their beginning the prompts of all rows share."""
    prompts = [row.prompt for row in rows]
    return _common(min(prompts), max(prompts))


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens at their beginning two prompts share."""
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(first, second)))


@contextmanager
def read_as(batch: AnswerTokens) -> Iterator[dict[str, Tensor]]:
    """What a model must be given to read a batch, in a context in which it sees of it what it may."""
    if batch.part is None:
        yield {"input_ids": batch.ids}
        return
    before = _BATCH.set(batch)
    try:
        # with a mask, transformers does not take each step back of the positions for the beginning of a new text
        every = torch.ones_like(batch.ids)
        yield {"input_ids": batch.ids, "position_ids": batch.positions, "attention_mask": every}
    finally:
        _BATCH.reset(before)


def _aware(make_mask: Callable) -> Callable:
    """The maker of masks, which heeds the batch that is being read if it is packed."""

    def of_pack(*, mask_function: Callable, device: torch.device, **given) -> Tensor | None:
        batch = _BATCH.get()
        if batch is None:
            return make_mask(mask_function=mask_function, device=device, **given)
        positions, part = batch.positions.to(device), batch.part.to(device)

        def sees(line: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            of_key = part[line, key]
            return (of_key == 0) | (of_key == part[line, query])

        def in_its_row(line: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            return mask_function(line, head, positions[line, query], positions[line, key])

        given |= {"allow_is_causal_skip": False}
        return make_mask(mask_function=and_masks(in_its_row, sees), device=device, **given)

    return of_pack


for _name in ("sdpa", "eager"):
    ALL_MASK_ATTENTION_FUNCTIONS.register(_name, _aware(ALL_MASK_ATTENTION_FUNCTIONS[_name]))

# of lengths that differ, the first with nothing of its own before the answer
TRIED = [Row((3, 4, 5), (6, 7), 0), Row((3, 4, 5, 8, 9), (6,), 1), Row((3, 4, 5, 7, 6, 8), (9, 4), 2)]


@torch.no_grad()
def packs(base: torch.nn.Module, logits: Callable[[AnswerTokens], Tensor]) -> bool:
    """Whether a base gives the same logits [N, V], but for rounding, for packed rows as for others.

    In bf16 rounding is as large as what a state or ALiBi makes of a few tokens: such models are told by their kind.
    """
    if not can_drop_rows(base) or getattr(base.config.get_text_config(), "alibi", False):
        return False
    alone, packed = logits(collate(TRIED, 0)), logits(collate(TRIED, 0, 3, [TRIED]))
    rounding = torch.finfo(base.get_output_embeddings().weight.dtype).eps ** 0.5
    alone, packed = alone.double(), packed.double()
    return bool((packed - alone).norm() <= rounding * (alone - alone.mean()).norm())
