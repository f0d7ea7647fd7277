"""The rows of a JSON text: a list, one object per line, objects one after another, a table by
columns, or an object around one of these. Rows in memory are read as if they were saved as JSON."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from adapop.errors import DataError, truncated
from adapop.facts.fact import Problem
from adapop.facts.forms import group_of, is_row
from adapop.remark import Remark

MAX_OBJECTS = 500_000
BY_LINE = (".jsonl", ".ndjson")
LIST = 'Write [{"question": ..., "answer": ...}, ...].'
SPLITS = re.compile(r"train|test|valid|val|dev|eval|all|full|default|main", re.IGNORECASE)
BETWEEN = re.compile(r"[\s,\x1e]*")  # what stands between objects one after another
Rows = Iterator[tuple[int, dict] | Problem]


def rows_of_json(path: Path, text: str, notes: list[Remark]) -> Rows:
    """The numbered rows; in place of a bad line, its problem. notes: gets notes on what surrounds
    the rows. Raises DataError: no table."""
    objects, by_line = _Objects(), path.suffix.lower() in BY_LINE
    lines = (line.strip() for line in text.split("\n") if line.strip())
    first, second = next(lines, ""), next(lines, "")
    del lines
    if not first:
        return iter(())
    value = objects.value(first)
    is_object = isinstance(value, dict)
    holds_rows = is_object and (_around(value) or _by_column(value) or _inner(value))
    if is_object and (second or (by_line and not holds_rows)):
        return rows_of_lines(text.split("\n"))
    if second:
        value = _Objects().value(text)
    if isinstance(value, Problem) and text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        listed = _one_after_another(text)
        value = value if listed is None else listed
    if by_line and isinstance(value, dict) and is_row(value) and not _by_column(value):
        return iter([(1, value)])
    if by_line and not (isinstance(value, dict) or _is_table(value) or _is_grid(value)):
        return rows_of_lines(text.split("\n"))
    return _rows_of_value(path, value, notes)


def rows_in_memory(source: Any, name: str, most: int, notes: list[Remark]) -> Rows:
    """The numbered rows, from 1, of a DataFrame (pandas, polars), a `datasets.Dataset`, a table of
    pyarrow, an iterable of dicts, or a dict of columns or of groups of rows. name: what messages
    call it. most: rows that are read of each part. notes: as in `rows_of_json`. Raises DataError:
    it holds no rows."""
    if isinstance(source, Mapping):
        value = {key: _listed(part, name, most) for key, part in source.items()}
    else:
        value = _listed(source, name, most)
    try:
        text = json.dumps(value, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:  # a tuple as a key, a list in itself
        raise DataError(
            f"The {name} holds a value that no table can hold: {error}.", LIST
        ) from None
    return _rows_of_value(Path(name), _Objects().value(text), notes)


def _listed(part: Any, name: str, most: int) -> object:
    """Rows or cells as a list; a value that is no list unchanged. Raises DataError: it is none."""
    if part is None or isinstance(part, (str, bytes, Mapping, int, float)):
        return part
    if hasattr(part, "convert_dtypes"):  # pandas
        return _records(part.head(most))
    for to_rows in ("to_dicts", "to_pylist"):  # polars, pyarrow
        if hasattr(part, to_rows):
            return getattr(part.head(most) if hasattr(part, "head") else part[:most], to_rows)()
    try:
        return list(islice(part, most))
    except TypeError:
        raise DataError(f"The {name} is not a list of objects.", LIST) from None


def _records(frame: Any) -> list:
    """The rows of a DataFrame, or the cells of a Series, with None in place of an empty cell."""
    if frame.ndim == 1:
        return frame.astype(object).where(frame.notna(), None).tolist()
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()  # a named index is a column, too
    for column in frame.select_dtypes("float"):
        # pandas makes whole numbers floats where a cell is empty: 1999 would be read as 1999.0
        if frame[column].isna().any():
            frame = frame.assign(**{column: frame[column].convert_dtypes()})
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def _plain(value: Any) -> object:
    """A cell that JSON lacks, as a file of it would have it."""
    if hasattr(value, "tolist"):  # numpy
        return value.tolist()
    return {"bytes": len(value)} if isinstance(value, bytes) else str(value)


class _Objects:
    """Builds the objects of one JSON file. Refuses too many, because nested objects take much
    memory for little text, and repeated names, because a value would be lost."""

    def __init__(self) -> None:
        self.count = 0
        self.decoder = json.JSONDecoder(
            parse_int=str,
            parse_float=str,
            parse_constant=lambda name: float("nan") if name == "NaN" else name,  # others as text
            object_pairs_hook=self._object,
        )

    def _object(self, pairs: list[tuple[str, object]]) -> dict:
        self.count += 1
        if self.count > MAX_OBJECTS:
            raise ValueError(f"has more than {MAX_OBJECTS:,} objects")
        built = dict(pairs)
        if len(built) < len(pairs):
            raise ValueError("has two values under one name in one object")
        return built

    def value(self, text: str, start: int | None = None) -> object:
        """The value of a JSON text with its numbers as text, or a `Problem`. start: where to read a
        single value; the result is then (value, place where it ends)."""
        try:
            if start is None:
                return self.decoder.decode(text)
            return self.decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            return Problem(error.lineno, "", "", f"is not JSON: {error.msg}", "Correct that line.")
        except RecursionError:
            return Problem(0, "", "", "is nested too deeply", "Use flat objects.")
        except ValueError as error:  # raised by `_object`
            return Problem(0, "", "", str(error), "Use flat objects, with each name once.")


def rows_of_lines(lines: Iterable[str]) -> Rows:
    """The rows of JSON lines, numbered by line."""
    objects = _Objects()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row = objects.value(line.strip())  # strips \x1e too, with which jq --seq begins a line
        if isinstance(row, Problem):
            yield replace(row, row=number, value=truncated(line))
        elif isinstance(row, dict):
            yield number, row
        else:
            fix = 'Write {"question": ..., "answer": ...}.'
            yield Problem(number, "", truncated(line), "is not an object", fix)


def _one_after_another(text: str) -> list[dict | list] | None:
    """Objects, or rows of a grid, one after another on any lines; None for other text."""
    objects, listed, place = _Objects(), [], BETWEEN.match(text).end()
    while place < len(text):
        read = objects.value(text, place)
        if isinstance(read, Problem):
            return None
        listed.append(read[0])
        place = BETWEEN.match(text, read[1]).end()
    return listed if len(listed) > 1 and (_is_table(listed) or _is_grid(listed)) else None


def _rows_of_value(path: Path, value: object, notes: list[Remark]) -> Rows:
    if isinstance(value, Problem):
        where = f", line {value.row}," if value.row else ""
        raise DataError(f"{path.name}{where} {value.message}.", value.fix)
    if isinstance(value, dict):
        value = _unwrapped(path, value, notes)
    if _is_grid(value):
        names, *rows = value
        notes.append(Remark("rows_are_lists", {"count": len(rows)}))
        value = [dict(zip(names, cells)) for cells in rows]
    if not _is_table(value):
        raise DataError(f"{path.name} is not a list of objects.", LIST)
    return enumerate(_flat(value), start=1)


def _unwrapped(path: Path, value: Mapping, notes: list[Remark]) -> object:
    """The rows inside an object: under a name, groups, splits, ids or columns. Raises DataError."""
    names = _around(value)
    groups = [group_of(name) for name in names] if names != ["examples"] else [None]
    if len(names) > 1 and not all(groups) and not all(map(SPLITS.match, names)):
        places = ", ".join(repr(truncated(name)) for name in names)
        message = f"{path.name} is not a list of objects, but holds several: {places}."
        raise DataError(message, "Keep one of them, or name them forget and retain.")
    if names:
        counts = ", ".join(f"{truncated(name)!r} ({len(value[name]):,})" for name in names)
        notes.append(Remark("rows_found_under", {"names": counts}))
        rows = ((row, group) for name, group in zip(names, groups) for row in _flat(value[name]))
        grouped = (({"group": None} | row, group) for row, group in rows)
        return [row | {"group": row["group"] or group} for row, group in grouped]
    if columns := _by_column(value):
        return columns
    if is_row(value):
        return [value]
    if inner := _inner(value):
        return _unwrapped(path, inner, notes)
    by_id = len(value) > 1 and all(isinstance(part, dict) for part in value.values())
    return [{"id": name, **part} for name, part in value.items()] if by_id else value


def _around(value: Mapping) -> list[str]:
    """The names under which an object holds lists of rows; none if the object is a row. Rows with
    questions come first: the Hub's viewer lists the features beside them."""
    names = [name for name, part in value.items() if part and _is_table(part)]
    asking = [name for name in names if is_row(next(_flat(value[name]), ()))]
    return [] if is_row(value) else asking or names


