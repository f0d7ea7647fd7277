"""The order of a page's events, and a stream of answers that stays open between them.

Gradio closes a page's stream with its last answer. An event that the browser sent before it learns
of this is answered into a closed stream, and the page sees that answer only with its next event
(gradio/client/js, `open_stream` and `close_stream`; in Gradio 6.31 `queue_data_helper`). And
Gradio answers one page's events side by side; its concurrency limit would make pages wait for each
other. Both are mended on the wire alone, by the messages that Gradio sends.
"""

import asyncio
import json
import re
from collections import OrderedDict
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

ENDED = re.compile(rb'"msg": ?"process_completed"')
CLOSED = re.compile(rb'^data: \{"msg": ?"close_stream"')
EVENT = re.compile(rb'"event_id": ?"(\w+)"')
HEAD = 300  # bytes of a message in which its kind and event stand
OPEN_SECONDS = 2.0  # a stream without events stays open: a browser has few connections for its tabs
TURN_SECONDS = 120.0  # after which the next event begins, whatever became of the last
MOST_PAGES = 5_000


@dataclass
class Page:
    """A page's events that are not answered yet: id -> the turn that ends with it, or None."""

    waiting: dict[str, asyncio.Lock | None] = field(default_factory=dict)
    turns: dict[str, asyncio.Lock] = field(default_factory=dict)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    early: set[str] = field(default_factory=set)
    """Events that were answered before Gradio had told their ids: short ones, on a busy machine."""

    def begun(self, event: str, turn: asyncio.Lock | None) -> None:
        """Notes an event's id, which Gradio has just told."""
        self.waiting[event] = turn
        self.came.set()
        if event in self.early:
            self.early.remove(event)
            self.given_up(event)

    def ended(self, event: str) -> None:
        """Notes that an event was answered: the next of its group may begin."""
        if event not in self.waiting:
            self.early.add(event)
        self.given_up(event)

    def given_up(self, event: str) -> None:
        """Ends an event's turn, whatever became of it."""
        turn = self.waiting.pop(event, None)
        if turn is not None and turn.locked():
            turn.release()


class Streams:
    """The pages that are open. turns: number of a function -> the group whose events take turns."""

    def __init__(self, app: ASGIApp, turns: dict[int, str]) -> None:
        self._app, self._turns = app, turns
        self._pages: OrderedDict[str, Page] = OrderedDict()

    async def join(self, body: dict, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes an event on, once its page's events before it in its group were answered."""
        page, group = self._page(str(body.get("session_hash"))), self._turns.get(body["fn_index"])
        turn = group and page.turns.setdefault(group, asyncio.Lock())
        if turn:
            await turn.acquire()
        event = ""

        async def noted(message: Message) -> None:
            nonlocal event
            if named := EVENT.search(message.get("body", b"")):
                event = named[1].decode()
                page.begun(event, turn)
                asyncio.get_running_loop().call_later(TURN_SECONDS, page.given_up, event)
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            if turn and not event:  # refused
                turn.release()

    async def stream(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a page's answers on; goes on where Gradio closed the stream but events wait."""
        page, begun, closing = self._page(session), False, None

        async def passed_on(message: Message) -> None:
            nonlocal begun, closing
            content = message.get("body", b"")
            if message["type"] == "http.response.start":
                if begun:
                    return
                begun = True
            elif CLOSED.match(content):
                closing = message
                return
            elif closing:
                return  # the end of a stream that goes on
            elif ENDED.search(content[:HEAD]) and (event := EVENT.search(content[:HEAD])):
                page.ended(event[1].decode())
            await send(message)

        while True:
            page.came.clear()
            await self._app(scope, receive, passed_on)
            if closing is None:  # the page is gone
                break
            if not page.waiting:
                try:
                    await asyncio.wait_for(page.came.wait(), OPEN_SECONDS)
                except TimeoutError:
                    await send(closing)
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                    return
            closing = None
        for event in list(page.waiting):
            page.given_up(event)

    def _page(self, session: str) -> Page:
        page = self._pages.setdefault(session, Page())
        self._pages.move_to_end(session)
        if len(self._pages) > MOST_PAGES:
            self._pages.popitem(last=False)
        return page

    def is_new(self, session: object) -> bool:
        """Whether no event of this page came before; Gradio then makes its state."""
        return session not in self._pages


def parsed(body: bytes) -> object:
    """A JSON body's value. Raises ValueError."""
    try:
        return json.loads(body) if body else None
    except RecursionError as error:
        raise ValueError("nested too deep") from error
