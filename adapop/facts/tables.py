"""The rows of a user's file: CSV, TSV, JSON, JSONL or Parquet, in UTF-8. `files` makes facts of them.

A file that is no table is refused (`DataError`); a single row that cannot be read becomes a `Problem`. Within the
limits below, the worst file takes seconds and a few hundred MB (measured in `tests/reliability/uploads.py`).
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TextIO

from adapop.errors import DataError, shown
from adapop.facts.fact import Problem
from adapop.facts.parquet import MAGIC, lines_of, unreadable
from adapop.facts.rows import NOT_TEXT

MAX_BYTES = 16_000_000  # of the file, and of a Parquet file's unpacked rows
MAX_LINES = 2**20  # the limit of a spreadsheet
MAX_COLUMNS, MAX_NAME = 100, 200
MAX_OBJECTS = 500_000
FORMATS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
MARKS = {",": "commas", ";": "semicolons", "\t": "tabs"}


def rows_of(path: Path, header: list[str]) -> Iterator[tuple[int, dict] | Problem]:
    """The file's rows with their spreadsheet row numbers; in place of a bad row, its problem.

    header: an empty list, filled with the names of the columns as a CSV or Parquet has them.

    Raises:
        DataError: the file is of an unknown kind, too large, not UTF-8, or not of the kind its suffix says.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise DataError(f"{path.name} is not one of {', '.join(FORMATS)}.", "Save it as CSV in UTF-8.")
    try:
        content = _content(path)
    except OSError as error:
        raise DataError(f"{shown(path.name)} cannot be read: {error.strerror}.", "Upload it again.") from None
    if suffix == ".parquet":
        if content[:4] != MAGIC or content[-4:] != MAGIC:  # spares starting a reader process
            raise unreadable(path)
        yield from _parquet_rows(path, header)
    elif suffix in (".csv", ".tsv"):
        yield from _csv_rows(path, _text(path, content), header)
    else:
        text = _text(path, content)
        rows = _json_rows(path, text) if suffix == ".json" else _jsonl_rows(text.split("\n"))
        yield from _with_few_keys(path, rows)


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise DataError(f"{path.name} is not there any more.", "Upload it again.")
    with open(path, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        size = path.stat().st_size
        raise DataError(f"{path.name} has {size:,} bytes; at most {MAX_BYTES:,} are read.", "Split it.")
    return content


def _text(path: Path, content: bytes) -> str:
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
    if (lines := max(text.count("\n"), text.count("\r"))) > MAX_LINES:
        raise DataError(f"{path.name} has {lines:,} lines; at most {MAX_LINES:,} are read.", "Delete the empty ones.")
    return text


def _csv_rows(path: Path, text: str, header: list[str]) -> Iterator[tuple[int, dict] | Problem]:
    """The rows of a CSV or TSV file, without the apostrophes that `cell` puts in front of formulas."""
    csv.field_size_limit(MAX_BYTES)
    number = 0
    try:
        mark = _delimiter(text, "\t" if path.suffix.lower() == ".tsv" else ",")
        # without strict, an open quote would swallow the rows that follow
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
        for number, cells in enumerate(reader, start=1):
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                _check_header(path, cells)
                header += cells
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


def _delimiter(text: str, usual: str) -> str:
    """The delimiter: the usual one; if that gives a single column, the mark most frequent in the header.

    Excel writes semicolons in much of Europe, and a table of commas may be called .tsv.
    """
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=usual)
    header = next((cells for cells in rows if any(cell.strip() for cell in cells)), [])
    if len(header) != 1:
        return usual
    return max(MARKS, key=header[0].count)


def _check_header(path: Path, header: list[str]) -> None:
    if len(header) > MAX_COLUMNS:
        raise _too_wide(path, f"{len(header):,}")
    _check_names(path, header)


def _check_names(path: Path, names: Iterable[str]) -> None:
    for name in names:
        if len(name) > MAX_NAME or NOT_TEXT.search(name):
            fault = (
                f"longer than {MAX_NAME} letters" if len(name) > MAX_NAME else "no text (half a character, or a NUL)"
            )
            raise DataError(f"{path.name} has a column whose name is {fault}: {shown(name)!r}.", "Rename the column.")


def _too_wide(path: Path, count: str) -> DataError:
    message = f"{path.name} has {count} columns; at most {MAX_COLUMNS} are read."
    return DataError(message, "Delete those that describe no fact.")


