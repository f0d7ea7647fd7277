"""SHA-256 of what a run or a cache keeps and reads back, so that no damage becomes a number.

A kept file has a line in `sha256.txt` of its folder, as `sha256sum` writes it. The line is added
before the file is put into place; of a file that is replaced, earlier lines stay valid, so that no
crash and no second writer leaves a file without its hash. A line of a log has a last field of its
own. What has no hash counts as damaged, because a damaged name of a hash must not pass."""

import hashlib
import os
import re
from pathlib import Path

NAME = "sha256.txt"
FIELD = "sha256"  # the last one of a log's line
SEAL = re.compile(rf', "{FIELD}": "([0-9a-f]{{64}})"\}}$')


class Changed(ValueError):
    """A kept file or line is not as it was written."""


def sha256_of(path: Path) -> str:
    """The hash of a file's content, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record(path: Path, content: bytes | None = None) -> None:
    """Records the hash of a file, on the disk when this returns. content: what is about to be
    written to it; None for a file that is there. Raises OSError."""
    digest = sha256_of(path) if content is None else hashlib.sha256(content).hexdigest()
    if digest in _recorded(path):
        return
    with open(path.with_name(NAME), "ab+") as file:
        torn = file.tell() and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n"
        start = "\n" if torn else ""
        file.write(f"{start}{digest}  {path.name}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def record_all(folder: Path) -> None:
    """Records the files of a folder that is complete, in place of what was recorded of it before.
    Raises OSError."""
    (folder / NAME).unlink(missing_ok=True)
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        record(path)


def check(path: Path) -> None:
    """Raises Changed: a file is not as it was recorded, or nothing is recorded. OSError."""
    _compare(path, sha256_of(path))


def check_all(folder: Path) -> None:
    """Checks every file that is recorded in a folder. Raises as `check`; Changed: none is."""
    names = {name for _, name in _lines(folder / NAME)}
    for name in sorted(names):
        check(folder / name)
    if not names:
        raise Changed(f"{NAME} names no file")


def checked(path: Path) -> bytes:
    """The content of a file. Raises as `check`."""
    content = path.read_bytes()
    _compare(path, hashlib.sha256(content).hexdigest())
    return content


def sealed(line: str) -> str:
    """A JSON object on a line, with the hash of that line as its last field."""
    return f'{line[:-1]}, "{FIELD}": "{hashlib.sha256(line.encode()).hexdigest()}"}}'


def opened(line: str) -> str:
    """The line that `sealed` was given. Raises Changed: it is another one, or has no hash."""
    match = SEAL.search(line)
    if not match:
        raise Changed("it has no SHA-256 of its own")
    whole = f"{line[: match.start()]}}}"
    if hashlib.sha256(whole.encode()).hexdigest() != match[1]:
        raise Changed("it is not as it was written: its SHA-256 differs")
    return whole


def _compare(path: Path, digest: str) -> None:
    recorded = _recorded(path)
    if digest not in recorded:
        differs = f"it is not as it was written: its SHA-256 differs from that in {NAME}"
        raise Changed(differs if recorded else f"{NAME} beside it has no SHA-256 of it")


def _recorded(path: Path) -> set[str]:
    """Every hash recorded of a file: that of each content it was given."""
    return {digest for digest, name in _lines(path.with_name(NAME)) if name == path.name}


def _lines(path: Path) -> list[tuple[str, str]]:
    """(hash, name) of each line."""
    try:
        lines = path.read_bytes().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return [(line[:64], line[66:]) for line in lines]
