"""Tables that people open in a spreadsheet: one CSV writer, and the rule that no text runs there as a formula."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Writes a header and the rows to a file that was opened with newline="". What a row lacks stays empty."""
    writer = csv.DictWriter(file, columns)
    writer.writeheader()
    writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)


def cell(value: object) -> object:
    """A value as it is written: lists and dicts as JSON, a text that would be a formula with an apostrophe in front."""
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, ensure_ascii=False) if value else ""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
