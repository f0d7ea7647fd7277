"""Malformed and hostile uploads, made from a seed: what each says, where that is known, and which must be refused."""

from random import Random

from hostile import large, parquet, text
from hostile.file import Case

LARGE_EVERY = 20


def case(number: int) -> Case:
    """The file of that number, 0 or more: always the same. One in `LARGE_EVERY` is of megabytes."""
    random = Random(f"hostile {number}")
    is_large = number % LARGE_EVERY == LARGE_EVERY - 1
    kinds = (*large.LARGE, *parquet.LARGE) if is_large else (*text.OFTEN, *parquet.OFTEN)
    return random.choice(kinds)(random)
