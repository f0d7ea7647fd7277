"""Replies on disk: nothing is requested twice, and an interrupted look-up goes on. One SQLite file,
safe in crashes and for several processes. It may hold users' facts, never keys. Each reply has its
hash beside it: a damaged one counts as missing, so that it is asked for again."""

import hashlib
import json
import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from adapop.errors import ConfigError
from adapop.limits import is_public

log = logging.getLogger(__name__)

WAIT_SECONDS = 30
FILE = "known.sqlite"


@dataclass(frozen=True)
class Cached:
    """A cached value."""

    value: Any
    """A JSON value, as it was received."""
    date: str
    """The day it was received (ISO 8601)."""


class Cache:
    """JSON values by key, each with the day it was received. refresh: ignores values older than
    this object. Raises ConfigError whenever it is used: the file cannot be read or written."""

    def __init__(self, folder: Path | None = None, refresh: bool = False) -> None:
        self._folder = cache_root() if folder is None else folder
        self._fresh: set[str] | None = set() if refresh else None
        with self._usable():
            self._folder.mkdir(parents=True, exist_ok=True)
            # used by one look-up at a time, but not always in the thread that created it
            waits = {"timeout": WAIT_SECONDS, "check_same_thread": False}
            self._rows = sqlite3.connect(self._folder / FILE, **waits)
            self._rows.text_factory = bytes  # a damaged text may be no UTF-8
            columns = "key TEXT PRIMARY KEY, value TEXT, date TEXT, sha256 TEXT"
            self._rows.execute(f"CREATE TABLE IF NOT EXISTS replies ({columns})")

    def get(self, *key: str) -> Cached | None:
        """The value of a key; None if there is none, or it is damaged, which the log says."""
        name = _name(key)
        if self._fresh is not None and name not in self._fresh:
            return None
        with self._usable():
            query = "SELECT value, date, sha256 FROM replies WHERE key = ?"
            row = self._rows.execute(query, (name,)).fetchone()
            if row is None:
                return None
            value, day, digest = row
            if digest != _sha256(name, value, day).encode():
                log.warning("A damaged reply in %s is asked for again.", self._folder / FILE)
                return None
            return Cached(json.loads(value), day.decode())

    def put(self, value: object, *key: str) -> Cached:
        """Stores a JSON value under a key, with today's date, and returns it."""
        name, today = _name(key), date.today().isoformat()
        self._store([(name, value, today)])
        if self._fresh is not None:
            self._fresh.add(name)
        return Cached(value, today)

    def get_all(self, names: Sequence[str]) -> dict[str, object]:
        """Key -> stored value, for the keys that have one. A key is a single name here."""
        known = {name: self.get(name) for name in names}
        return {name: entry.value for name, entry in known.items() if entry}

    def put_all(self, values: Mapping[str, object]) -> None:
        """Stores JSON values under keys that are single names, all of them or none."""
        today = date.today().isoformat()
        self._store([(_name((key,)), value, today) for key, value in values.items()])

    def _store(self, entries: Sequence[tuple[str, object, str]]) -> None:
        with self._usable(), self._rows:
            rows = [_row(*entry) for entry in entries]
            self._rows.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", rows)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """A context that turns errors of the file into a ConfigError that says what to do."""
        try:
            yield
        except (OSError, sqlite3.Error, ValueError) as error:  # ValueError: no JSON
            if is_public():  # strangers are not told where the file lies
                why = error.strerror if isinstance(error, OSError) else type(error).__name__
                message = f"The app's cache cannot be used ({why})."
                raise ConfigError(message, "Try again later.") from None
            message = f"The cache folder {self._folder} cannot be used ({error})."
            raise ConfigError(message, _fix(error, self._folder / FILE)) from None


def _name(key: Sequence[str]) -> str:
    return json.dumps(key, ensure_ascii=False)


def _row(name: str, value: object, day: str) -> tuple[str, ...]:
    text = json.dumps(value, ensure_ascii=False)
    return name, text, day, _sha256(name, text.encode(), day.encode())


def _sha256(name: str, *content: object) -> str:
    """The hash of a row. content: bytes; after damage, SQLite may give other types."""
    return hashlib.sha256(repr((name, *content)).encode()).hexdigest()


def _fix(error: Exception, file: Path) -> str:
    # subclasses of DatabaseError stand for other problems
    if type(error) is sqlite3.DatabaseError or isinstance(error, ValueError):
        return f"Its file is damaged: delete {file}. What it kept is asked for again."
    if "is locked" in str(error):
        elsewhere = "set ADAPOP_CACHE to another folder"
        return f"Another program holds it: wait for that to end, or {elsewhere}."
    if "is full" in str(error):
        return "Make room on the disk, or set ADAPOP_CACHE to a folder on another one."
    return "Set ADAPOP_CACHE to a folder you can write to."


def cache_root() -> Path:
    """`$ADAPOP_CACHE`, or `~/.adapop/cache`."""
    return Path(os.environ.get("ADAPOP_CACHE") or Path.home() / ".adapop" / "cache")
