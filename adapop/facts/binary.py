"""Parquet files and workbooks, which are always read in a `limited_process`: a Parquet as lines of
JSON, the first sheet of a workbook (Excel, OpenDocument) as the text of a CSV.

Text in a workbook stays as it is, with its leading zeros; a number that is no text has lost those
there, and its digits after the 15th."""

import csv
import io
import json
import sys
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path

from adapop.errors import DataError, truncated
from adapop.facts import limited_process
from adapop.remark import Remark

PARQUET, ZIP = b"PAR1", b"PK\x03\x04"  # first bytes; a Parquet ends in its own, too
BOOKS = (b"xl/workbook.", b"opendocument.spreadsheet")  # in a zip archive that is a workbook
READER_MEGABYTES = 512
SECONDS = {"parquet": 4, "book": 8}
BATCH = 256  # rows of a Parquet read at once
EXACT = 10**15  # whole numbers below this keep all their digits in a workbook
PROTECTED = "protected"


def is_workbook(content: bytes) -> bool:
    return content.startswith(ZIP) and any(part in content for part in BOOKS)


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
    return limited_process.lines_of("adapop.facts.binary", path, [kind], most, failed)


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
    shown = [sheet.name for sheet in sheets if sheet.visible == SheetVisibleEnum.Visible]
    name, *others = shown or [sheet.name for sheet in sheets]
    dates, long = [], []  # (row number, text) of cells that are not read as they are shown
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
    rows = workbook.get_sheet_by_name(name).to_python(skip_empty_area=False)
    for number, cells in enumerate(rows, start=1):
        texts = list(map(_text, cells))
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


def _text(cell: object) -> str:
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
