"""The rows of a Parquet file as lines of JSON, read in a `limited_process`."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from adapop.errors import DataError
from adapop.facts import limited_process

MAGIC = b"PAR1"  # the first and last bytes of a file
READER_MEGABYTES = 512
READER_SECONDS = 4
BATCH = 256


def lines_of(path: Path, most: int) -> Iterator[str]:
    """The lines: first the list of column names, then one object per row. A binary cell becomes an
    object; other values that JSON lacks become their Python text. most: the most bytes read. Raises
    DataError: the file is not Parquet, or exceeds `most` bytes or the reader's memory or time."""
    return limited_process.lines_of("adapop.facts.parquet", path, (), most, unreadable(path))


def unreadable(path: Path) -> DataError:
    return DataError(f"{path.name} is not a readable Parquet file.", "Export it again.")


def main(path: Path) -> None:
    """The reader process: prints the lines. Any exception means that the file cannot be read."""
    limited_process.limit(READER_MEGABYTES, READER_SECONDS)
    try:
        for line in unpacked(path):
            print(line)
    except MemoryError:
        sys.exit(limited_process.TOO_MUCH)


def unpacked(path: Path) -> Iterator[str]:
    """The lines of `lines_of`, read in this process and without a limit."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        yield json.dumps(file.schema_arrow.names)
        for batch in file.iter_batches(BATCH, use_threads=False):
            for row in batch.to_pylist():
                yield json.dumps(
                    row, default=lambda x: {"bytes": len(x)} if isinstance(x, bytes) else str(x)
                )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
