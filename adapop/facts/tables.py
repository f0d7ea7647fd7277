"""The rows of a user's CSV, TSV, JSON or JSONL in UTF-8, Parquet or workbook, for `files`.

A text file's content decides how it is read, not its suffix. A file that is no table is refused
(`DataError`); a row that cannot be read becomes a `Problem`. Within the limits below, the worst
file takes seconds and a few hundred MB (measured in `tests/reliability/uploads.py`)."""

import codecs
import csv
import io
import json
import re
from collections.abc import Iterable
from itertools import chain, repeat
from pathlib import Path

from adapop.errors import DataError, truncated
from adapop.facts import sheets
from adapop.facts.cells import NOT_TEXT
from adapop.facts.dialects import MARKS, Layout, cells_of, delimiter
from adapop.facts.fact import Problem
from adapop.facts.forms import guessed
from adapop.facts.formulas import BOM, plain
from adapop.facts.objects import BY_LINE, Rows, rows_of_json, rows_of_lines
from adapop.facts.parquet import MAGIC, lines_of, unreadable
from adapop.remark import Remark

MAX_BYTES = 16_000_000  # of the file, and of a Parquet file's unpacked rows
MAX_LINES = 2**20  # the limit of a spreadsheet
MAX_COLUMNS, MAX_NAME = 100, 200
MAX_OBJECTS = 500_000
FORMATS = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".ndjson", ".txt", ".xlsx", ".ods")
SIGNATURES = {  # first bytes of what is no table
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF89a": "a GIF image",
    b"%PDF-": "a PDF",
    sheets.ZIP: "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
}
RULE = re.compile(r"[\s:]*-{3}[\s:-]*")  # below the header of a table in Markdown


