"""CSV cells that no spreadsheet reads as formulas: written and read back."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

BOM = "\ufeff"  # without it, Excel reads a CSV in the machine's old code page: "MÃ¼nchen"
# as listed by OWASP under "CSV injection", with the full-width forms that some spreadsheets accept
SIGNS = "=+\\-@＝＋－＠"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Where a spreadsheet with another separator begins a cell, and what it skips there. It reads our
# quotes as plain characters, so a line end inside them also ends a row.
INNER = re.compile(rf"([;|\t\r\n][ \"]*)('*)(?=[{SIGNS}])")


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Writes a byte order mark, a header and the rows to a UTF-8 file opened with newline=""."""
    file.write(BOM)
    writer = csv.DictWriter(file, columns)
    writer.writerow({name: escaped(name) for name in columns})
    writer.writerows({name: escaped(value) for name, value in row.items()} for row in rows)


def as_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """The rows as CSV, with the columns of all rows, in the order in which they first appear."""
    rows = list(rows)
    file = io.StringIO(newline="")
    write_csv(file, list(dict.fromkeys(name for row in rows for name in row)), rows)
    return file.getvalue()


def escaped(value: object) -> object:
    """A value as written to CSV: lists and dicts as JSON. An apostrophe goes before text that a
    spreadsheet would run as a formula, also where it would split the line at `;`, `|` or tabs."""
    if isinstance(value, (dict, list, tuple)):
        value = json.dumps(value, ensure_ascii=False) if value else ""
    if not isinstance(value, str):
        return value
    # also before one that already starts with apostrophes, so that `plain` can undo it
    formula = value.lstrip("'").startswith(FORMULA_STARTS)
    guarded = INNER.sub(r"\1'\2", value)
    return f"'{guarded}" if formula else guarded


def plain(text: str) -> str:
    """The text without the apostrophes that `escaped` added."""
    formula = text.startswith("'") and text.lstrip("'").startswith(FORMULA_STARTS)
    return INNER.sub(lambda match: match[1] + match[2][1:], text[1:] if formula else text)
