"""The data files under `assets/`, read and checked against the dataclass that holds each entry."""

import csv
import json
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from adapop.errors import DataError
from adapop.paths import ASSETS

T = TypeVar("T")


def read_json(name: str, kind: type[T]) -> T:
    """The content of `assets/<name>` as `kind`: a dataclass, or a list or dict of them.

    Every field must be there, of its type, and no other.

    Raises:
        DataError: the file is missing, is not JSON, repeats a key, or does not fit `kind`.
    """

    def parsed() -> T:
        content = (ASSETS / name).read_bytes()
        json.loads(content, object_pairs_hook=_without_repeats)
        return TypeAdapter(kind).validate_json(content, strict=True, extra="forbid")

    return _checked(name, parsed)


def read_csv(name: str, row: type[T]) -> list[T]:
    """The rows of `assets/<name>`, each as the dataclass `row`. An empty cell stands for the field's default.

    Raises:
        DataError: the file is missing, or a line does not fit `row`.
    """

    def parsed() -> list[T]:
        with open(ASSETS / name, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, restkey="beyond the header")
            cells = {f"line {reader.line_num}": {key: cell for key, cell in line.items() if cell} for line in reader}
        return list(TypeAdapter(dict[str, row]).validate_python(cells, extra="forbid").values())

    return _checked(name, parsed)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON's objects as dicts. JSON allows a repeated key, of which all values but the last would be lost."""
    names = [name for name, _ in pairs]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"repeated key: {', '.join(sorted(repeated))}")
    return dict(pairs)


def _checked(name: str, parsed: Callable[[], T]) -> T:
    try:
        return parsed()
    except ValidationError as error:
        first = error.errors()[0]
        place = " > ".join(map(str, first["loc"]))
        wrong = f"{place}: {first['msg']}" if place else first["msg"]
    except OSError as error:
        wrong = error.strerror
    except (ValueError, csv.Error) as error:
        wrong = str(error)
    raise DataError(f"assets/{name} cannot be used ({wrong}).", "Correct the file, or restore it from the repository.")
