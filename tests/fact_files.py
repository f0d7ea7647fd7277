"""Files of facts, written in any format that is read."""

import csv
import io
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet

from adapop.facts.fact import FactSet


def write(folder: Path, name: str, content: str | bytes | list | dict) -> Path:
    """content: of the file, or rows in the format that its name ends in."""
    path = folder / name
    if isinstance(content, list) and path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(content), path)
        return path
    if isinstance(content, list) and path.suffix == ".csv":
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL).writerows([list(content[0]), *(row.values() for row in content)])
        content = text.getvalue()
    elif isinstance(content, list | dict):
        content = "\n".join(map(json.dumps, content)) if path.suffix == ".jsonl" else json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def notes_of(facts: FactSet) -> dict[str, dict]:
    """Kind of each of the set's notes -> its values."""
    return {note.kind: note.values for note in facts.notes}
