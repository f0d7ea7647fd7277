"""What services told us, kept on disk: a second look-up asks nothing twice, an interrupted one goes on.

One SQLite file, safe against crashes and for several processes. It may hold the names of users' facts, never keys.
"""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from adapop.errors import ConfigError

WAIT_SECONDS = 30


@dataclass(frozen=True)
class Known:
    """A value as it was learnt, and the day (ISO 8601)."""

    value: object
    date: str


class Cache:
    """JSON values by key, each with the day it was learnt. refresh: answer nothing older than this object."""

    def __init__(self, folder: Path | None = None, refresh: bool = False) -> None:
        folder = cache_root() if folder is None else folder
        self._fresh: set[str] | None = set() if refresh else None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # one look-up at a time uses an object, though not always from the thread that made it
            self._rows = sqlite3.connect(folder / "known.sqlite", timeout=WAIT_SECONDS, check_same_thread=False)
            self._rows.execute("CREATE TABLE IF NOT EXISTS known (key TEXT PRIMARY KEY, value TEXT, date TEXT)")
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"The cache folder {folder} cannot be used ({error}).", "Set ADAPOP_CACHE to a folder you can write to."
            ) from None

    def get(self, *key: str) -> Known | None:
        """What is known under a key, or None."""
        name = json.dumps(key, ensure_ascii=False)
        if self._fresh is not None and name not in self._fresh:
            return None
        found = self._rows.execute("SELECT value, date FROM known WHERE key = ?", (name,)).fetchone()
        return None if found is None else Known(json.loads(found[0]), found[1])

    def put(self, value: object, *key: str) -> Known:
        """Keeps a JSON value under a key, from today."""
        name, today = json.dumps(key, ensure_ascii=False), date.today().isoformat()
        with self._rows:
            text = json.dumps(value, ensure_ascii=False)
            self._rows.execute("INSERT OR REPLACE INTO known VALUES (?, ?, ?)", (name, text, today))
        if self._fresh is not None:
            self._fresh.add(name)
        return Known(value, today)


def cache_root() -> Path:
    """`$ADAPOP_CACHE`, or `~/.adapop/cache`."""
    return Path(os.environ.get("ADAPOP_CACHE") or Path.home() / ".adapop" / "cache")
