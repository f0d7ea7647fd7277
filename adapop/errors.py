"""The errors of this app, in words for the person who has to act on them."""

from collections.abc import Iterator
from contextlib import contextmanager
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
    """Scores that cannot be read, where the user has not agreed to leave out their facts;
    `problems` lists the rows."""


class ConfigError(AdaPopError):
    """A setting that does not exist, is out of range, or contradicts another."""


class ModelError(AdaPopError):
    """A model that cannot be loaded, trained or asked."""


class RunError(AdaPopError):
    """A run that cannot be found, resumed or continued, such as after a non-finite loss."""


class Diverged(RunError):
    """Training left the finite numbers; with the same settings it would again."""


class LimitError(AdaPopError):
    """More than this app allows, at once or for now."""


class NetworkError(AdaPopError):
    """A service that cannot be reached, refuses, or answers something else than it promised."""


class Stopped(AdaPopError):
    """A person asked to stop. What was found until then is kept."""


SHOWN = 60


@contextmanager
def named_place(path: Path, kind: type[AdaPopError]) -> Iterator[None]:
    """A context in which a file of the user's is written. Raises an error of the kind where the
    disk refuses."""
    try:
        yield
    except OSError as error:
        message = f"{path} cannot be written ({error.strerror})."
        raise kind(message, "Choose another place.") from None


def number_of(number: int, noun: str) -> str:
    """A number of things: "1 fact", "1,200 facts". noun: in the singular, with a plural in s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def truncated(cell: object) -> str:
    """The beginning of a cell, for messages, where `repr` makes invisible characters visible."""
    text = str(cell)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
