"""Work in the worker's queue, watched by a page: a line at a time until it is done."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future

from adapop.errors import AdaPopError, ModelError
from adapop.progress import Progress

POLL_SECONDS = 0.4
log = logging.getLogger(__name__)


def lines_until_done(future: Future, progress: Progress) -> Iterator[str]:
    """What the work is doing, every 0.4 s. A page that stops reading stops the work."""
    try:
        while not future.done():
            yield progress.text or "Waiting for the model …"
            time.sleep(POLL_SECONDS)
    finally:
        progress.stop()


def failure_of(future: Future) -> AdaPopError | None:
    """Why work that is over came to no result, None if it did."""
    error = future.exception()
    if error is None or isinstance(error, AdaPopError):
        return error
    log.error("a question to the model failed", exc_info=error)
    return ModelError(f"The model could not be asked ({type(error).__name__}).", "The log of the app says more.")
