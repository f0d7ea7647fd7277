"""The rows of a user's file: CSV, TSV or JSON in UTF-8, Parquet, or a workbook.

A text file's content decides how it is read, not its suffix. A Parquet file and a workbook are
always read in a `limited_process`: the first as lines of JSON, the first sheet of the second as the
text of a CSV. There text stays as it is, with its leading zeros; a number that is no text has lost
those, and its digits after the 15th.

A file that is no table is refused (`DataError`); a row that cannot be read becomes a `Problem`.
Within the limits below, the worst file takes seconds and a few hundred MB."""

import codecs
import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import chain, repeat
from pathlib import Path

from adapop.errors import DataError, truncated
from adapop.facts import limited_process
from adapop.facts.cells import NOT_TEXT, UNKNOWN_SCORES, parsed
from adapop.facts.fact import Problem
from adapop.facts.forms import guessed
from adapop.facts.formulas import BOM, plain
from adapop.facts.objects import BY_LINE, Rows, rows_of_json, rows_of_lines
from adapop.remark import Remark

PARQUET, ZIP = b"PAR1", b"PK\x03\x04"  # first bytes; a Parquet ends in its own, too
MAX_BYTES = 16_000_000  # of the file, and of a Parquet file's unpacked rows
MAX_LINES = 2**20  # the limit of a spreadsheet
MAX_COLUMNS, MAX_NAME = 100, 200
FORMATS = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".ndjson", ".txt", ".xlsx", ".ods")
SIGNATURES = {  # first bytes of what is no table
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF89a": "a GIF image",
    b"%PDF-": "a PDF",
    ZIP: "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
}
MARKS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# the first line by which Excel names the separator
SEPARATOR = re.compile(r"\s*\"?sep=([^\w\s\"]|\t)\"?[;,]*\r?\n", re.IGNORECASE)
RULE = re.compile(r"[\s:]*-{3}[\s:-]*")  # below the header of a table in Markdown
QUESTION_MARK, CHARACTERS_SEARCHED = re.compile("[?？؟]"), 1_000  # from the start
SCORE = re.compile(r"(\d[\d., ]*(e\d+)?%?)?", re.IGNORECASE)
# columns of a file without a header -> the kind of its last cell, and whether a cell is of it
HEADERLESS = {
    ("question", "answers"): ("a list", lambda cell: isinstance(parsed(cell), list)),
    ("question", "A", "B", "C", "D", "answer"): (
        "a letter",
        lambda cell: cell.strip() in list("ABCD"),
    ),
}


@dataclass
class Layout:
    """Properties of a file, found while its rows are read."""

    header: list[str] = field(default_factory=list)
    """The names of the columns as a CSV or Parquet has them; empty for JSON."""
    mark: str = ""
    """The separator of a CSV's cells."""
    notes: list[Remark] = field(default_factory=list)
    """What was not read literally."""