def rows_of(path: Path, layout: Layout) -> Rows:
    """The file's rows with their spreadsheet row numbers; in place of a bad row, its problem.
    layout: filled here. Raises DataError: it is of unknown kind, too large, not UTF-8, no table."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        message = f"{path.name} is not one of {', '.join(FORMATS)}."
        raise DataError(message, "Save it as CSV in UTF-8.")
    try:
        content = _content(path)
    except OSError as error:
        message = f"{truncated(path.name)} cannot be read: {error.strerror}."
        raise DataError(message, "Upload it again.") from None
    if suffix == ".parquet" or (content[:4] == MAGIC == content[-4:]):
        if content[:4] != MAGIC or content[-4:] != MAGIC:  # spares starting a reader process
            raise unreadable(path)
        lines = lines_of(path, MAX_BYTES)
        layout.header += json.loads(next(lines))
        _check_header(path, layout.header)
        yield from rows_of_lines(lines, MAX_OBJECTS)
        return
    if sheets.is_workbook(content):
        text = sheets.csv_of(path, MAX_BYTES, layout.notes)
        yield from _csv_rows(path, text, layout)
        layout.mark = ""  # its numbers are numbers: no mark inside one is unclear
        return
    if kind := next((SIGNATURES[one] for one in SIGNATURES if content.startswith(one)), ""):
        raise DataError(f"{path.name} is no table: it is {kind}.", "Export the facts as CSV UTF-8.")
    text = _text(path, content, layout)
    if _is_json(path, text):
        yield from _with_few_keys(path, rows_of_json(path, text, layout.notes, MAX_OBJECTS))
    else:
        yield from _csv_rows(path, text, layout)


def _is_json(path: Path, text: str) -> bool:
    """Whether a text is JSON rather than a table of cells, whatever its file is called."""
    start = text.lstrip("\ufeff\x1e \t\r\n")[:200]
    named = path.suffix.lower() in (".json", *BY_LINE)
    if named == (start[:1] in ("[", "{")):
        return named
    if named:
        head = io.StringIO(text[: MAX_COLUMNS * MAX_NAME], newline="")
        cells = next(csv.reader(head, delimiter=delimiter(start, ",")), [])
        return not {"question", "answer"} <= guessed(cells).keys()
    return bool(re.match(r'\{\s*"|\[\s*\{\s*"', start))


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise DataError(f"{path.name} is not there any more.", "Upload it again.")
    with open(path, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        message = f"{path.name} has {path.stat().st_size:,} bytes; at most {MAX_BYTES:,} are read."
        raise DataError(message, "Split it.")
    return content


def _text(path: Path, content: bytes, layout: Layout) -> str:
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    wide = content.startswith(marks) and content[2:4] != b"\0\0"
    try:
        text = content.decode("utf-16" if wide else "utf-8").lstrip(BOM)  # some write two marks
        layout.notes += [Remark("utf16")] * wide
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        encoding = "UTF-16" if wide else "UTF-8"
        byte = f"byte {content[error.start]:#04x}"
        message = f"{path.name}, line {line}, is not {encoding} ({byte})."
        fix = "Save the file again as 'CSV UTF-8' or with encoding UTF-8."
        raise DataError(message, fix) from None
    if "\0" in text:
        message = f"{path.name} contains NUL characters, so it is no text table."
        raise DataError(message, "Export it as CSV in UTF-8.")
    if (lines := max(text.count("\n"), text.count("\r"))) > MAX_LINES:
        message = f"{path.name} has {lines:,} lines; at most {MAX_LINES:,} are read."
        raise DataError(message, "Delete the empty ones.")
    return text


def _csv_rows(path: Path, text: str, layout: Layout) -> Rows:
    """The rows of a CSV or TSV, without the apostrophes of `formulas.escaped`. Raises DataError: an
    open quote."""
    csv.field_size_limit(MAX_BYTES)
    number, header, guarded = 0, layout.header, "'" in text
    try:
        for number, cells in cells_of(path, text, layout):
            is_rule = layout.mark == "|" and RULE.fullmatch("".join(cells))
            if is_rule or not any(map(str.strip, cells)):
                continue
            if not header:
                _check_header(path, cells)
                header += cells
            elif any(beyond := cells[len(header) :]):
                where = (number, f"column {len(header) + 1}", truncated(layout.mark.join(beyond)))
                marks = MARKS.get(layout.mark, repr(layout.mark))
                fix = f"Put cells that contain {marks} in quotes."
                yield Problem(*where, "has no name in the header", fix)
            else:
                cells = map(plain, cells[: len(header)]) if guarded else cells
                yield number, dict(zip(header, chain(cells, repeat(""))))
    except csv.Error as error:
        message = f"{path.name}, row {number + 1}, is not CSV: {error}."
        raise DataError(message, "Close every quote, or export the table again as CSV.") from None


def _check_header(path: Path, header: list[str]) -> None:
    if len(header) > MAX_COLUMNS:
        raise _too_wide(path, f"{len(header):,}")
    _check_names(path, header)


def _check_names(path: Path, names: Iterable[str]) -> None:
    for name in names:
        if len(name) > MAX_NAME or NOT_TEXT.search(name):
            long = f"longer than {MAX_NAME} letters"
            fault = long if len(name) > MAX_NAME else "no text (half a letter, or a NUL)"
            message = f"{path.name} has a column whose name is {fault}: {truncated(name)!r}."
            raise DataError(message, "Rename the column.")


def _too_wide(path: Path, count: str) -> DataError:
    message = f"{path.name} has {count} columns; at most {MAX_COLUMNS} are read."
    return DataError(message, "Delete those that describe no fact.")


def _with_few_keys(path: Path, rows: Rows) -> Rows:
    """The rows. Raises DataError: they have more different keys than a table may have columns."""
    keys: set[str] = set()
    for row in rows:
        if not isinstance(row, Problem) and (new := row[1].keys() - keys):
            keys |= new
            if len(keys) > MAX_COLUMNS:
                raise _too_wide(path, f"more than {MAX_COLUMNS}")
            _check_names(path, new)
        yield row
