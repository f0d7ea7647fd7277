"""The dialect of a CSV or TSV: separator, quotes, and whether it has a header."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from adapop.errors import DataError, truncated
from adapop.facts.forms import HEADERLESS, guessed
from adapop.facts.lists import parsed
from adapop.facts.scores import UNKNOWN_SCORES
from adapop.remark import Remark

FITS = {
    "a list": lambda cell: isinstance(parsed(cell), list),
    "a letter": lambda cell: cell.strip() in list("ABCD"),
}
MARKS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
QUESTION_MARK, CHARACTERS_SEARCHED = re.compile("[?？؟]"), 1_000  # from the start
SCORE = re.compile(r"(\d[\d., ]*(e\d+)?%?)?", re.IGNORECASE)
# the first line by which Excel names the separator
SEPARATOR = re.compile(r"\s*\"?sep=([^\w\s\"]|\t)\"?[;,]*\r?\n", re.IGNORECASE)


@dataclass
class Layout:
    """Properties of a file, found while its rows are read."""

    header: list[str] = field(default_factory=list)
    """The names of the columns as a CSV or Parquet has them; empty for JSON."""
    mark: str = ""
    """The separator of a CSV's cells."""
    notes: list[Remark] = field(default_factory=list)
    """What was not read literally."""


def _reader(text: str, mark: str, **options) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), delimiter=mark, **options)


def cells_of(path: Path, text: str, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """(number, cells) of each row, the header first; a file without a header is given one.

    layout: gets the separator and the notes. Raises DataError: there is no header, and not every
    row is a fact. csv.Error: the text is no table."""
    if named := SEPARATOR.match(text[:99]):
        marks, text = (named[1],), text[named.end() :]
    else:
        usual = delimiter(text, "\t" if path.suffix.lower() == ".tsv" else ",")
        marks = tuple(dict.fromkeys((usual, *MARKS)))
    tries = ((mark, columns) for mark in marks if (columns := _columns_of_questions(text, mark)))
    layout.mark, names = next(tries, (marks[0], []))
    options = _options(text, layout)
    if names:
        layout.notes.append(Remark("no_header_questions", {"columns": ", ".join(names)}))
    else:
        rows = _reader(text, layout.mark, **options)
        first = next((cells for cells in rows if any(cell.strip() for cell in cells)), [])
        names = _headerless(path, first, _reader(text, layout.mark, **options), layout)
    if names:
        yield 0, names
    yield from enumerate(_reader(text, layout.mark, **options), start=1)


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
    for names, kind in HEADERLESS.items():
        fits = FITS[kind]
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


def delimiter(text: str, usual: str) -> str:
    """The usual delimiter; if that gives a single column, the most frequent mark of the header.
    Excel writes semicolons in much of Europe, and a table of commas may be called .tsv."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=usual)
    header = next((cells for cells in rows if any(cell.strip() for cell in cells)), [])
    if len(header) != 1:
        return usual
    return max(MARKS, key=header[0].count)
