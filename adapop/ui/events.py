"""Prepares the page's events before it is served: who sent each, what it may take, its order.

Every function gets the sender of its event, is charged for the processor's seconds, and shares a
visitor's two threads. A page's state holds ids of large values, which are replaced here by the
values themselves, and back (`session.Kept`). For this the lists of events and components
(`Blocks.fns`, `Blocks.blocks`) and a few of their attributes are used, which Gradio's documentation
does not name; `tests/ui/test_public_names.py` has them all.
"""

import inspect
from collections.abc import Callable
from contextlib import ExitStack, aclosing
from functools import partial, wraps
from typing import Any, get_type_hints

import gradio as gr

from adapop.facts.limited_process import seconds_worked
from adapop.limits import PROCESSOR
from adapop.service.visitor_limits import Usage
from adapop.ui.access import refusing
from adapop.ui.session import KEPT
from adapop.ui.visitors import SENDER, visitor_of


def prepare(demo: gr.Blocks, usage: Usage, quiet: gr.Component) -> None:
    """Prepares all events of an app. quiet: a small component, which gets the hidden progress of
    events; Gradio would send it to each output, and clone their data at every later event."""
    for event in demo.fns.values():
        if event.show_progress == "hidden":
            event.show_progress_on = [quiet]
        if event.fn:
            event.fn = prepared(event.fn, usage)


def keep_settings(demo: gr.Blocks) -> None:
    """Keeps each component's settings and class, which Gradio asks for anew whenever a page begins:
    in the event loop, where a page took 36 ms, and 3 ms now. What a page changes are components of
    its own."""
    for block in demo.blocks.values():
        block.get_config = partial(dict, block.get_config())
        block.get_component_class_id = partial(str, block.get_component_class_id())


def turns_of(demo: gr.Blocks) -> dict[int, str]:
    """The events that take turns within a page: number -> group. With Gradio's own limit of one,
    pages would wait for each other; it is taken away, and `door.streams` keeps the order."""
    turns = {}
    for number, event in demo.fns.items():
        if event.concurrency_limit == 1:
            turns[number], event.concurrency_limit = event.concurrency_id, None
    return turns


def prepared(work: Callable, usage: Usage) -> Callable:
    """An event's function that first gets the request, whose sender it is charged to."""

    def begin(request: gr.Request | None) -> str:
        SENDER.set(visitor_of(request) if request else "")
        return SENDER.get()

    @wraps(work)
    def in_thread(request, *values):
        visitor = begin(request)
        with ExitStack() as thread:
            with refusing():
                thread.enter_context(usage.thread(visitor))
            with usage.charged(PROCESSOR, seconds_worked, visitor):
                return KEPT.stored(work(*map(KEPT.loaded, values)))

    @wraps(work)
    async def awaited(request, *values):
        begin(request)
        return KEPT.stored(await work(*map(KEPT.loaded, values)))

    @wraps(work)
    async def followed(request, *values):
        begin(request)
        answered = False
        async with aclosing(work(*map(KEPT.loaded, values))) as answers:
            async for answer in answers:
                answered = True
                yield KEPT.stored(answer)
                begin(request)  # each answer is asked for in a context of its own
        if not answered:  # Gradio would empty what the event fills in
            yield gr.skip()

    kinds = ((inspect.isasyncgenfunction, followed), (inspect.iscoroutinefunction, awaited))
    event = next((event for is_kind, event in kinds if is_kind(work)), in_thread)
    signature = inspect.signature(work)
    first = inspect.Parameter("request_", inspect.Parameter.POSITIONAL_ONLY, annotation=gr.Request)
    event.__signature__ = signature.replace(parameters=[first, *signature.parameters.values()])
    # by these Gradio finds what else a function asks for
    event.__annotations__ = _hints(work) | {"request_": gr.Request}
    return event


def _hints(work: Callable) -> dict[str, Any]:
    if not (inspect.isfunction(work) or inspect.ismethod(work)):
        return {}
    try:
        return get_type_hints(work)
    except (NameError, TypeError):
        return {}
