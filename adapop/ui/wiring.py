"""In which order a page's wishes are answered. Gradio answers several at once, and on a busy machine an older wish may
be answered last: its answer would undo a newer one."""

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future

from adapop.errors import AdaPopError, ModelError
from adapop.progress import Progress

# what changes the set, the anchors or the place of a page: "no file yet", said after the file, would empty its set
IN_TURN = {"concurrency_id": "session", "concurrency_limit": 1}
# the two below wait for answers of the same function, unless they are given a `concurrency_id`
EACH_IN_TURN = {"concurrency_limit": 1, "trigger_mode": "multiple"}
# of wishes that come while one is answered the last alone is answered; Gradio's "once" would drop it too. Of an event
# of one component one listener at most may wait so: tests/test_page.py
LAST_STAYS = {"concurrency_limit": 1, "trigger_mode": "always_last"}


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
