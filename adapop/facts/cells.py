"""Reads a cell as text or as a list of texts, and notes each reading that is not literal."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from html import unescape

from adapop.errors import truncated
from adapop.facts.lists import from_json, parsed
from adapop.facts.text import UNKNOWN

MAX_CELL = 2_000  # characters
KINDS = {list: "a list", dict: "an object or binary", bool: "a truth value"}
# how a cell can be read other than literally: the kinds of notes, in their order
READINGS = (
    "list_as_answer", "several_answers", "answer_points", "list_as_text", "list_by_semicolons",
    "empty_items", "score_unknown", "score_thousands", "score_commas_unclear",
    "score_decimal_comma", "score_percent", "score_decimals", "cell_unknown", "question_unknown",
    "answer_unknown", "answer_truth_value", "answer_in_brackets", "type_not_read", "wrong_answers",
    "wrong_answers_alone", "right_and_wrong", "digits_lost",
)  # fmt: skip
NOT_TEXT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Reading:
    """How the rows of a file are read, and which were not read literally."""

    counted_from: int | None = None
    """How answers point to choices, as `answers.counted_from` returns it."""
    points: str = ""
    """"thousands": 25.692 is 25,692; "": a decimal; "decimals": a decimal, with a note that says
    so."""
    percent: bool = False
    """Whether all scores are percentages."""
    comma: bool = False
    """Whether a comma is the decimal mark of scores."""
    semicolons: bool = False
    """Whether semicolons separate cells, as in files where a comma is the decimal mark."""
    rows: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """One of `READINGS` -> numbers of the rows."""


class Unusable(Exception):
    """A row cannot be read as a fact. Arguments: field, value to show, message, fix."""


def fault(cell: object) -> tuple[str, str, str] | None:
    """Why a cell is not usable as text: (value to show, message, fix); None if it is usable."""
    fits = type(cell) is str and len(cell) <= MAX_CELL
    if fits and (cell.isprintable() or not NOT_TEXT.search(cell)):
        return None  # a shortcut: most cells are usable, and a file may have a million
    if kind := KINDS.get(type(cell)):
        return "", f"is {kind}, not text", "Write plain text."
    text = string(cell)
    if len(text) > MAX_CELL:
        message = f"has {len(text):,} characters; at most {MAX_CELL:,} are read"
        return truncated(text), message, "Shorten the cell."
    if NOT_TEXT.search(text):
        message = "has a NUL or half a character (a lone surrogate)"
        return truncated(NOT_TEXT.sub("\ufffd", text)), message, "Type the text again."
    return None


def items_of(cell: object, number: int, reading: Reading, names: bool = False) -> list:
    """The items of a list cell: a real list, a list written as text, or texts joined by `|`.
    reading: notes the row's number if the cell is not literal. names: semicolons separate items
    too, unless the text has | or an HTML entity such as &amp;."""
    if isinstance(cell, str):
        text = cell.strip()
        if text in UNKNOWN:
            reading.rows["cell_unknown"].append(number)
            return []
        items = parsed(text)
        if isinstance(items, list):
            reading.rows["list_as_text"] += [number] * (from_json(text) is None)
        else:
            if names and ";" in text and "|" not in text and unescape(text) == text:  # AT&amp;T
                reading.rows["list_by_semicolons"].append(number)
                return text.split(";")
            return text.split("|")
        cell = items
    elif not isinstance(cell, list):
        return [cell]
    reading.rows["empty_items"] += [number] * any(map(is_empty, cell))
    return cell


def known(number: int, cell: object, reading: Reading) -> str:
    """A cell as text, "" if the cell is a mark for "unknown"."""
    text = string(cell)
    if text in UNKNOWN:
        reading.rows["cell_unknown"].append(number)
        return ""
    return text


def is_empty(cell: object) -> bool:
    return cell is None or cell != cell  # NaN, which tables write for an empty cell


def string(cell: object) -> str:
    """A cell as text; "" for None and for NaN, which tables write for an empty cell."""
    if isinstance(cell, str):  # a shortcut: most cells are text, and a file may have a million
        return cell.strip()
    return "" if is_empty(cell) else str(cell).strip()
