"""Where a file lies that a visitor may take home."""

from __future__ import annotations

import secrets
from pathlib import Path

from gradio.utils import get_upload_folder

DELETE_EVERY, DELETE_AFTER = 600, 7200  # seconds: what a page was offered, and what was uploaded


def served_folder() -> Path:
    """A fresh folder under a name nobody can guess. Gradio serves what lies there, and nothing outside, and deletes a
    file two hours after it was offered (`DELETE_AFTER`)."""
    folder = Path(get_upload_folder()) / secrets.token_hex(16)
    folder.mkdir(parents=True)
    return folder
