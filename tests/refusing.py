"""The kernel's refusals, for tests: another user's rights."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_nobody() -> Iterator[None]:
    """Inside, this process has the rights of nobody in particular, for the user of tests may be root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """As on a full disk: what grows above so many bytes is refused in the middle."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