def _inner(value: Mapping) -> Mapping:
    """The one object inside another that holds lists of rows; empty if the outer one is a row."""
    inner = [part for part in value.values() if isinstance(part, dict) and _around(part)]
    return inner[0] if len(inner) == 1 and not is_row(value) else {}


def _by_column(value: Mapping) -> list[dict]:
    """The rows of a table written column by column, as by pandas; empty for other objects."""
    names, rows = value.get("columns"), value.get("data")
    if isinstance(names, list) and isinstance(rows, list):
        even = all(isinstance(cells, list) and len(cells) == len(names) for cells in rows)
        even = even and all(isinstance(name, str) for name in names)
        return [dict(zip(names, cells)) for cells in rows] if even else []
    parts = list(value.values())
    if parts and all(isinstance(part, dict) for part in parts):
        same = all(part.keys() == parts[0].keys() for part in parts)
        by_number = same and (is_row(value) or all(map(str.isdecimal, parts[0])))
        parts = [[part[key] for key in parts[0]] for part in parts] if by_number else []
    whole = len(parts) > 1 and all(isinstance(part, list) for part in parts)
    whole = whole and not any(map(_is_chat, parts))
    even = whole and len(set(map(len, parts))) == 1
    return [dict(zip(value, cells)) for cells in zip(*parts)] if even else []


def _is_chat(items: list) -> bool:
    """Whether a list holds the turns of one conversation, not a column's cells."""
    return any(isinstance(item, dict) and {"role", "from"} & item.keys() for item in items)


def _is_table(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _is_grid(value: object) -> bool:
    """Whether a value is a list of equally long lists, the first holding column names."""
    if not (isinstance(value, list) and value and all(isinstance(row, list) for row in value)):
        return False
    names = value[0]
    even = {*map(type, names)} == {str} and {len({*names})} == {*map(len, value)}
    return even and is_row(names)


def _flat(rows: Iterable[Mapping]) -> Iterator[Mapping]:
    """The rows, taken out of `row` (the Hub's viewer) and `paragraphs` (SQuAD)."""
    for row in rows:
        if isinstance(row.get("row"), dict):
            yield row["row"]
        elif isinstance(row.get("paragraphs"), list) and not is_row(row):
            parts = [part for part in row["paragraphs"] if isinstance(part, dict)]
            for part in [part for part in parts if isinstance(part.get("qas"), list)]:
                about = {name: cell for name, cell in part.items() if name != "qas"}
                yield from (about | one for one in part["qas"] if isinstance(one, dict))
        else:
            yield row
