"""How the page's events are wired: options that say in which order they are answered, and how a page watches long work.

Gradio answers several events at once, and on a busy machine it may answer an older one last, which would undo a newer
one. Options are passed whole (`**IN_TURN`) and joined by `|`.
"""

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator
from concurrent.futures import Future
from dataclasses import dataclass
from math import inf
from time import monotonic

import gradio as gr

from adapop.errors import AdaPopError
from adapop.progress import Progress

# no endpoint of the API, and no spinner over the outputs
QUIET = {"api_visibility": "private", "show_progress": "hidden"}
# one after the other with all events of this kind of the same page (a limit of 1 is a page's own: `ui.queue`): for what
# changes the set or the anchors. "No file yet", answered after the file, would empty its set
IN_TURN = QUIET | {"concurrency_id": "session", "concurrency_limit": 1}
# every event is answered, also one that comes before the last answer
EACH = QUIET | {"trigger_mode": "multiple"}
# the same, one after the other among events of the same function
EACH_IN_TURN = EACH | {"concurrency_limit": 1}
# of events that come before the last answer only the newest is answered; Gradio's "once" would drop it too. Of an
# event of one component one listener at most may wait so: tests/test_page.py
LAST_STAYS = QUIET | {"concurrency_limit": 1, "trigger_mode": "always_last"}

POLL_SECONDS, LOOK_SECONDS = 0.4, 0.02
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StartStop:
    """The buttons that start and stop a page's work; the second is there while there is something to stop. at_work: the
    `Progress` of what is under way, or None."""

    start: gr.Button
    stop: gr.Button
    at_work: gr.State

    @property
    def all(self) -> list[gr.Component]:
        """What `busy` and `idle` change."""
        return [self.start, self.stop, self.at_work]

    def busy(self, progress: Progress) -> dict:
        """Updates while work is under way."""
        return {
            self.start: gr.Button(interactive=False),
            self.stop: gr.Button(visible=True),
            self.at_work: progress,
        }

    def idle(self) -> dict:
        """Updates while there is no work."""
        return {self.start: gr.Button(interactive=True), self.stop: gr.Button(visible=False), self.at_work: None}

    def wire_stop(self) -> None:
        """Makes the second button stop what is under way."""
        self.stop.click(stopped, self.at_work, None, **QUIET)


def stopped(progress: Progress | None) -> None:
    """Asks work to stop, if any is under way."""
    if progress:
        progress.stop()


async def followed(future: Future, progress: Progress, waiting: str = "Waiting for the model …") -> AsyncIterator[str]:
    """What the work is doing, every 0.4 s until it is over. A page that stops reading stops the work. No thread is held
    meanwhile: there are 40 for all pages.

    waiting: what is said until the work itself says something.
    """
    try:
        while not future.done():
            yield progress.text or waiting
            await over(future, POLL_SECONDS)
    finally:
        progress.stop()


async def over(future: Future, seconds: float = inf) -> None:
    """Returns when work is over, or after so many seconds, and holds no thread meanwhile."""
    until = monotonic() + seconds
    while not future.done() and monotonic() < until:
        await asyncio.sleep(LOOK_SECONDS)


def failure_of(future: Future) -> AdaPopError | None:
    """Why work that is over came to no result, None if it did.

    Of an error that nobody foresaw, the log gets the kind and the place: its text may quote what the user typed.
    """
    error = future.exception()
    if error is None or isinstance(error, AdaPopError):
        return error
    kind, place = type(error).__name__, "".join(traceback.format_tb(error.__traceback__))
    log.error("work that a page watched failed: %s\n%s", kind, place)
    return AdaPopError(f"The work failed unexpectedly ({kind}).", "The log of the app says more.")
