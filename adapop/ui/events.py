"""Prepares the page's events before it is served: who sent each, what it may take, its order.

Every function gets the sender of its event, is charged for the processor's seconds, and shares a
visitor's two threads. A page's state holds ids of sets of facts: they are replaced here by the sets
themselves, and back. For this the lists of events and components (`Blocks.fns`, `Blocks.blocks`)
and a few of their attributes are used, which Gradio's documentation does not name;
`tests/ui/test_public_names.py` has them all.
"""

import inspect
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from functools import partial, wraps
from typing import Any, get_type_hints

import gradio as gr

from adapop.facts.fact import FactSet
from adapop.facts.limited_process import seconds_worked
from adapop.facts.world import sandbox_facts
from adapop.limits import PROCESSOR, is_public
from adapop.service.visitor_limits import Usage
from adapop.ui.access import refusing
from adapop.ui.visitors import SENDER, network_of

AT_WORK = 2  # events of a visitor of a public app that compute at once
MEGABYTES = 128  # of sets that the ids of all pages stand for; the least recently used are dropped


class SetId(str):
    """The id of a set in a page's state."""


class Sets:
    """The sets in use, by id; each once, however many pages show it. A set that was dropped is
    restored from what its page's browser stores: see `ui.saved`."""

    def __init__(self) -> None:
        self._sets: OrderedDict[SetId, FactSet] = OrderedDict()
        self._lock = threading.Lock()

    def id_of(self, facts: FactSet) -> SetId:
        """The id of a set, which is kept for it."""
        with self._lock:
            name = SetId(f"{facts.sha256}-{facts.name}-{len(facts.problems)}")
            self._sets[name] = facts
            self._sets.move_to_end(name)
            size = sum(one.memory for one in self._sets.values())
            while size > MEGABYTES * 1e6 and len(self._sets) > 1:
                size -= self._sets.popitem(last=False)[1].memory
        return name

    def set_of(self, name: SetId) -> FactSet | None:
        """The set of an id; None if it was dropped."""
        with self._lock:
            if name not in self._sets:
                sandbox = sandbox_facts()
                return sandbox if name.startswith(sandbox.sha256) else None
            self._sets.move_to_end(name)
            return self._sets[name]

    def stored(self, value: Any) -> Any:
        """A value for a page's state or outputs: ids in place of sets."""
        if isinstance(value, FactSet):
            return self.id_of(value)
        if type(value) in (tuple, list):
            return type(value)(map(self.stored, value))
        return {key: self.stored(one) for key, one in value.items()} if _updates(value) else value

    def loaded(self, value: Any) -> Any:
        """An input's value: sets in place of ids."""
        if isinstance(value, SetId):
            return self.set_of(value)
        return tuple(map(self.loaded, value)) if type(value) is tuple else value


SETS = Sets()


def _updates(value: object) -> bool:
    """Whether an event answers with updates by component."""
    return type(value) is dict and any(not isinstance(key, str) for key in value)


class Slots:
    """The threads of each visitor of a public app: two of its events compute, the others wait."""

    def __init__(self) -> None:
        self._slots: dict[str, threading.Semaphore] = {}
        self._count: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def held(self, visitor: str) -> Iterator[None]:
        """One slot of a visitor. Raises gr.Error: too many of its events wait."""
        if not is_public():
            yield
            return
        with self._lock, refusing():
            Usage.check_open(self._count[visitor] + 1)
            self._count[visitor] += 1
            slot = self._slots.setdefault(visitor, threading.Semaphore(AT_WORK))
        try:
            with slot:
                yield
        finally:
            with self._lock:
                self._count[visitor] -= 1
                if not self._count[visitor]:
                    del self._count[visitor], self._slots[visitor]


def prepare(demo: gr.Blocks, usage: Usage, quiet: gr.Component) -> None:
    """Prepares all events of an app. quiet: a small component, which gets the hidden progress of
    events; Gradio would send it to each output, and clone their data at every later event."""
    slots = Slots()
    for event in demo.fns.values():
        if event.show_progress == "hidden":
            event.show_progress_on = [quiet]
        if event.fn:
            event.fn = prepared(event.fn, usage, slots)


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


def prepared(work: Callable, usage: Usage, slots: Slots) -> Callable:
    """An event's function that first gets the request, whose sender it is charged to."""

    def begin(request: gr.Request | None) -> str:
        client = request.client if request else None
        SENDER.set(network_of(client.host) if client else "")
        return SENDER.get()

    @wraps(work)
    def in_thread(request, *values):
        visitor = begin(request)
        with slots.held(visitor):
            began = seconds_worked()
            try:
                return SETS.stored(work(*map(SETS.loaded, values)))
            finally:
                usage.charge(PROCESSOR, seconds_worked() - began, visitor)

    @wraps(work)
    async def awaited(request, *values):
        begin(request)
        return SETS.stored(await work(*map(SETS.loaded, values)))

    @wraps(work)
    async def followed(request, *values):
        begin(request)
        answered = False
        async with aclosing(work(*map(SETS.loaded, values))) as answers:
            async for answer in answers:
                answered = True
                yield SETS.stored(answer)
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
