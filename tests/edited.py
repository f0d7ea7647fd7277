"""Files of a folder, changed as nothing of ours writes them."""

import json
from pathlib import Path

from adapop import sums


def changed_json(path: Path, without=(), **values) -> None:
    """Sets values of the object in a file of JSON, which is made if it is not there, and drops others."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    kept = {name: value for name, value in known.items() if name not in without}
    path.write_text(json.dumps(kept | values), encoding="utf-8")


def recorded(path: Path, **values) -> None:
    """Sets values of a file of JSON, as ours does: with its hash beside it."""
    changed_json(path, **values)
    sums.record(path)


def rewritten_lines(path: Path, change) -> None:
    """Changes each line of a log, as ours writes it: with its own hash."""
    lines = map(sums.opened, path.read_text(encoding="utf-8").splitlines())
    path.write_text("".join(f"{sums.sealed(change(line))}\n" for line in lines), encoding="utf-8")


def flipped_bit(content: bytes, place: float = 0.7) -> bytes:
    """The content with one bit changed, at that share of its length."""
    changed = bytearray(content)
    changed[int(len(content) * place)] ^= 1
    return bytes(changed)


def without_last(path: Path, lines: int) -> None:
    """Drops the last lines of a file, as if it had not come to write them."""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))
