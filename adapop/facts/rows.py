"""Table rows as facts, or as the problem with the row. User text stays text: never a path, a URL or a formula."""

import json
import math
import re
from collections.abc import Mapping

from adapop.errors import shown
from adapop.facts.fact import Fact, Problem

MAX_CELL, MAX_ITEMS = 2_000, 100
KINDS = {list: "a list", dict: "an object or binary", bool: "a truth value"}
TEXTS, LISTS = ("subject", "relation", "object"), ("paraphrases", "alternates")
NOT_TEXT = re.compile("[\0\ud800-\udfff]")
# 3,766 or 2 131 or 1'234,567.5: thousands apart, by one mark throughout, as spreadsheets write them
GROUPED = re.compile(r"\d{1,3}(?:([, '’\u00a0\u2009\u202f])\d{3})(?:\1\d{3})*(?:\.\d+)?", re.ASCII)
GROUP_PREFIXES = {
    "forget_level3": "attacks",  # RWKU's
    "forget": "forget",
    "retain": "retain",
    "neighbor": "retain",
    "holdout": "holdout",
    "neighbours": "neighbours",
    "utility": "utility",
}
# what RWKU calls the attacks of its level 3, in a column called type; "cross lingual" also as "cross lingual (French)"
ATTACKS = (
    "prefix injection", "affirmative suffix", "role play", "multiple choice", "reverse query", "synonym manipulation",
    "context hint", "incontext learning", "cross lingual",
)  # fmt: skip


def fact_of(number: int, row: Mapping, columns: Mapping[str, str]) -> tuple[str, Fact] | Problem:
    """The row's group and fact, or its problem. The group is "" where the row names none.

    number: the row number for problems. columns: our field -> the row's key.
    """
    cells = {field: row.get(column) for field, column in columns.items()}
    for field, cell in cells.items():
        texts = items_of(cell) if field in LISTS else [cell]
        if len(texts) > MAX_ITEMS:
            message = f"has {len(texts):,} items; at most {MAX_ITEMS} are read"
            return Problem(number, columns[field], "", message, "Shorten the list.")
        for text in texts:
            if fault := _fault(text):
                return Problem(number, columns[field], *fault)
    for field in ("question", "answer"):
        if not _string(cells[field]):
            return Problem(number, columns[field], "", "is empty", "Fill the cell or delete the row.")
    score = _score(number, columns.get("score", ""), cells.get("score"))
    if isinstance(score, Problem):
        return score
    group = _group(number, columns.get("group", ""), cells.get("group"))
    if isinstance(group, Problem):
        return group
    kind = _string(row.get("type"))
    if group in ("", "forget") and kind.lower().partition("(")[0].strip() in ATTACKS:
        group = "attacks"
    if group == "attacks":  # its relation is the kind of attack
        cells["relation"] = shown(kind) or cells.get("relation")
    source = "" if score is None else _string(cells.get("score_source")) or f"column {columns['score']}"
    return group, Fact(
        id=id_of(number, row, columns),
        question=_string(cells["question"]),
        answer=_string(cells["answer"]),
        **{field: _string(cells.get(field)) for field in TEXTS},
        score=score,
        score_source=source,
        **{field: tuple(filter(None, map(_string, items_of(cells.get(field))))) for field in LISTS},
    )


def id_of(number: int, row: Mapping, columns: Mapping[str, str]) -> str:
    """The row's own id, or its number as one. columns: our field -> the row's key."""
    return _string(row.get(columns.get("id"))) or f"row-{number}"


def _fault(cell: object) -> tuple[str, str, str] | None:
    """Why a cell is not usable as text: (value to show, message, fix); None if it is usable."""
    if kind := KINDS.get(type(cell)):
        return "", f"is {kind}, not text", "Write plain text."
    text = _string(cell)
    if len(text) > MAX_CELL:
        return shown(text), f"has {len(text):,} characters; at most {MAX_CELL:,} are read", "Shorten the cell."
    if NOT_TEXT.search(text):
        return (
            shown(NOT_TEXT.sub("\ufffd", text)),
            "has a NUL or half a character (a lone surrogate)",
            "Type the text again.",
        )
    return None


def _score(number: int, column: str, cell: object) -> float | Problem | None:
    text = "" if cell is None else str(cell).strip()  # not `_string`: as a score NaN is wrong, not missing
    if not text:
        return None
    if GROUPED.fullmatch(text):
        text = re.sub(r"[^\d.]", "", text)
    try:  # float() also accepts 2020_21 and digits of other scripts, which other programs do not
        score = float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        return Problem(
            number, column, shown(text), "is not a number", "Use digits and a decimal point, or leave it empty."
        )
    if not math.isfinite(score) or score < 0:
        return Problem(
            number, column, shown(text), "is not a score", "Scores are finite and at least 0; leave unknown empty."
        )
    return score


def _group(number: int, column: str, cell: object) -> str | Problem:
    text = _string(cell).lower()
    for prefix, group in GROUP_PREFIXES.items():
        if text.startswith(prefix):
            return group
    return Problem(number, column, shown(text), "is no group", "Use forget, retain or holdout.") if text else ""


def items_of(cell: object) -> list:
    """The items of a list cell: a real list, a JSON list, or texts joined by `|`."""
    if isinstance(cell, str):
        try:
            cell = json.loads(cell) if cell.lstrip().startswith("[") else cell.split("|")
        except (ValueError, RecursionError):
            cell = _python_list(cell) or cell.split("|")
    return cell if isinstance(cell, list) else [cell]


def _python_list(text: str) -> list | None:
    """The items of ['one', "two"], as pandas writes a list to CSV; None of anything else."""
    quoted = r"'[^'\\]*'|\"[^\"\\]*\""
    whole = re.fullmatch(rf"\s*\[\s*(?:{quoted})(?:\s*,\s*(?:{quoted}))*\s*\]\s*", text)
    return [item[1:-1] for item in re.findall(quoted, text)] if whole else None


def _string(cell: object) -> str:
    """A cell as text; "" for None and for NaN, which tables write for an empty cell."""
    if isinstance(cell, str):  # most are, and a file may have a million
        return cell.strip()
    empty = cell is None or (isinstance(cell, float) and math.isnan(cell))
    return "" if empty else str(cell).strip()