def rows_of(path: Path, layout: Layout) -> Rows:
    """The file's rows with their spreadsheet row numbers; in place of a bad row, its problem.
    layout: filled here. Raises DataError: it is of unknown kind, too large, not UTF-8, no table."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        message = f"{path.name} is not one of {', '.join(FORMATS)}."
        raise DataError(message, "Save it as CSV in UTF-8.")
    content = _content(path)
    is_parquet = content[:4] == PARQUET == content[-4:]
    if suffix == ".parquet" or is_parquet:
        if not is_parquet:  # spares starting a reader process
            raise not_parquet(path)
        lines = lines_of(path, MAX_BYTES)
        layout.header += json.loads(next(lines))
        _check_header(path, layout.header)
        yield from rows_of_lines(lines)
    elif content.startswith(ZIP) and any(part in content for part in BOOKS):
        text = csv_of(path, MAX_BYTES, layout.notes)
        yield from _rows_of_csv(path, text, layout, "Name its column, or empty the cell.")
        layout.mark = ""  # its numbers are numbers: no mark inside one is unclear
    elif kind := next((SIGNATURES[one] for one in SIGNATURES if content.startswith(one)), ""):
        raise DataError(
            f"{path.name} is not a table: it is {kind}.", "Export the facts as CSV UTF-8."
        )
    elif _is_json(path, text := _text(path, content, layout.notes)):
        yield from _with_few_keys(path, rows_of_json(path, text, layout.notes))
    else:
        yield from _rows_of_csv(path, text, layout)


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise DataError(f"{path.name} is not there any more.", "Upload it again.")
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        message = f"{truncated(path.name)} cannot be read: {error.strerror}."
        raise DataError(message, "Upload it again.") from None
    if len(content) > MAX_BYTES:
        message = f"{path.name} has {path.stat().st_size:,} bytes; at most {MAX_BYTES:,} are read."
        raise DataError(message, "Split it.")
    return content


def _text(path: Path, content: bytes, notes: list[Remark]) -> str:
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    wide = content.startswith(marks) and content[2:4] != b"\0\0"
    try:
        text = content.decode("utf-16" if wide else "utf-8").lstrip(BOM)  # some write two marks
        notes += [Remark("utf16")] * wide
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        encoding = "UTF-16" if wide else "UTF-8"
        byte = f"byte {content[error.start]:#04x}"
        message = f"{path.name}, line {line}, is not {encoding} ({byte})."
        fix = "Save the file again as 'CSV UTF-8' or with encoding UTF-8."
        raise DataError(message, fix) from None
    if "\0" in text:
        message = f"{path.name} contains NUL characters, so it is not a text table."
        raise DataError(message, "Export it as CSV in UTF-8.")
    if (lines := max(text.count("\n"), text.count("\r"))) > MAX_LINES:
        message = f"{path.name} has {lines:,} lines; at most {MAX_LINES:,} are read."
        raise DataError(message, "Delete the empty ones.")
    return text


def _is_json(path: Path, text: str) -> bool:
    """Whether a text is JSON rather than a table of cells, whatever its file is called."""
    start = text.lstrip("\ufeff\x1e \t\r\n")[:200]
    named = path.suffix.lower() in (".json", *BY_LINE)
    if named == (start[:1] in ("[", "{")):
        return named
    if named:
        cells = next(_reader(text[: MAX_COLUMNS * MAX_NAME], _delimiter(start, ",")), [])
        return not {"question", "answer"} <= guessed(cells).keys()
    return bool(re.match(r'\{\s*"|\[\s*\{\s*"', start))


def _rows_of_csv(path: Path, text: str, layout: Layout, fix: str = "") -> Rows:
    """The rows of a CSV or TSV, without the apostrophes of `formulas.escaped`. fix: what to do
    about a cell beyond the header. Raises DataError: an open quote."""
    csv.field_size_limit(MAX_BYTES)
    number, header, guarded = 0, layout.header, "'" in text
    try:
        for number, cells in _cells_of(path, text, layout):
            is_rule = layout.mark == "|" and RULE.fullmatch("".join(cells))
            if is_rule or not any(map(str.strip, cells)):
                continue
            if not header:
                _check_header(path, cells)
                header += cells
            elif any(beyond := cells[len(header) :]):
                where = (number, f"column {len(header) + 1}", truncated(layout.mark.join(beyond)))
                marks = MARKS.get(layout.mark, repr(layout.mark))
                quote = f"Put cells that contain {marks} in quotes."
                yield Problem(*where, "has no name in the header", fix or quote)
            else:
                cells = map(plain, cells[: len(header)]) if guarded else cells
                yield number, dict(zip(header, chain(cells, repeat(""))))
    except csv.Error as error:
        message = f"{path.name}, row {number + 1}, is not CSV: {error}."
        raise DataError(message, "Close every quote, or export the table again as CSV.") from None


def _cells_of(path: Path, text: str, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """(number, cells) of each row, the header first; a file without a header is given one.

    layout: gets the separator and the notes. Raises DataError: there is no header, and not every
    row is a fact. csv.Error: the text is no table."""
    if named := SEPARATOR.match(text[:99]):
        marks, text = (named[1],), text[named.end() :]
    else:
        usual = _delimiter(text, "\t" if path.suffix.lower() == ".tsv" else ",")
        marks = tuple(dict.fromkeys((usual, *MARKS)))
    tries = ((mark, columns) for mark in marks if (columns := _columns_of_questions(text, mark)))
    layout.mark, names = next(tries, (marks[0], []))
    options = _options(text, layout)
    if names:
        layout.notes.append(Remark("no_header_questions", {"columns": ", ".join(names)}))
    else:
        first = _first_row(_reader(text, layout.mark, **options))
        names = _headerless(path, first, _reader(text, layout.mark, **options), layout)
    if names:
        yield 0, names
    yield from enumerate(_reader(text, layout.mark, **options), start=1)


def _reader(text: str, mark: str, **options) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), delimiter=mark, **options)


def _first_row(rows: Iterable[list[str]]) -> list[str]:
    return next((cells for cells in rows if any(map(str.strip, cells))), [])


def _delimiter(text: str, usual: str) -> str:
    """The usual delimiter; if that gives a single column, the most frequent mark of the header.
    Excel writes semicolons in much of Europe, and a table of commas may be called .tsv."""
    header = _first_row(_reader(text, usual))
    return max(MARKS, key=header[0].count) if len(header) == 1 else usual


def _columns_of_questions(text: str, mark: str) -> list[str]:
    """The columns of a table without a header; [] for any other. In such a table the first row is
    question, answer, perhaps score, and each row begins with a cell that ends in a question
    mark."""
    if not QUESTION_MARK.search(text[:CHARACTERS_SEARCHED]):
        return []
    reader = _reader(text, mark, **_options(text, Layout(mark=mark)))
    rows = ([cell.strip() for cell in cells] for cells in reader if any(map(str.strip, cells)))
    try:
        first = next(rows, [])
        question, answer, score = (*first, "", "", "")[:3]
        if len(first) not in (2, 3) or guessed(first) or QUESTION_MARK.search(answer or "?"):
            return []
        scored = SCORE.fullmatch(score) or score.casefold() in UNKNOWN_SCORES
        fits = scored and all(QUESTION_MARK.fullmatch(row[0][-1:]) for row in ([question], *rows))
    except csv.Error:
        return []
    return ["question", "answer", "score"][: len(first)] if fits else []


def _options(text: str, layout: Layout) -> dict:
    """Options of `csv.reader` for quotes: the usual ones unless others give a table with more rows.
    Others: quotes after a space; with tabs, quotes as plain characters; else escapes by
    backslash."""
    strict = {"strict": True}  # or an open quote would swallow the rows that follow
    if f'{layout.mark} "' in text and not _rows_if_even(_reader(text, layout.mark, **strict)):
        spaced = {"skipinitialspace": True, **strict}  # question, "a, b"
        if _rows_if_even(_reader(text, layout.mark, **spaced)):
            return spaced
    if '"' not in text or not (layout.mark == "\t" or '\\"' in text):
        return strict
    other = {"quoting": csv.QUOTE_NONE}
    if layout.mark != "\t":
        other = {"escapechar": "\\", "doublequote": False, **strict}
    rows = _rows_if_even(_reader(text, layout.mark, **other))
    if rows <= _rows_if_even(_reader(text, layout.mark, **strict)):
        return strict
    kind = "quotes_as_characters" if layout.mark == "\t" else "backslash_before_quotes"
    layout.notes.append(Remark(kind, {"rows": rows}))
    return other


def _rows_if_even(rows: Iterator[list[str]]) -> int:
    """Number of rows that are not empty, if all have as many cells as the first; else 0."""
    try:
        widths = [len(cells) for cells in rows if cells]
    except csv.Error:
        return 0
    return len(widths) if len(set(widths)) == 1 and widths[0] > 1 else 0


def _headerless(
    path: Path, first: list[str], rows: Iterator[list[str]], layout: Layout
) -> list[str]:
    """The columns of `HEADERLESS` that fit the first row, else []. Raises DataError: other rows do
    not fit."""
    for names, (kind, fits) in HEADERLESS.items():
        if len(first) != len(names) or not fits(first[-1]):
            continue
        rows = [cells for cells in rows if any(cells)]
        columns = ", ".join(names)
        if odd := [cells for cells in rows if len(cells) != len(names) or not fits(cells[-1])]:
            reason = f"as its first row ends in {kind}, but not every row does"
            fix = f"Write the names of the columns into the first row: {columns}."
            raise DataError(f"{path.name} has no header, {reason}: {truncated(odd[0])}.", fix)
        values = {"rows": len(rows), "ending": kind, "columns": columns}
        layout.notes.append(Remark("no_header_endings", values))
        return list(names)
    return []


def _with_few_keys(path: Path, rows: Rows) -> Rows:
    """The rows. Raises DataError: they have more different keys than a table may have columns."""
    keys: set[str] = set()
    for row in rows:
        if not isinstance(row, Problem) and (new := [name for name in row[1] if name not in keys]):
            keys.update(new)
            if len(keys) > MAX_COLUMNS:
                raise _too_wide(path, f"more than {MAX_COLUMNS}")
            _check_names(path, new)
        yield row


def _check_header(path: Path, header: list[str]) -> None:
    if len(header) > MAX_COLUMNS:
        raise _too_wide(path, f"{len(header):,}")
    _check_names(path, header)


def _check_names(path: Path, names: Iterable[str]) -> None:
    for name in names:
        if len(name) > MAX_NAME or NOT_TEXT.search(name):
            long = f"longer than {MAX_NAME} letters"
            fault = long if len(name) > MAX_NAME else "not text (a broken character or a NUL)"
            message = f"{path.name} has a column whose name is {fault}: {truncated(name)!r}."
            raise DataError(message, "Rename the column.")


def _too_wide(path: Path, count: str) -> DataError:
    message = f"{path.name} has {count} columns; at most {MAX_COLUMNS} are read."
    return DataError(message, "Delete those that describe no fact.")


# Parquet files and workbooks, read in a process of their own.

BOOKS = (b"xl/workbook.", b"opendocument.spreadsheet")  # in a zip archive that is a workbook
READER_MEGABYTES = 512
SECONDS = {"parquet": 4, "book": 8}
BATCH = 256  # rows of a Parquet read at once
EXACT = 10**15  # whole numbers below this keep all their digits in a workbook
PROTECTED = "protected"


def lines_of(path: Path, most: int) -> Iterator[str]:
    """The lines of a Parquet: first the list of column names, then one object per row. A binary
    cell becomes an object; other values that JSON lacks become their Python text. most: the most
    bytes read. Raises DataError: the file is not Parquet, or exceeds `most` bytes or the reader's
    memory or time."""
    return _lines(path, "parquet", most, not_parquet(path))


def not_parquet(path: Path) -> DataError:
    return DataError(f"{path.name} is not a readable Parquet file.", "Export it again.")


def csv_of(path: Path, most: int, notes: list[Remark]) -> str:
    """A workbook's first sheet. most: the most bytes read. notes: gets notes on what is not read as
    it is shown. Raises DataError: no workbook, protected, or it exceeds a limit."""
    message = f"{path.name} is not a readable workbook."
    failed = DataError(message, "Save it again as .xlsx, or as CSV in UTF-8.")
    lines = _lines(path, "book", most, failed)
    about = json.loads(next(lines))
    text = "".join(lines)
    if about == PROTECTED:
        message = f"{path.name} is protected by a password."
        raise DataError(message, "Save it without one, or as CSV in UTF-8.")
    notes += (Remark(kind, values) for kind, values in about)
    return text


def _lines(path: Path, kind: str, most: int, failed: DataError) -> Iterator[str]:
    return limited_process.lines_of("adapop.facts.tables", path, [kind], most, failed)


def main(path: Path, kind: str) -> None:
    """The reader process: prints the lines. Any exception means that the file cannot be read."""
    limited_process.limit(READER_MEGABYTES, SECONDS[kind])
    try:
        for line in unpacked(path) if kind == "parquet" else unpacked_sheet(path):
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


def unpacked_sheet(path: Path) -> Iterator[str]:
    """What to note as JSON (pairs of kind and values, or `PROTECTED`), then the CSV of the first
    sheet that is shown; read in this process and without a limit."""
    from python_calamine import PasswordError, SheetTypeEnum, SheetVisibleEnum, load_workbook

    try:
        workbook = load_workbook(path)
    except PasswordError:
        yield json.dumps(PROTECTED)
        return
    sheets = [sheet for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    visible = [sheet.name for sheet in sheets if sheet.visible == SheetVisibleEnum.Visible]
    name, *others = visible or [sheet.name for sheet in sheets]
    dates, long = [], []  # (row number, text) of cells that are not read as they are shown
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
    rows = workbook.get_sheet_by_name(name).to_python(skip_empty_area=False)
    for number, cells in enumerate(rows, start=1):
        texts = list(map(_as_text, cells))
        writer.writerow(texts)
        for cell, text in zip(cells, texts):
            if isinstance(cell, (date, time, timedelta)):
                dates.append((number, text))
            elif isinstance(cell, float) and abs(cell) >= EXACT:
                long.append((number, text))
    notes = []
    if others:
        named = truncated(", ".join(repr(truncated(other)) for other in others))
        notes.append(("sheets_not_read", {"sheet": repr(truncated(name)), "others": named}))
    for kind, places in (("dates_written", dates), ("digits_lost", long)):
        if places:
            values = {"rows": len({number for number, _ in places}), "row": places[0][0]}
            notes.append(
                (kind, values | ({"example": places[0][1]} if kind[:5] == "dates" else {}))
            )
    yield json.dumps(notes)
    yield file.getvalue()


def _as_text(cell: object) -> str:
    """A workbook's cell as a CSV would have it; dates as 1979-05-14, times as 14:30:00."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return f"{cell:.0f}" if cell.is_integer() else repr(cell)
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(" ")
    if isinstance(cell, timedelta):
        minutes, seconds = divmod(int(cell.total_seconds()), 60)
        return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    return cell.isoformat() if isinstance(cell, (date, time)) else str(cell)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
