"""The errors of this app, in words for the person who has to act on them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path


class AdaPopError(Exception):
    """An error a user can act on: `message` says what and where, `fix` what to do next. It is never
    shown as a traceback."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(f"{message} {fix}".strip())
        self.message = message
        self.fix = fix


class DataError(AdaPopError):
    """Facts that cannot be used. `problems` lists the rows, if rows are at fault."""

    def __init__(self, message: str, fix: str = "", problems: tuple = ()) -> None:
        super().__init__(message, fix)
        self.problems = problems


class ScoresError(DataError):
    """Scores that cannot be read, and the user did not ask to leave out their facts; `problems`
    lists the rows."""


class ConfigError(AdaPopError):
    """A setting that does not exist, is out of range, or contradicts another."""


class ModelError(AdaPopError):
    """A model that cannot be loaded, trained or asked."""


class RunError(AdaPopError):
    """A run that cannot be found, resumed or continued, such as after a non-finite loss."""


class Diverged(RunError):
    """A number was not finite in training; with the same settings it would be so again."""


class LimitError(AdaPopError):
    """More than this app allows, at once or within a period."""


class NetworkError(AdaPopError):
    """A service cannot be reached, refuses, or sends an answer of an unexpected form."""


class Stopped(AdaPopError):
    """The user asked to stop. Results so far are kept."""


SHOWN = 60


@contextmanager
def named_place(path: Path, kind: type[AdaPopError]) -> Iterator[None]:
    """A context in which a user's file is written. Raises an error of class `kind` if it cannot be
    written."""
    try:
        yield
    except OSError as error:
        message = f"{path} cannot be written ({error.strerror})."
        raise kind(message, "Choose another place.") from None


def number_of(number: int, noun: str) -> str:
    """A number of things: "1 fact", "1,200 facts". noun: in the singular, with a plural in s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listing(parts: Sequence[str]) -> str:
    """At least one text as a list in a sentence: "Paris, Rome and Oslo"."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def did_you_mean(name: object, known: Iterable[str], likeness: float = 0.6) -> str:
    """A sentence that names the known name most like an unknown one, with a space behind it; "" if
    none is like it. likeness: the least that counts, as difflib has it, [0, 1]."""
    near = get_close_matches(str(name).lower(), [*known], n=1, cutoff=likeness)
    return f"Did you mean {near[0]}? " if near else ""


def truncated(cell: object) -> str:
    """A cell as text of at most `SHOWN` characters, for messages; their `!r` shows invisible
    characters."""
    text = str(cell)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
