"""A cache of replies on disk, so that nothing is requested twice and an interrupted look-up can be resumed.

One SQLite file, safe against crashes and for several processes. It may contain the names of users' facts, never keys.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from adapop.errors import ConfigError

WAIT_SECONDS = 30
FILE = "known.sqlite"


@dataclass(frozen=True)
class Cached:
    """A cached value."""

    value: object
    """A JSON value, as it was received."""
    date: str
    """The day it was received (ISO 8601)."""


class Cache:
    """JSON values by key, each with the day it was received.

    refresh: ignores values older than this object.

    Raises:
        ConfigError: on creation and at every use, if the file cannot be read or written.
    """

    def __init__(self, folder: Path | None = None, refresh: bool = False) -> None:
        self._folder = cache_root() if folder is None else folder
        self._fresh: set[str] | None = set() if refresh else None
        with self._usable():
            self._folder.mkdir(parents=True, exist_ok=True)
            # used by one look-up at a time, but not always in the thread that created it
            self._rows = sqlite3.connect(self._folder / FILE, timeout=WAIT_SECONDS, check_same_thread=False)
            self._rows.execute("CREATE TABLE IF NOT EXISTS known (key TEXT PRIMARY KEY, value TEXT, date TEXT)")

    def get(self, *key: str) -> Cached | None:
        """The value of a key; None if there is none."""
        name = json.dumps(key, ensure_ascii=False)
        if self._fresh is not None and name not in self._fresh:
            return None
        with self._usable():
            found = self._rows.execute("SELECT value, date FROM known WHERE key = ?", (name,)).fetchone()
        return None if found is None else Cached(json.loads(found[0]), found[1])

    def put(self, value: object, *key: str) -> Cached:
        """Stores a JSON value under a key, with today's date, and returns it."""
        name, today = json.dumps(key, ensure_ascii=False), date.today().isoformat()
        text = json.dumps(value, ensure_ascii=False)
        with self._usable(), self._rows:
            self._rows.execute("INSERT OR REPLACE INTO known VALUES (?, ?, ?)", (name, text, today))
        if self._fresh is not None:
            self._fresh.add(name)
        return Cached(value, today)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """A context that turns errors of the file into a ConfigError with the folder and what to do."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"The cache folder {self._folder} cannot be used ({error}).", _fix(error, self._folder / FILE)
            ) from None


def _fix(error: Exception, file: Path) -> str:
    if type(error) is sqlite3.DatabaseError:  # its subclasses are other problems
        return f"Its file is damaged: delete {file}. What it kept is asked for again."
    if "is locked" in str(error):
        return "Another program holds it: wait for that to end, or set ADAPOP_CACHE to another folder."
    if "is full" in str(error):
        return "Make room on the disk, or set ADAPOP_CACHE to a folder on another one."
    return "Set ADAPOP_CACHE to a folder you can write to."


def cache_root() -> Path:
    """`$ADAPOP_CACHE`, or `~/.adapop/cache`."""
    return Path(os.environ.get("ADAPOP_CACHE") or Path.home() / ".adapop" / "cache")
