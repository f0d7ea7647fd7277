"""Reads a run's events, frames and questions; a file is parsed once per change, for all requests.
Each line is compared with its own hash."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from adapop.errors import RunError
from adapop.runs.files import UNREAD, reading
from adapop.sums import opened
from adapop.training import events, frames

Line = TypeVar("Line")
FILES = 256  # four for each run that stays in memory


class _Parsed:
    """A file's content and the time it was read: one value, replaced as a whole, so that threads
    need no lock (which a forked process might find locked for ever)."""

    last: tuple[tuple[int, ...], tuple] = (), ()


@lru_cache(maxsize=FILES)
def _cached(path: Path) -> _Parsed:
    return _Parsed()


def events_of(path: Path) -> tuple[events.Event, ...]:
    """A run's events, as one uninterrupted run would have; empty without a file. An incomplete last
    line is ignored; times never go back, even if the clock did. Raises RunError."""
    return lines_of(path, events.from_json, lambda event: events.current(_in_time(event)))


def frames_of(path: Path) -> tuple[frames.Frame, ...]:
    """A run's frames so far, without an incomplete last line. Raises RunError."""
    fix = "Delete this file; the run does not need it otherwise."
    return lines_of(path, frames.from_json, tuple, fix)


def lines_of(
    path: Path,
    from_json: Callable[[str], Line],
    whole: Callable[[Iterator[Line]], Iterable[Line]],
    fix: str = "Start the run again.",
) -> tuple[Line, ...]:
    """The parsed lines of a log whose lines were `sealed`, without an incomplete last one; () if
    there is no file. Parsed once per change. whole: what the lines become together. Raises
    RunError: a line is damaged; `fix` says what to do."""
    try:
        about = path.stat()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}).", "Make it readable.") from error
    cache, now = _cached(path.absolute()), (about.st_ino, about.st_size, about.st_mtime_ns)
    version, lines = cache.last
    if version != now:
        with reading(path):
            lines = tuple(whole(_lines(path, about.st_size, from_json, fix)))
        cache.last = now, lines
    return lines


def _lines(path: Path, size: int, from_json: Callable[[str], Line], fix: str) -> Iterator[Line]:
    """The parsed lines in the first `size` bytes of the file. Raises RunError."""
    # Read as bytes, because the last line may end inside a character.
    *lines, _torn = path.read_bytes()[:size].split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            yield from_json(opened(line.decode()))
        except UNREAD as error:
            raise RunError(f"{path}, line {number} cannot be read ({error}).", fix) from None


def _in_time(read: Iterator[events.Event]) -> Iterator[events.Event]:
    """The events, no time before an earlier event's: the clock may have been put back."""
    latest = 0.0
    for event in read:
        latest = max(latest, event.time)
        yield event if event.time == latest else replace(event, time=latest)
