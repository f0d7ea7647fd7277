"""A Parquet file as lines of JSON, read in a process of its own.

What a file takes to unpack cannot be known before: its sizes may lie, and a damaged one can bring the reader down. So
the reader has its own memory and processor time, and only the file is lost with it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from adapop.errors import DataError
from adapop.paths import ROOT

MAGIC = b"PAR1"  # how a file begins and ends
READER_BYTES = 512 * 1024 * 1024  # of data beyond the program; Linux alone holds a process to it
READER_SECONDS = 4  # of processor time
BATCH = 256
TOO_MUCH = 3  # the exit status of a reader that ran out of memory


def lines_of(path: Path, most: int) -> Iterator[str]:
    """First the names of the columns as a list, then each row as an object. Binary cells are objects, as others that
    JSON lacks are the text that Python makes of them.

    most: how many bytes of lines are read.

    Raises:
        DataError: no Parquet, more than `most`, or more than the reader's memory or time.
    """
    command = [sys.executable, "-m", "adapop.facts.parquet", str(path.resolve())]
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}  # the others reserve more than they use
    quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, **quiet) as reader:
        try:
            while line := reader.stdout.readline(most + 1):
                most -= len(line)
                if most < 0:
                    raise _too_large(path)
                yield line.decode()
            status = reader.wait()
        finally:
            reader.kill()
    if status in (TOO_MUCH, -signal.SIGXCPU):
        raise _too_large(path)
    if status:
        raise unreadable(path)


def unreadable(path: Path) -> DataError:
    """What is said of a file that is no Parquet, or a damaged one."""
    return DataError(f"{path.name} is not a readable Parquet file.", "Export it again.")


def _too_large(path: Path) -> DataError:
    return DataError(f"{path.name} unpacks to more than is read.", "Delete columns that describe no fact, or split it.")


def main(path: Path) -> None:
    """The reader: prints the lines. Whatever else it raises means that the file cannot be read."""
    _limit()
    try:
        for line in unpacked(path):
            print(line)
    except MemoryError:
        sys.exit(TOO_MUCH)


def unpacked(path: Path) -> Iterator[str]:
    """The lines, read in this process and without a limit."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        yield json.dumps(file.schema_arrow.names)
        for batch in file.iter_batches(BATCH, use_threads=False):
            for row in batch.to_pylist():
                yield json.dumps(row, default=_plain)


def _limit() -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    resource.setrlimit(resource.RLIMIT_DATA, (READER_BYTES, READER_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (READER_SECONDS, READER_SECONDS + 1))


def _plain(cell: object) -> object:
    return {"bytes": len(cell)} if isinstance(cell, bytes) else str(cell)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
