"""The first sheet of a workbook (Excel, OpenDocument) as the text of a CSV, read in a
`limited_process`. Text stays as it is, with its leading zeros; of a number that is no text, a
workbook has neither those nor more than 15 digits."""

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

ZIP = b"PK\x03\x04"
PARTS = (b"xl/workbook.", b"opendocument.spreadsheet")  # in a zip archive that is a workbook
READER_MEGABYTES, READER_SECONDS = 512, 8
EXACT = 10**15  # whole numbers below this keep all digits in a spreadsheet
VISIBLE, PROTECTED = "visible", "protected"


def is_workbook(content: bytes) -> bool:
    return content.startswith(ZIP) and any(part in content for part in PARTS)


def csv_of(path: Path, most: int, notes: list[Remark]) -> str:
    """The sheet's text. most: the most bytes read. notes: gets notes on what is not read as it is
    shown. Raises DataError: no workbook, protected, or it exceeds a limit."""
    message = f"{path.name} is not a readable workbook."
    failed = DataError(message, "Save it again as .xlsx, or as CSV in UTF-8.")
    lines = limited_process.lines_of("adapop.facts.sheets", path, (), most, failed)
    about = json.loads(next(lines, "{}"))
    text = "".join(lines)
    if about.get(PROTECTED):
        message = f"{path.name} is protected by a password."
        raise DataError(message, "Save it without one, or as CSV in UTF-8.")
    notes += (Remark(kind, values) for kind, values in about["notes"])
    return text


def main(path: Path) -> None:
    """The reader process: prints what to note as JSON, then the CSV. Any exception means that the
    file cannot be read."""
    limited_process.limit(READER_MEGABYTES, READER_SECONDS)
    try:
        for line in unpacked(path):
            sys.stdout.write(line)
    except MemoryError:
        sys.exit(limited_process.TOO_MUCH)


def unpacked(path: Path) -> Iterator[str]:
    """The lines of `main`, read in this process and without a limit."""
    from python_calamine import PasswordError, SheetTypeEnum, SheetVisibleEnum, load_workbook

    try:
        workbook = load_workbook(path)
    except PasswordError:
        yield json.dumps({PROTECTED: True})
        return
    sheets = [sheet for sheet in workbook.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    shown = [sheet.name for sheet in sheets if sheet.visible == SheetVisibleEnum.Visible]
    name, *others = shown or [sheet.name for sheet in sheets]
    rows = workbook.get_sheet_by_name(name).to_python(skip_empty_area=False)
    # kind of note -> row numbers and texts of its cells
    cells: dict[str, list[tuple[int, str]]] = {"dates_written": [], "digits_lost": []}
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
    for number, row in enumerate(rows, start=1):
        texts = [_text(cell) for cell in row]
        writer.writerow(texts)
        for cell, text in zip(row, texts):
            if isinstance(cell, (date, time, timedelta)):
                cells["dates_written"].append((number, text))
            elif isinstance(cell, float) and abs(cell) >= EXACT:
                cells["digits_lost"].append((number, text))
    notes = []
    if others:
        named = ", ".join(repr(truncated(other)) for other in others)
        notes.append(
            ("sheets_not_read", {"sheet": repr(truncated(name)), "others": truncated(named)})
        )
    for kind, places in cells.items():
        if places:
            values = {"rows": len({number for number, _ in places}), "row": places[0][0]}
            example = {"example": places[0][1]} if kind == "dates_written" else {}
            notes.append((kind, values | example))
    yield json.dumps({"notes": notes}) + "\n"
    yield file.getvalue()


def _text(cell: object) -> str:
    """A cell as a CSV would have it; dates as 1979-05-14, times as 14:30:00."""
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
    main(Path(sys.argv[1]))