def _with_few_keys(path: Path, rows: Iterator[tuple[int, dict] | Problem]) -> Iterator[tuple[int, dict] | Problem]:
    """The rows, until their objects have more different keys than a table may have columns."""
    keys: set[str] = set()
    for row in rows:
        if not isinstance(row, Problem) and (new := row[1].keys() - keys):
            keys |= new
            if len(keys) > MAX_COLUMNS:
                raise _too_wide(path, f"more than {MAX_COLUMNS}")
            _check_names(path, new)
        yield row


class _Objects:
    """Builds the objects of one JSON file, limits their number and refuses repeated names.

    Of two values under one name, one would be lost silently; nested objects take the most memory per byte of file.
    """

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, pairs: list[tuple[str, object]]) -> dict:
        self.count += 1
        if self.count > MAX_OBJECTS:
            raise ValueError(f"has more than {MAX_OBJECTS:,} objects")
        made = dict(pairs)
        if len(made) < len(pairs):
            raise ValueError("has two values under one name in one object")
        return made


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict]]:
    rows = _json(text, _Objects()) if text.strip() else []
    if isinstance(rows, Problem):
        where = f", line {rows.row}," if rows.row else ""
        raise DataError(f"{path.name}{where} {rows.message}.", rows.fix)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path.name} is not a list of objects.", 'Write [{"question": ..., "answer": ...}, ...].')
    yield from enumerate(rows, start=1)


def _jsonl_rows(lines: Iterable[str]) -> Iterator[tuple[int, dict] | Problem]:
    objects = _Objects()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row = _json(line, objects)
        if isinstance(row, Problem):
            yield replace(row, row=number, value=shown(line))
        elif isinstance(row, dict):
            yield number, row
        else:
            yield Problem(number, "", shown(line), "is not an object", 'Write {"question": ..., "answer": ...}.')


def _json(text: str, objects: _Objects) -> object:
    """The value of a JSON text, with numbers as written there; or the `Problem` with it."""
    try:
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=_constant, object_pairs_hook=objects)
    except json.JSONDecodeError as error:
        return Problem(error.lineno, "", "", f"is not JSON: {error.msg}", "Mend that line.")
    except RecursionError:
        return Problem(0, "", "", "is nested too deeply", "Use flat objects.")
    except ValueError as error:  # raised by `_Objects`
        return Problem(0, "", "", str(error), "Use flat objects, with each name once.")


def _constant(name: str) -> str | float:
    """NaN, which tables write for an empty cell, as a float; the infinities as text, as all numbers."""
    return float("nan") if name == "NaN" else name


def _parquet_rows(path: Path, header: list[str]) -> Iterator[tuple[int, dict] | Problem]:
    lines = lines_of(path, MAX_BYTES)
    header += json.loads(next(lines))
    _check_header(path, header)
    yield from _jsonl_rows(lines)


# as listed by OWASP under "CSV injection", with the full-width forms that some spreadsheets accept
SIGNS = "=+\\-@＝＋－＠"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# where a spreadsheet that splits lines at another mark than the comma would begin a cell, and what it would skip there:
# our quotes are no quotes to it, so that a line end inside them ends its line
INNER = re.compile(rf"([;|\t\r\n][ \"]*)('*)(?=[{SIGNS}])")


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Writes a header and the rows to a file opened with newline="". Columns that a row lacks stay empty."""
    writer = csv.DictWriter(file, columns)
    writer.writerow({name: cell(name) for name in columns})
    writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)


def cell(value: object) -> object:
    """A value as written to CSV: lists and dicts as JSON, an apostrophe before a text that would be a formula, and
    before what in it would be one if the line were split at `;`, `|` or tabs."""
    if isinstance(value, (dict, list, tuple)):
        value = json.dumps(value, ensure_ascii=False) if value else ""
    if not isinstance(value, str):
        return value
    # also before one that already starts with apostrophes, so that `plain` can undo it
    formula = value.lstrip("'").startswith(FORMULA_STARTS)
    guarded = INNER.sub(_one_more, value)
    return f"'{guarded}" if formula else guarded


def plain(text: str) -> str:
    """The text before `cell` was applied."""
    formula = text.startswith("'") and text.lstrip("'").startswith(FORMULA_STARTS)
    return INNER.sub(_one_less, text[1:] if formula else text)


def _one_more(found: re.Match) -> str:
    return f"{found[1]}'{found[2]}"


def _one_less(found: re.Match) -> str:
    return f"{found[1]}{found[2][1:]}"
