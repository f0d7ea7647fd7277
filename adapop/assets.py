"""JSON and CSV checked against a dataclass: data files under `assets/`, and files of runs."""

import csv
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from adapop.errors import DataError
from adapop.paths import ASSETS

T = TypeVar("T")
Extra = Literal["forbid", "ignore"]  # what to do with fields that a kind lacks
Count = Annotated[int, Field(ge=0, le=10**9)]
Share = Annotated[float, Field(ge=0, le=1)]


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text with finite numbers. Raises ValueError: it is not JSON, is nested
    too deeply, or has a number that is not finite or an integer of more than 19 characters."""
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_finite, parse_int=_whole)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def as_kind(content: object, kind: type[T], extra: Extra = "forbid") -> T:
    """Parsed JSON as `kind`: a dataclass, or a list or dict of them. Every field without a default
    must be there, with its type; others are refused, unless extra is "ignore". Raises ValueError:
    it does not fit; the message names the first place and why."""
    try:
        adapter: TypeAdapter[T] = type_adapter(kind)  # type: ignore[arg-type]
        return adapter.validate_json(json.dumps(content), strict=True, extra=extra)
    except ValidationError as error:
        raise ValueError(_reason(error)) from None


@cache
def type_adapter(kind: Any) -> TypeAdapter:
    """pydantic's validator of a type, built once."""
    return TypeAdapter(kind)


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:20]} is not finite")
    return value


def _whole(text: str) -> int:
    if len(text) > 19:  # with its sign; a longer one would overflow in computations
        raise ValueError(f"{text[:20]}… is too large a number")
    return int(text)


def read_json(name: str, kind: type[T]) -> T:
    """The content of `assets/<name>` as `kind`, which it must fit as in `as_kind`. Raises
    DataError: it does not, repeats a key, is not JSON, or is missing."""
    with _reading(name):
        content = (ASSETS / name).read_bytes()
        json.loads(content, object_pairs_hook=_without_repeats)
        adapter: TypeAdapter[T] = type_adapter(kind)  # type: ignore[arg-type]
        return adapter.validate_json(content, strict=True, extra="forbid")


def read_csv(name: str, row: type[T]) -> list[T]:
    """The rows of `assets/<name>`, each as the dataclass `row`. An empty cell stands for the
    field's default. Raises DataError: the file is missing, or a line does not fit `row`."""
    with _reading(name), open(ASSETS / name, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, restkey="beyond the header")
        cells = {
            f"line {reader.line_num}": {key: cell for key, cell in line.items() if cell}
            for line in reader
        }
        adapter: TypeAdapter[dict[str, T]] = type_adapter(dict[str, row])  # type: ignore[valid-type]
        return list(adapter.validate_python(cells, extra="forbid").values())


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object as a dict. Raises ValueError: a key is repeated; JSON allows that, but all
    values but the last would be lost."""
    names = [name for name, _ in pairs]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"repeated key: {', '.join(sorted(repeated))}")
    return dict(pairs)


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """A context in which `assets/<name>` is read. Raises DataError: it cannot be used."""
    try:
        yield
    except (OSError, ValueError, csv.Error) as error:
        wrong = f"assets/{name} cannot be used ({_reason(error)})."
        fix = "Correct the file, or restore it from the repository."
        raise DataError(wrong, fix) from None


def _reason(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return getattr(error, "strerror", None) or str(error)
    first = error.errors()[0]
    place = " > ".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]
