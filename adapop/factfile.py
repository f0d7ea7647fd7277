"""A user's table becomes facts, under the column names people use.

`read_facts` refuses a file that is no table of facts (`DataError`) and otherwise keeps every good row; each bad one
is a `Problem` with row, column, value and fix. User text stays text: it is never a path, a URL or a formula here.
"""

from __future__ import annotations

import json
import math
import re
from itertools import islice
from pathlib import Path

from adapop.errors import DataError
from adapop.facts import GROUPS, Fact, FactSet, Problem
from adapop.tables import rows_of, shown

MAX_ROWS = 20_000
MAX_CELL = 2_000
COLUMNS_SHOWN = 12
COLUMNS = {
    "id": ("id", "fact_id", "uid"),
    "question": ("question", "query", "prompt"),
    "answer": ("answer", "label", "object", "objectlabel"),
    "subject": ("subject", "subjectlabel"),
    "relation": ("relation", "property"),
    "object": ("object", "objectlabel"),
    "score": ("score", "popularity", "pop_sum"),
    "group": ("group", "split"),
    "paraphrases": ("paraphrases", "paraphrase", "rewordings"),
    "alternates": ("alternates", "alternate"),
}
NAMES = frozenset(name for names in COLUMNS.values() for name in names)
KINDS = {list: "a list", dict: "an object", bytes: "binary"}
LISTS = ("paraphrases", "alternates")
NOT_TEXT = re.compile("[\0\ud800-\udfff]")
GROUP_PREFIXES = {"forget": "forget", "retain": "retain", "neighbor": "retain", "holdout": "holdout"}


def read_facts(path: Path, name: str = "") -> FactSet:
    """The facts of a file, grouped by its `group` column (all are forget facts without one).

    Raises:
        DataError: the file is empty, too large, not UTF-8, of an unknown kind, lacks a question or an answer
            column, or has no usable row. `problems` then says what was wrong with each row.
    """
    read = list(islice(rows_of(path, NAMES), MAX_ROWS + 1))
    if not read:
        raise DataError(f"{path.name} has no rows.", "Add a header and at least one fact: question,answer,score.")
    if len(read) > MAX_ROWS:
        raise DataError(f"{path.name} has more than {MAX_ROWS:,} rows, the most that are read.", "Split the file.")
    problems = [row for row in read if isinstance(row, Problem)]
    rows = [row for row in read if not isinstance(row, Problem)]
    columns = _columns(path, rows) if rows else {}
    groups: dict[str, list[Fact]] = {group: [] for group in GROUPS}
    seen: dict[str, int] = {}
    for number, row in rows:
        result = _fact(number, row, columns, seen)
        if isinstance(result, Problem):
            problems.append(result)
        else:
            group, fact = result
            groups[group].append(fact)
            seen[fact.id] = number
    problems.sort(key=lambda problem: problem.row)
    if not groups["forget"]:
        raise DataError(
            f"{path.name} has no usable fact to forget.",
            "Mend the rows listed below." if problems else "Give some rows the group 'forget'.",
            tuple(problems),
        )
    return FactSet(name or path.stem, **{k: tuple(v) for k, v in groups.items()}, problems=tuple(problems))


def _columns(path: Path, rows: list[tuple[int, dict]]) -> dict[str, str]:
    """Our field -> the file's column name."""
    present = {str(name).strip().lower(): name for _, row in rows for name in row}
    columns = {
        field: next(present[name] for name in names if name in present)
        for field, names in COLUMNS.items()
        if any(name in present for name in names)
    }
    for field in ("question", "answer"):
        if field not in columns:
            found = ", ".join(repr(shown(name)) for name in list(present.values())[:COLUMNS_SHOWN])
            found += ", …" if len(present) > COLUMNS_SHOWN else ""
            raise DataError(
                f"{path.name} has no {field} column (its columns: {found or 'none'}).",
                f"Name one of them {' or '.join(map(repr, COLUMNS[field]))}.",
            )
    return columns


def _fact(number: int, row: dict, columns: dict[str, str], seen: dict[str, int]) -> tuple[str, Fact] | Problem:
    cells = {field: row.get(column) for field, column in columns.items()}
    for field, cell in cells.items():
        for text in _items(cell) if field in LISTS else [cell]:
            if fault := _fault(text):
                return Problem(number, columns[field], *fault)
    for field in ("question", "answer"):
        if not _string(cells[field]):
            return Problem(number, columns[field], "", "is empty", "Fill the cell or delete the row.")
    id_ = _string(cells.get("id")) or f"row-{number}"
    if id_ in seen:
        return Problem(
            number, columns.get("id", "id"), id_, f"is already the id of row {seen[id_]}", "Make ids unique."
        )
    score = _score(number, columns.get("score", ""), cells.get("score"))
    if isinstance(score, Problem):
        return score
    group = _group(number, columns.get("group", ""), cells.get("group"))
    if isinstance(group, Problem):
        return group
    return group, Fact(
        id=id_,
        question=_string(cells["question"]),
        answer=_string(cells["answer"]),
        **{field: _string(cells.get(field)) for field in ("subject", "relation", "object")},
        score=score,
        score_source="" if score is None else f"column {columns['score']}",
        **{field: tuple(filter(None, map(_string, _items(cells.get(field))))) for field in LISTS},
    )


def _fault(cell: object) -> tuple[str, str, str] | None:
    """What keeps a cell from being text: the value to show, a message and a fix."""
    if isinstance(cell, (list, dict, bytes)):
        return "", f"is {KINDS[type(cell)]}, not text", "Write plain text."
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
    text = "" if cell is None else str(cell).strip()  # not _string: NaN is a wrong score, not a missing one
    if not text:
        return None
    try:
        score = float(text)
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
    if not text:
        return "forget"
    for prefix, group in GROUP_PREFIXES.items():
        if text.startswith(prefix):
            return group
    return Problem(number, column, shown(text), "is no group", "Use forget, retain or holdout.")


def _items(cell: object) -> list:
    """The items of a list cell: a real list, a JSON list, or texts joined by `|`."""
    if isinstance(cell, str):
        try:
            cell = json.loads(cell) if cell.lstrip().startswith("[") else cell.split("|")
        except (ValueError, RecursionError):
            cell = cell.split("|")
    return cell if isinstance(cell, list) else [cell]


def _string(cell: object) -> str:
    """A cell as text; NaN, which tables use for an empty cell, is empty."""
    empty = cell is None or (isinstance(cell, float) and math.isnan(cell))
    return "" if empty else str(cell).strip()
