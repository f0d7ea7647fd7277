"""A user's file as rows: CSV, JSON, JSONL or Parquet, in UTF-8. What the rows mean is `factfile`'s business.

A file that is no table is refused (`DataError`); a single row that cannot be read becomes a `Problem` in its place.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from adapop.errors import DataError
from adapop.facts import Problem, shown
from adapop.spreadsheet import plain

MAX_BYTES = 64 * 1024 * 1024
MAX_COLUMNS = 100
FORMATS = (".csv", ".json", ".jsonl", ".parquet")
MARKS = {",": "commas", ";": "semicolons", "\t": "tabs"}


def rows_of(path: Path, unique: frozenset[str]) -> Iterator[tuple[int, dict] | Problem]:
    """The file's rows with their numbers, counted as a spreadsheet does; in place of a bad row, the problem with it.

    unique: column names, in lower case, that the header may hold only once.

    Raises:
        DataError: an unknown kind of file, too large, not UTF-8, or not the table its name says.
    """
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"{path.name} is not one of {', '.join(FORMATS)}.", "Save it as CSV in UTF-8.")
    if not path.is_file():
        raise DataError(f"{path.name} is not there any more.", "Upload it again.")
    if (size := path.stat().st_size) > MAX_BYTES:
        raise DataError(f"{path.name} has {size / 1e6:.0f} MB; at most {MAX_BYTES / 1e6:.0f} are read.", "Split it.")
    if path.suffix.lower() == ".parquet":
        yield from _parquet_rows(path, unique)
    elif path.suffix.lower() == ".csv":
        yield from _csv_rows(path, _text(path), unique)
    else:
        rows = (_json_rows if path.suffix.lower() == ".json" else _jsonl_rows)(path, _text(path))
        yield from _with_few_keys(path, rows)


def _text(path: Path) -> str:
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path.name}, line {line}, is not UTF-8 (byte {content[error.start]:#04x}).",
            "Save the file again as 'CSV UTF-8' or with encoding UTF-8.",
        ) from None
    if "\0" in text:
        raise DataError(
            f"{path.name} contains NUL characters, so it is not a text table.", "Export it as CSV in UTF-8."
        )
    return text


def _csv_rows(path: Path, text: str, unique: frozenset[str]) -> Iterator[tuple[int, dict] | Problem]:
    """The rows of a CSV, without the apostrophes that our writer, or a careful user, put in front of formulas."""
    csv.field_size_limit(MAX_BYTES)
    header: list[str] = []
    number = 0
    try:
        mark = _delimiter(text)
        # strict: without it an open quote swallows the rows that follow
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
        for number, cells in enumerate(reader, start=1):
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = cells
                _check_header(path, header, unique)
            elif any(beyond := cells[len(header) :]):
                column, fix = f"column {len(header) + 1}", f"Put cells that contain {MARKS[mark]} in quotes."
                yield Problem(number, column, shown(mark.join(beyond)), "has no name in the header", fix)
            else:
                yield number, dict(zip_longest(header, map(plain, cells[: len(header)]), fillvalue=""))
    except csv.Error as error:
        raise DataError(
            f"{path.name}, row {number + 1}, is not CSV: {error}.",
            "Close every quote, or export the table again as CSV.",
        ) from None


def _delimiter(text: str) -> str:
    """A comma, unless a header read by commas is a single column that holds what Excel writes in much of Europe."""
    rows = csv.reader(io.StringIO(text, newline=""))
    header = next((cells for cells in rows if any(cell.strip() for cell in cells)), [])
    if len(header) != 1:
        return ","
    return max(MARKS, key=header[0].count)


def _check_header(path: Path, header: list[str], unique: frozenset[str]) -> None:
    if len(header) > MAX_COLUMNS:
        raise _too_wide(path, f"{len(header):,}")
    names = [name.strip().lower() for name in header]
    for name in names:
        if names.count(name) > 1 and name in unique:
            raise DataError(f"{path.name} has two columns called {name!r}.", "Rename or delete one of them.")


def _too_wide(path: Path, count: str) -> DataError:
    message = f"{path.name} has {count} columns; at most {MAX_COLUMNS} are read."
    return DataError(message, "Delete those that describe no fact.")


def _with_few_keys(path: Path, rows: Iterator[tuple[int, dict] | Problem]) -> Iterator[tuple[int, dict] | Problem]:
    """The rows, until their objects have more different keys than a table may have columns."""
    keys: set[str] = set()
    for row in rows:
        if not isinstance(row, Problem):
            keys |= row[1].keys()
        if len(keys) > MAX_COLUMNS:
            raise _too_wide(path, f"more than {MAX_COLUMNS}")
        yield row


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict]]:
    rows = _json(text) if text.strip() else []
    if isinstance(rows, Problem):
        where = f", line {rows.row}," if rows.row else ""
        raise DataError(f"{path.name}{where} {rows.message}.", rows.fix)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path.name} is not a list of objects.", 'Write [{"question": ..., "answer": ...}, ...].')
    yield from enumerate(rows, start=1)


def _jsonl_rows(path: Path, text: str) -> Iterator[tuple[int, dict] | Problem]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        row = _json(line)
        if isinstance(row, Problem):
            yield replace(row, row=number, value=shown(line))
        elif isinstance(row, dict):
            yield number, row
        else:
            yield Problem(number, "", shown(line), "is not an object", 'Write {"question": ..., "answer": ...}.')


def _json(text: str) -> object:
    """The value of a JSON text, or the `Problem` with the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        return Problem(error.lineno, "", "", f"is not JSON: {error.msg}", "Mend that line.")
    except RecursionError:
        return Problem(0, "", "", "is nested too deeply", "Use flat objects.")
    except ValueError:  # what Python says of an integer of more than 4,300 digits
        return Problem(0, "", "", "has a number of too many digits", "Shorten the number.")


def _parquet_rows(path: Path, unique: frozenset[str]) -> Iterator[tuple[int, dict]]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            _check_header(path, file.schema_arrow.names, unique)
            yield from enumerate((row for batch in file.iter_batches(1024) for row in batch.to_pylist()), start=1)
    except (pyarrow.ArrowException, OSError, ValueError):
        raise DataError(f"{path.name} is not a readable Parquet file.", "Export it again.") from None
