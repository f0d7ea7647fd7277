"""Links to a run: who has one may look at the run and take its report, and may not stop, resume or probe it.

A run's id is its owner's: who has it may do everything. A link is another name of the same run, made when the owner
wants one, from which the id cannot be found.

    RUN/link           the link of the run
    ROOT/links/LINK    the id of the run
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from adapop.runs import RUN_ID, Run

FOLDER = "links"
LINK = re.compile("view-[0-9a-f]{32}")


def link_of(run: Run) -> str:
    """The run's link, made if there is none yet."""
    note = run.folder / "link"
    if not note.exists():
        name = f"view-{secrets.token_hex(16)}"
        entries = run.folder.parent / FOLDER
        entries.mkdir(exist_ok=True)
        (entries / name).write_text(run.id, encoding="utf-8")
        aside = run.folder / f"writing-{name}"
        aside.write_text(name, encoding="utf-8")
        os.replace(aside, note)  # of two at once the last one counts, and both lead here
    return note.read_text(encoding="utf-8")


def linked(name: object, root: Path) -> Run | None:
    """The run of a link that came from a browser, None if there is none, or no longer."""
    if not isinstance(name, str) or not LINK.fullmatch(name):
        return None
    try:
        owner = (root / FOLDER / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    run = Run(root / owner)
    return run if RUN_ID.fullmatch(owner) and (run.folder / "config.json").exists() else None


def delete_dead(root: Path) -> None:
    """Deletes the links of runs that are gone."""
    for entry in (root / FOLDER).glob("view-*"):
        if linked(entry.name, root) is None:
            entry.unlink(missing_ok=True)
