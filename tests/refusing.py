"""The kernel's refusals, for tests: another user's rights."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# linux/capability.h
VERSION = 0x20080522
OVERRIDES_PERMISSIONS = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


@contextmanager
def permissions_obeyed() -> Iterator[None]:
    """Inside, this thread may write only where the permission bits let it, for the user of tests may be root. It may
    still read its own packages, as another user could not."""
    if os.geteuid() or not sys.platform.startswith("linux"):
        yield
        return
    libc, header = ctypes.CDLL(None, use_errno=True), (ctypes.c_uint32 * 2)(VERSION, 0)
    held = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice 32 bits
    fewer = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, held) == 0
    fewer[:] = held[:]
    fewer[0] &= ~OVERRIDES_PERMISSIONS
    assert libc.capset(header, fewer) == 0
    try:
        yield
    finally:
        assert libc.capset(header, held) == 0


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
