"""A user's file becomes facts: CSV, JSON, JSONL or Parquet, in UTF-8, under the column names people use.

`read_facts` refuses a file that is no table of facts (`DataError`) and otherwise keeps every good row; each bad one
is a `Problem` with row, column, value and fix. User text stays text: it is never a path, a URL or a formula here.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path

from adapop.errors import DataError
from adapop.facts import GROUPS, Fact, FactSet, Problem

MAX_BYTES = 64 * 1024 * 1024
MAX_ROWS = 20_000
MAX_CELL = 2_000
MAX_COLUMNS = 100
SHOWN, COLUMNS_SHOWN = 60, 12
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
KINDS = {list: "a list", dict: "an object", bytes: "binary"}
LISTS = ("paraphrases", "alternates")
NOT_TEXT = re.compile("[\0\ud800-\udfff]")
GROUP_PREFIXES = {"forget": "forget", "retain": "retain", "neighbor": "retain", "holdout": "holdout"}
FORMATS = (".csv", ".json", ".jsonl", ".parquet")


def read_facts(path: Path, name: str = "") -> FactSet:
    """The facts of a file, grouped by its `group` column (all are forget facts without one).

    Raises:
        DataError: the file is empty, too large, not UTF-8, of an unknown kind, lacks a question or an answer
            column, or has no usable row. `problems` then says what was wrong with each row.
    """
    read = list(islice(_rows(path), MAX_ROWS + 1))
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


def _rows(path: Path) -> Iterator[tuple[int, dict] | Problem]:
    """The file's rows with their numbers; in place of a row that cannot be read as one, the problem with it."""
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"{path.name} is not one of {', '.join(FORMATS)}.", "Save it as CSV in UTF-8.")
    if (size := path.stat().st_size) > MAX_BYTES:
        raise DataError(f"{path.name} has {size / 1e6:.0f} MB; at most {MAX_BYTES / 1e6:.0f} are read.", "Split it.")
    if path.suffix.lower() == ".parquet":
        yield from _parquet_rows(path)
        return
    text = _text(path)
    reader = {".csv": _csv_rows, ".json": _json_rows, ".jsonl": _jsonl_rows}[path.suffix.lower()]
    yield from reader(path, text)


def _text(path: Path) -> str:
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path.name}, line {line}, is not UTF-8 (byte {content[error.start]:#04x}).",
            "Save the file again as 'CSV UTF-8' or with encoding UTF-8.",
        ) from None
    if "\0" in text:
        raise DataError(
            f"{path.name} contains NUL characters, so it is not a text table.", "Export it as CSV in UTF-8."
        )
    return text


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, dict] | Problem]:
    csv.field_size_limit(MAX_BYTES)
    header: list[str] = []
    number = 0
    try:
        # strict: without it an open quote swallows the rows that follow
        for number, cells in enumerate(csv.reader(io.StringIO(text, newline=""), strict=True), start=1):
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = cells
                _check_header(path, header)
            elif any(beyond := cells[len(header) :]):
                column, fix = f"column {len(header) + 1}", "Put cells that contain commas in quotes."
                yield Problem(number, column, _shown(",".join(beyond)), "has no name in the header", fix)
            else:
                yield number, dict(zip_longest(header, cells[: len(header)], fillvalue=""))
    except csv.Error as error:
        raise DataError(
            f"{path.name}, row {number + 1}, is not CSV: {error}.",
            "Close every quote, or export the table again as CSV.",
        ) from None


def _check_header(path: Path, header: list[str]) -> None:
    if len(header) > MAX_COLUMNS:
        message = f"{path.name} has {len(header):,} columns; at most {MAX_COLUMNS} are read."
        raise DataError(message, "Delete those that describe no fact.")
    names = [name.strip().lower() for name in header]
    for name in names:
        if names.count(name) > 1 and any(name in known for known in COLUMNS.values()):
            raise DataError(f"{path.name} has two columns called {name!r}.", "Rename or delete one of them.")


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict]]:
    rows = _json(text) if text.strip() else []
    if isinstance(rows, Problem):
        where = f", line {rows.row}," if rows.row else ""
        raise DataError(f"{path.name}{where} {rows.message}.", rows.fix)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path.name} is not a list of objects.", 'Write [{"question": ..., "answer": ...}, ...].')
    yield from enumerate(rows, start=1)


def _jsonl_rows(path: Path, text: str) -> Iterator[tuple[int, dict] | Problem]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        row = _json(line)
        if isinstance(row, Problem):
            yield replace(row, row=number, value=_shown(line))
        elif isinstance(row, dict):
            yield number, row
        else:
            yield Problem(number, "", _shown(line), "is not an object", 'Write {"question": ..., "answer": ...}.')


def _json(text: str) -> object:
    """The value of a JSON text, or the `Problem` with the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        return Problem(error.lineno, "", "", f"is not JSON: {error.msg}", "Mend that line.")
    except RecursionError:
        return Problem(0, "", "", "is nested too deeply", "Use flat objects.")
    except ValueError:  # what Python says of an integer of more than 4,300 digits
        return Problem(0, "", "", "has a number of too many digits", "Shorten the number.")


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict]]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            _check_header(path, file.schema_arrow.names)
            yield from enumerate((row for batch in file.iter_batches(1024) for row in batch.to_pylist()), start=1)
    except (pyarrow.ArrowException, OSError, ValueError):
        raise DataError(f"{path.name} is not a readable Parquet file.", "Export it again.") from None


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
            found = ", ".join(repr(str(name)[:SHOWN]) for name in list(present.values())[:COLUMNS_SHOWN])
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
        return _shown(text), f"has {len(text):,} characters; at most {MAX_CELL:,} are read", "Shorten the cell."
    if NOT_TEXT.search(text):
        shown = _shown(NOT_TEXT.sub("\ufffd", text))
        return shown, "has a NUL or half a character (a lone surrogate)", "Type the text again."
    return None


def _score(number: int, column: str, cell: object) -> float | None | Problem:
    text = "" if cell is None else str(cell).strip()  # not _string: NaN is a wrong score, not a missing one
    if not text:
        return None
    try:
        score = float(text)
    except ValueError:
        return Problem(
            number, column, _shown(text), "is not a number", "Use digits and a decimal point, or leave it empty."
        )
    if not math.isfinite(score) or score < 0:
        return Problem(
            number, column, _shown(text), "is not a score", "Scores are finite and at least 0; leave unknown empty."
        )
    return score


def _group(number: int, column: str, cell: object) -> str | Problem:
    text = _string(cell).lower()
    if not text:
        return "forget"
    for prefix, group in GROUP_PREFIXES.items():
        if text.startswith(prefix):
            return group
    return Problem(number, column, _shown(text), "is no group", "Use forget, retain or holdout.")


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


def _shown(cell: object) -> str:
    text = _string(cell)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
