"""Files of a folder, changed as nothing of ours writes them."""

import json
from pathlib import Path


def changed_json(path: Path, without=(), **values) -> None:
    """Sets values of the object in a file of JSON, which is made if it is not there, and drops others."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    kept = {name: value for name, value in known.items() if name not in without}
    path.write_text(json.dumps(kept | values), encoding="utf-8")


def without_last(path: Path, lines: int) -> None:
    """Drops the last lines of a file, as if it had not come to write them."""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-lines]))
