"""The key that seals what the browser keeps; one per installation, so that a restart finds the page's run again."""

import os
import re
import secrets
from pathlib import Path

from filelock import FileLock

from adapop.runs import files

FILE = ".browser-secret"
KEY = re.compile("[0-9a-f]{64}")
OWN = 0o600


def browser_secret(root: Path) -> str:
    """The key, made where there is none, or where a crash or a hand left something else.

    Raises:
        RunError: the folder of runs cannot be written to, and has no key.
    """
    path = root / FILE
    if key := _stored(path):
        return key
    with files.writing(path):
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / f"{FILE}.lock", mode=OWN):  # of two processes at once, the second takes the first one's
            if key := _stored(path):
                return key
            key = secrets.token_hex(32)
            files.write_text(path, key, OWN)
    return key


def _stored(path: Path) -> str | None:
    """The key in the file, which nobody else may read; None if it holds none."""
    with files.writing(path):
        try:
            text = path.read_bytes().decode("ascii", "replace")
            if KEY.fullmatch(text) and path.stat().st_mode & 0o077 and os.access(path, os.W_OK):
                path.chmod(OWN)
        except (FileNotFoundError, IsADirectoryError):
            return None
    return text if KEY.fullmatch(text) else None
