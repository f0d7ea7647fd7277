"""The rows of a Parquet file as lines of JSON, read in a separate process with limits on memory and time.

How much memory unpacking takes cannot be known beforehand: the sizes in the file may be wrong, and a damaged file can
crash the reader. In its own process a crash affects nothing else.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from adapop.errors import DataError
from adapop.paths import ROOT

MAGIC = b"PAR1"  # the first and last bytes of a file
READER_BYTES = 512 * 1024 * 1024  # of data; enforced on Linux only
READER_SECONDS = 4  # of processor time
BATCH = 256
TOO_MUCH = 3  # the exit status of a reader that ran out of memory


def lines_of(path: Path, most: int) -> Iterator[str]:
    """The lines: first the list of column names, then one object per row.

    A binary cell becomes an object; other values that JSON lacks become Python's text of them. most: the most bytes
    that are read.

    Raises:
        DataError: the file is not Parquet, has more than `most` bytes, or exceeds the reader's memory or time.
    """
    command = [sys.executable, "-m", "adapop.facts.parquet", str(path.resolve())]
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}  # other pools reserve more than they use
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
    """The error for a file that is not Parquet, or damaged."""
    return DataError(f"{path.name} is not a readable Parquet file.", "Export it again.")


def _too_large(path: Path) -> DataError:
    return DataError(f"{path.name} unpacks to more than is read.", "Delete columns that describe no fact, or split it.")


def main(path: Path) -> None:
    """The reader process: prints the lines. Any exception means that the file cannot be read."""
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
    except ImportError:  # not available on Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (READER_BYTES, READER_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (READER_SECONDS, READER_SECONDS + 1))


def _plain(cell: object) -> object:
    return {"bytes": len(cell)} if isinstance(cell, bytes) else str(cell)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
