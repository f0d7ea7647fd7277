"""Links to a run: a link's holder may read the run and its report, not stop, resume or probe it.

The holder of a run's id is its owner and may do everything. A link is another name of the run, made
when the owner asks for one; the id cannot be derived from it.

    RUN/link           the link of the run
    ROOT/links/LINK    the id of the run
"""

import os
import re
import secrets
from pathlib import Path

from adapop.runs import files
from adapop.runs.run import RUN_ID, Run

FOLDER = "links"
LINK = re.compile("view-[0-9a-f]{32}")


def link_of(run: Run) -> str:
    """The run's link, made if there is none yet. Raises RunError: it cannot be written."""
    note = run.folder / "link"
    if not note.exists() or linked(note.read_text("utf-8"), run.folder.parent) != run:
        name = f"view-{secrets.token_hex(16)}"
        entries = run.folder.parent / FOLDER
        with files.writing(entries):
            entries.mkdir(exist_ok=True)
        files.write_text(entries / name, run.id)
        files.write_text(note, name)  # of two at once the last wins; both are links of the run
    return note.read_text(encoding="utf-8")


def linked(name: object, root: Path) -> Run | None:
    """The run of a link that a browser sent; None if there is none, or no longer."""
    if not isinstance(name, str) or not LINK.fullmatch(name):
        return None
    try:
        owner = (root / FOLDER / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # a damaged link leads nowhere either
        return None
    return owned(owner, root)


def owned(name: object, root: Path) -> Run | None:
    """The run of an id that its owner's browser sent, None if unknown. Never used as a path."""
    if not isinstance(name, str) or not RUN_ID.fullmatch(name):
        return None
    run = Run(root / name)
    # Unlike Path.exists, this raises nothing.
    return run if os.path.exists(run.folder / "config.json") else None


def delete_dead(root: Path) -> None:
    """Deletes the links of runs that are gone."""
    for entry in (root / FOLDER).glob("view-*"):
        if linked(entry.name, root) is None:
            entry.unlink(missing_ok=True)
