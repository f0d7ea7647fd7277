"""Reading a user's file in a process of its own, with limits on memory and processor time.

What a file needs cannot be known beforehand: the sizes it states may be wrong. A damaged file can
crash its reader, and a long parse in a thread would hold up all other threads."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from adapop.errors import DataError
from adapop.paths import ROOT

TOO_MUCH = 3  # the exit status of a reader that ran out of memory
# `seconds`: processor time of the readers that this thread has waited for
_readers = threading.local()


def seconds_worked() -> float:
    """Seconds of processor time that this thread and the readers that it started have taken."""
    return time.thread_time() + getattr(_readers, "seconds", 0.0)


def lines_of(
    module: str, path: Path, options: Sequence[str], most: int, unreadable: DataError
) -> Iterator[str]:
    """The lines that a module prints when it is run on a file. most: the most bytes that are read.
    unreadable: the error to raise if the module fails. Raises DataError: the module fails, prints
    more than `most` bytes, or exceeds its limit of memory or time."""
    command = [sys.executable, "-m", module, str(path.resolve()), *options]
    # Arrow's other memory pools reserve more than they use
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "PYTHONUTF8": "1"}
    pipes = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) as reader:
        whole = False
        try:
            while line := reader.stdout.readline(most + 1):
                most -= len(line)
                if most < 0:
                    raise _too_large(path)
                yield line.decode()
            whole = True
        finally:
            status = _wait_for(reader, whole)
    if status in (TOO_MUCH, -signal.SIGXCPU, -signal.SIGKILL, -signal.SIGABRT):
        raise _too_large(path)
    if status:
        raise unreadable


def limit(megabytes: int, seconds: int) -> None:
    """Limits this process, except on Windows. megabytes: of data, only on Linux. seconds: of
    processor time."""
    try:
        import resource
    except ImportError:  # not available on Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (megabytes * 2**20, megabytes * 2**20))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def _too_large(path: Path) -> DataError:
    message = f"{path.name} unpacks to more than is read, or takes too long to read."
    return DataError(message, "Delete columns that describe no fact, or split it.")


def _wait_for(reader: subprocess.Popen, whole: bool) -> int:
    """Waits until a reader has ended and returns its exit status. Unless `whole`, kills it
    first."""
    if not hasattr(os, "wait4"):  # on Windows
        return reader.wait() if whole else reader.kill()
    if not whole:
        # `Popen.kill` would reap a reader that has ended, and its time would not be counted
        os.kill(reader.pid, signal.SIGKILL)
    _, status, usage = os.wait4(reader.pid, 0)
    reader.returncode = os.waitstatus_to_exitcode(status)
    _readers.seconds = getattr(_readers, "seconds", 0.0) + usage.ru_utime + usage.ru_stime
    return reader.returncode
