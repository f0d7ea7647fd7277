"""Gradio's queue, made fair: no visitor blocks others, and uncollected answers do not stay in
memory.

Gradio processes events in the order of their groups (concurrency ids), whoever sent them, and keeps
every answer until it is collected. Here, in addition to the limit of a group,

- a visitor's events are limited in number at work and in total bytes;
- a visitor gets at most half of a group's slots: another visitor's event begins at once;
- in a group with a limit of one, a page's events take turns, and other pages do not wait for them;
- an uncollected answer is dropped after a minute, the state of a call without a page at once;
- a page's stream of answers stays open while events follow one another: Gradio closes it with the
  last answer, and the answer to an event sent before the browser learns of this is never fetched.
"""

import asyncio
import inspect
import random
import sys
import time
from collections import Counter, OrderedDict
from math import inf

from gradio import Blocks, state_holder
from gradio.data_classes import PredictBodyInternal
from gradio.queueing import Event, Queue
from gradio.server_messages import EventMessage, ProcessCompletedMessage
from starlette.exceptions import HTTPException
from starlette.requests import Request

from adapop.errors import LimitError
from adapop.limits import AT_WORK, EVENT_BYTES, HELD, UNREAD, Limit
from adapop.ui.event_inputs import misfit
from adapop.ui.held import PAGE_MEGABYTES, STORE, PageState, held_megabytes, memory, return_memory
from adapop.ui.visitors import refusing_slowly, visitor_of
from adapop.ui.wiring import holds_a_thread

# waiting events of all pages together: a lecture hall that opens the page sends hundreds
LONGEST = 2_000
SLOTS = 400  # events at work at once: most of them wait for the accelerator, and hold no thread
GROUP = 8  # default limit of a group's active events
CROWD_IN_MEMORY = 8  # all visitors together may use this many times the limit of one
EVENT_MEGABYTES = 0.02  # least memory that an event counts as
GROWN = 1.02  # memory is returned once it has grown by this factor
UNREAD_SECONDS, SWEEP_SECONDS = 60.0, 5.0
# a pending event that never begins keeps a page's stream open. The sweep closes the stream this
# long after the last answer: a browser has few connections for all its tabs
STREAM, STREAM_SECONDS = "stream", 2.0
# how long a computing thread delays each step of the others: with Python's 0.005, answers beside
# one visitor's heavy events took three times as long
SWITCH_SECONDS = 0.0005
# between two looks for an event: with Gradio's 0.001 an idle app used 5 % of a core
LOOKS_SECONDS = 0.01
NAME_LETTERS = 64  # most letters of a page's id; Gradio's have 11
SIZE = "adapop.bytes"  # key of a request's scope: bytes of its body


def install(demo: Blocks) -> Blocks:
    """Installs this queue in an app, before it is launched. Returns the app."""
    sys.setswitchinterval(SWITCH_SECONDS)
    state_holder.SessionState = PageState  # Gradio makes one for each new page
    demo.queue(max_size=LONGEST, default_concurrency_limit=GROUP)
    demo._queue = FairQueue(True, SLOTS, 1.0, LONGEST, demo, GROUP)
    return demo


