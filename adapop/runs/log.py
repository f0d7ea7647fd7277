"""A run's event log, read: parsed once for each change of the file, however many requests look at the run."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from adapop.errors import RunError
from adapop.runs.files import reading
from adapop.training.events import Event, current, from_json

RUNS = 64  # whose events stay in memory


class _Kept:
    """What the file said last, and when: one value, replaced as a whole, so that threads need no lock (which a forked
    process might find held for ever)."""

    last: tuple[tuple[int, ...], tuple[Event, ...]] = (), ()


@lru_cache(maxsize=RUNS)
def _kept(path: Path) -> _Kept:
    return _Kept()


def events_of(path: Path) -> tuple[Event, ...]:
    """Everything a run said, as one uninterrupted run would have said it; nothing where there is no file. A torn last
    line is not yet said; times never go back, even where the clock did.

    Raises:
        RunError: a line does not read.
    """
    try:
        about = path.stat()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}).", "Make it readable.") from error
    kept, now = _kept(path.absolute()), (about.st_ino, about.st_size, about.st_mtime_ns)
    seen, events = kept.last
    if seen != now:
        with reading(path):
            events = tuple(current(_lines(path, about.st_size)))
        kept.last = now, events
    return events


def _lines(path: Path, size: int) -> Iterator[Event]:
    """The events of the file's first bytes, so many as it had when it was looked at."""
    *lines, _torn = path.read_bytes()[:size].split(b"\n")  # bytes: a line may be torn inside a character
    latest = 0.0
    for number, line in enumerate(lines, start=1):
        try:
            event = from_json(line.decode())
            latest = max(latest, event.time)
        except (ValueError, TypeError, AttributeError) as error:
            raise RunError(f"{path}, line {number} does not read ({error}).", "Start the run again.") from None
        yield event if event.time == latest else replace(event, time=latest)  # the clock was put back
