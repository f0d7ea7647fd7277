"""The order of a page's events, and a stream of answers that stays open between them.

Gradio closes a page's stream with its last answer: what was sent before the page learns of it is
answered into a closed stream, until github.com/gradio-app/gradio/pull/13585 mends that (this file
may go then, and `test_browser_streams.py` fails). It also answers a page's events side by side.
"""

import asyncio
import re
from collections import defaultdict
from contextlib import nullcontext, suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

EVENT = re.compile(rb'"event_id":"(\w+)"')
ENDED = re.compile(rb'data: \{"msg":"process_completed",.{0,99}?"event_id":"(\w+)"')
CLOSED = b'data: {"msg":"close_stream"'
OPEN_SECONDS = 2.0  # a stream without events stays open: a browser has few connections for its tabs
TURN_SECONDS = 120.0  # after which the next event begins, whatever became of the last


class Page:
    """An open page. turns: a function's number -> its group. events: id -> set once answered."""

    def __init__(self, app: ASGIApp, turns: dict[int, str]) -> None:
        self.app, self.turns = app, turns
        self.lines = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self.events, self.came = dict[bytes, asyncio.Event](), asyncio.Event()

    async def join(self, body: dict, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes an event on, once the events before it in its group were answered."""
        group, answered = self.turns.get(body.get("fn_index")), []

        async def noted(message: Message) -> None:
            for event in EVENT.findall(message.get("body", b"")):
                answered.append(self._told(event))
                self.came.set()
            await send(message)

        async with self.lines[group] if group else nullcontext():
            await self.app(scope, receive, noted)
            if group and answered:
                with suppress(TimeoutError):
                    await asyncio.wait_for(answered[0].wait(), TURN_SECONDS)

    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes answers on; goes on where Gradio closed the stream but events wait."""
        begun, closing = False, None

        async def passed_on(message: Message) -> None:
            nonlocal begun, closing
            content = message.get("body", b"")
            closing = message if content.startswith(CLOSED) else closing
            if closing or (begun and message["type"] == "http.response.start"):
                return  # the end of a stream that goes on, or its new beginning
            begun = True
            if event := ENDED.match(content):
                self._told(event[1]).set()
            await send(message)

        await self.app(scope, receive, passed_on)
        while closing and await self._goes_on():
            closing = None
            await self.app(scope, receive, passed_on)
        if closing:
            await send(closing | {"more_body": False})
        for answered in self.events.values():  # the page is gone
            answered.set()

    def _told(self, event: bytes) -> asyncio.Event:
        """What Gradio tells twice, in either order: an event's id, and that it was answered."""
        return self.events.pop(event, None) or self.events.setdefault(event, asyncio.Event())

    async def _goes_on(self) -> bool:
        """Whether an event waits, or comes in a moment."""
        self.came.clear()
        waits = not all(answered.is_set() for answered in self.events.values())
        with suppress(TimeoutError):
            return waits or await asyncio.wait_for(self.came.wait(), OPEN_SECONDS)
        return False