class FairQueue(Queue):
    """Gradio's queue with the rules above. An event's visitor is the address of its request."""

    def __init__(self, *settings) -> None:
        super().__init__(*settings)
        self._memory = 0  # bytes of this process when memory was last returned
        # whether no event could begin at the last look, and nothing has changed since
        self._blocked = False
        self._read: dict[str, float] = {}  # session -> time at which it last had no unread messages
        self._visitors: dict[str, str] = {}  # session with messages -> visitor
        # remembered pages by visitor, the latest used last
        self._sessions: dict[str, OrderedDict[str, None]] = {}

    def start(self) -> None:
        """Starts processing, with more slots than Gradio's threads: some events only wait."""
        self.max_thread_count = SLOTS
        self.sleep_when_free = LOOKS_SECONDS
        super().start()
        self._sweeper = asyncio.ensure_future(self._sweep_for_ever())

    def compute_analytics_summary(self, records: list) -> dict:
        """Empty: nobody may monitor the queue, and the summary took a twelfth of the time."""
        return {}

    async def push(self, body: PredictBodyInternal, request: Request, username: str | None):
        """Queues an event. Raises HTTPException 429: its visitor has too many bytes queued."""
        visitor = visitor_of(request)
        try:
            self._check_room(visitor, request.scope.get(SIZE, 0) / 1e6)
        except LimitError as error:
            await refusing_slowly()
            raise HTTPException(429, str(error)) from error
        if len(body.session_hash or "") > NAME_LETTERS:
            return False, "The name of this page is too long. Reload the page.", "error"
        self._complete(body)
        if (event := self.blocks.fns.get(body.fn_index)) and (why := misfit(event, body.data)):
            return False, why, "error"
        if not isinstance(body.event_data, dict):  # gradio looks names up in it
            body.event_data = {}
        done, message, state = await super().push(body, request, username)
        if done:
            self._visitors[body.session_hash] = visitor
            self._blocked = False
            if request.headers.get("x-gradio-user") == "app":  # a page in a browser
                self.pending_event_ids_session[body.session_hash].add(STREAM)
        return done, message, state

    def _complete(self, body: PredictBodyInternal) -> None:
        """Appends the defaults of trailing parameters that a call leaves out. Programs written
        before these existed keep working; Gradio would only report a failure."""
        event = self.blocks.fns.get(body.fn_index)
        if event is None or event.api_visibility != "public":
            return
        parameters = list(inspect.signature(event.fn).parameters.values())
        missing = [parameter.default for parameter in parameters[len(body.data) :]]
        if inspect.Parameter.empty not in missing:
            body.data.extend(missing)

    def get_events(self) -> tuple[list[Event], bool, str] | None:
        """The next event: ([event], False for no batch, its group); None if none may begin."""
        if self._blocked:
            return None
        active, most = [event for job in self.active_jobs if job for event in job], AT_WORK.value()
        busy = Counter(visitor_of(one.request) for one in active if holds_a_thread(one.fn.fn))
        turns = {(event.session_hash, event.concurrency_id) for event in active}
        at_work = Counter((visitor_of(event.request), event.concurrency_id) for event in active)
        groups = list(self.event_queue_per_concurrency_id.values())
        random.shuffle(groups)
        for group in groups:
            limit, one_by_one = group.concurrency_limit, group.concurrency_limit == 1
            if group.current_concurrency == limit and not one_by_one:
                continue
            share = limit // 2 if most is not None and limit and not one_by_one else inf
            for event in group.queue:
                visitor, group_id = visitor_of(event.request), event.concurrency_id
                turn = event.session_hash, group_id
                waits = (one_by_one and turn in turns) or at_work[visitor, group_id] >= share
                free = most is None or busy[visitor] < most or not holds_a_thread(event.fn.fn)
                if free and not waits:
                    group.queue.remove(event)
                    return [event], False, group.concurrency_id
                turns.add(turn)  # later events of the same page must not overtake it
        self._blocked = True
        return None

    async def process_events(self, events: list[Event], *how) -> None:
        """Processes an event, then forgets state that nobody will use."""
        try:
            await super().process_events(events, *how)
        finally:
            self._blocked = False
            for event in events:
                self._remember(event)

    async def remove_from_queue(self, event_id: str) -> None:
        """Removes an event from the queue."""
        await super().remove_from_queue(event_id)
        self._blocked = False

    async def clean_events(self, **of: str | None) -> None:
        """Ends the events of a page that is gone. of: session_hash or event_id."""
        await super().clean_events(**of)
        self._blocked = False

    def send_message(self, event: Event, event_message: EventMessage) -> None:
        """Adds a message to those of the event's session."""
        messages = self.pending_messages_per_session.get(event.session_hash)
        if messages is None:
            return  # the session's messages were dropped as uncollected
        if messages.empty():
            self._read[event.session_hash] = time.monotonic()
        super().send_message(event, event_message)

    def _check_room(self, visitor: str, megabytes: float) -> None:
        """Raises LimitError if this visitor, or all together, fill their share of the queue."""
        size = Counter({visitor: max(megabytes, EVENT_MEGABYTES)})
        for event in self.event_ids_to_events.values():
            sent = event.request.scope.get(SIZE, 0) / 1e6
            size[visitor_of(event.request)] += max(sent, EVENT_MEGABYTES)
        unread = Counter()
        for session, messages in self.pending_messages_per_session.items():
            unread[self._visitors.get(session, "")] += messages.qsize()
        _check(EVENT_BYTES, size, visitor)
        _check(UNREAD, unread, visitor)

    def _remember(self, event: Event) -> None:
        """Forgets the state of a call without a page, and the oldest pages beyond the limits."""
        if event.session_hash == event._id:
            self._forget(event.session_hash)
            return
        pages = self._sessions.setdefault(visitor_of(event.request), OrderedDict())
        pages[event.session_hash] = None
        pages.move_to_end(event.session_hash)
        states, most = self.server_app.state_holder.session_data, HELD.value()
        while len(pages) > 1 and held_megabytes(states[p] for p in pages if p in states) > most:
            self._forget(pages.popitem(last=False)[0])
        surplus = STORE.megabytes() + PAGE_MEGABYTES * len(states) - CROWD_IN_MEMORY * HELD.value()
        for session in list(states)[:-1]:  # least recently used first
            if surplus <= 0:
                return
            surplus -= held_megabytes([states[session]])
            self._forget(session)

    def _forget(self, session: str) -> None:
        holder = self.server_app.state_holder
        with holder.lock:
            holder.session_data.pop(session, None)
            holder.time_last_used.pop(session, None)

    async def _sweep_for_ever(self) -> None:
        while not self.stopped:
            await asyncio.sleep(SWEEP_SECONDS)
            self._close_streams(time.monotonic() - STREAM_SECONDS)
            await self.sweep(time.monotonic() - UNREAD_SECONDS)
            self._blocked = False
            if await asyncio.to_thread(memory) > GROWN * self._memory:
                await asyncio.to_thread(return_memory)
                self._memory = await asyncio.to_thread(memory)

    def _close_streams(self, since: float) -> None:
        """Closes the streams of pages that wait for no answer and got none since this time."""
        for session, messages in self.pending_messages_per_session.items():
            idle = messages.empty() and self._read.get(session, 0.0) <= since
            if idle and self.pending_event_ids_session.get(session) == {STREAM}:
                last = ProcessCompletedMessage(event_id=STREAM, output={}, success=True)
                messages.put_nowait(last)

    async def sweep(self, since: float) -> None:
        """Drops the messages of sessions that have not emptied their queue since this time, unless
        it is empty now and an answer is pending; and the remaining data of sessions that are
        gone."""
        for session, messages in list(self.pending_messages_per_session.items()):
            waits = messages.empty() and self.pending_event_ids_session.get(session)
            if not waits and self._read.get(session, 0.0) <= since:
                await self.clean_events(session_hash=session)
                self.pending_messages_per_session.pop(session, None)
        waiting = self.pending_messages_per_session.keys()
        for book in (self._read, self._visitors, self.pending_event_ids_session):
            for session in book.keys() - waiting:
                book.pop(session, None)
        remembered = self.server_app.state_holder.session_data if self.server_app else {}
        for visitor, pages in list(self._sessions.items()):
            for session in [session for session in pages if session not in remembered]:
                del pages[session]
            if not pages:
                del self._sessions[visitor]


def _check(limit: Limit, amounts: Counter[str], visitor: str) -> None:
    limit.check(amounts[visitor])
    # each visitor's share is capped at the limit, which answers may exceed, so that no visitor
    # fills the place of others
    most = limit.value()
    if sum(min(amount, most) for amount in amounts.values()) > CROWD_IN_MEMORY * most:
        allowed = f"at most {CROWD_IN_MEMORY * most:,} ({limit.name})"
        message = f"Too many {limit.what}, of all visitors together: {allowed}."
        raise LimitError(message, "Try again in a moment.")
