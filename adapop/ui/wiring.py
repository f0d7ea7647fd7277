"""The wiring of the page's events: options for the order of answers, and how a page follows long
work.

Gradio answers several events at once; on a busy machine it may answer an older event last, which
would undo a newer one. Options are passed whole (`**IN_TURN`) and joined by `|`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any

import gradio as gr

from adapop.errors import AdaPopError
from adapop.facts.limited_process import seconds_worked
from adapop.progress import Progress
from adapop.service.visitor_limits import PROCESSOR, Usage
from adapop.ui.redaction import place_of

# no endpoint of the API, and no spinner over the outputs
QUIET = {"api_visibility": "private", "show_progress": "hidden"}
# runs one after the other with the page's other events of this group (a limit of 1 is per page:
# `ui.events.turns_of`): for events that change set or anchors. "No file yet", answered after a
# file, would empty the set
IN_TURN = QUIET | {"concurrency_id": "session", "concurrency_limit": 1}
# every event is answered, also one that comes before the last answer
EACH = QUIET | {"trigger_mode": "multiple"}
# the same, one after the other among events of the same function
EACH_IN_TURN = EACH | {"concurrency_limit": 1}
# of events sent before the last answer, only the newest is answered; Gradio's "once" would drop
# all. At most one listener of each event of a component may use this: tests/ui/test_wiring.py
LAST_STAYS = QUIET | {"concurrency_limit": 1, "trigger_mode": "always_last"}

# how long a message stays over the page
TOAST = 15  # seconds
POLL_SECONDS, LOOK_SECONDS = 0.4, 0.02
TOLD_FROM = 2.0  # seconds after which a page is told how long the work has taken
# for the work of coroutine events before and after waiting; other events use Gradio's own threads
THREADS = ThreadPoolExecutor(40, thread_name_prefix="adapop-offload")
log = logging.getLogger(__name__)


class Components:
    """Base of a dataclass of components that are updated together."""

    @property
    def all(self) -> list[gr.Component]:
        """Its components, in the order of its fields, those inside others included; no texts."""
        return _components(vars(self).values())


def _components(values: Iterable) -> list[gr.Component]:
    every = []
    for value in values:
        if isinstance(value, Components):
            every += value.all
        elif isinstance(value, tuple):
            every += _components(value)
        elif not isinstance(value, str):
            every.append(value)
    return every


@dataclass(frozen=True)
class StartStop(Components):
    """The buttons that start and stop a page's work; the second is visible only during work.
    at_work: the `Progress` of the active work, or None."""

    start: gr.Button
    stop: gr.Button
    at_work: gr.State

    def busy(self, progress: Progress | None) -> dict:
        """Updates at the beginning of work; with None, at its end."""
        start = gr.Button(interactive=progress is None)
        stop = gr.Button(visible=progress is not None)
        return {self.start: start, self.stop: stop, self.at_work: progress}

    def idle(self) -> dict:
        """Updates at the end of work."""
        return self.busy(None)

    def wire_stop(self) -> None:
        """Makes the second button stop the active work."""
        self.stop.click(stopped, self.at_work, None, **QUIET)


def toast(message: str) -> gr.Error:
    """An error that is shown over the page. It is no failure: the log gets no traceback of it."""
    return gr.Error(message, duration=TOAST, print_exception=False)


def stopped(progress: Progress | None) -> None:
    """Asks the active work to stop, if there is any."""
    if progress:
        progress.stop()


async def offload(usage: Usage, work: Callable, *args, **named) -> Any:
    """The result of work done in a thread: the event loop must neither read files nor compute. The
    processor's time is charged to the visitor of the event."""

    def timed() -> Any:
        with usage.charged(PROCESSOR, seconds_worked):
            return work(*args, **named)

    in_context, loop = copy_context().run, asyncio.get_running_loop()
    return await loop.run_in_executor(THREADS, in_context, timed)


async def followed(
    future: Future, progress: Progress, waiting: str = "Waiting for the model …"
) -> AsyncIterator[str]:
    """The status text of work, every 0.4 s until it ends, with the seconds so far once it takes
    long. A page that stops reading stops the work. Holds no thread meanwhile: all pages share 40.
    waiting: the text until the work reports one."""
    began = monotonic()
    try:
        while not future.done():
            text, seconds = progress.text or waiting, monotonic() - began
            yield f"{text} · {seconds:.0f} s" if seconds >= TOLD_FROM else text
            await over(future, POLL_SECONDS)
    finally:
        progress.stop()


async def over(future: Future, seconds: float = inf) -> None:
    """Returns when the work has ended or this time has passed, without holding a thread."""
    until = monotonic() + seconds
    while not future.done() and monotonic() < until:
        await asyncio.sleep(LOOK_SECONDS)


async def answered(usage: Usage, ask: Callable[..., Future], *args, **named) -> Any:
    """What a worker's method answers, once its work has ended."""
    future = await offload(usage, ask, *args, **named)
    await over(future)
    return future.result()


def error_of(future: Future) -> AdaPopError | None:
    """The error of finished work, or None. An unforeseen one is logged without its text."""
    error = future.exception()
    if error is None or isinstance(error, AdaPopError):
        return error
    log.error("work that a page watched failed: %s", place_of(error))
    message = f"The work failed unexpectedly ({type(error).__name__})."
    return AdaPopError(message, "The log of the app says more.")
