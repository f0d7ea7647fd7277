"""Work in the worker's queue, watched by a page: a line at a time until it is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future

from adapop.progress import Progress

POLL_SECONDS = 0.4


def lines_until_done(future: Future, progress: Progress) -> Iterator[str]:
    """What the work is doing, twice a second. A page that stops reading stops the work."""
    try:
        while not future.done():
            yield progress.text or "Waiting for the model …"
            time.sleep(POLL_SECONDS)
    finally:
        progress.stop()
