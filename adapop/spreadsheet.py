"""Tables that people open in a spreadsheet: one CSV writer, and the rule that no text runs there as a formula.

A text that would be one has an apostrophe in front; `plain` takes it away when `adapop.tables` reads the file.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

# those that OWASP names under "CSV injection", with the full-width ones that some spreadsheets read alike
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Writes a header and the rows to a file that was opened with newline="". What a row lacks stays empty."""
    writer = csv.DictWriter(file, columns)
    writer.writeheader()
    writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)


def cell(value: object) -> object:
    """A value as it is written: lists and dicts as JSON, a text that would be a formula with an apostrophe in front."""
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, ensure_ascii=False) if value else ""
    # also one that has apostrophes there already: else it could not be told from what we wrote
    formula = isinstance(value, str) and value.lstrip("'").startswith(FORMULA_STARTS)
    return f"'{value}" if formula else value


def plain(text: str) -> str:
    """The text that `cell` wrote as this one."""
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(FORMULA_STARTS) else text
