"""The page and the shipped files, rendered and compressed once and then served from memory.

Gradio renders its page for each request, and compresses each answer in the event loop. Here each
answer is requested from Gradio once, and compressed once per encoding, in a thread.
"""

import asyncio
import gzip
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

import brotli
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapop.paths import ASSETS
from adapop.ui.visitors import visitor_of

STATIC = re.compile(
    r"/(static|assets|svelte)/.*|/favicon\.ico|/(gradio_api/)?theme\.css|/robots\.txt"
    r"|/manifest\.json"
)
PAGES = re.compile(r"/|/config/?|/gradio_api/(info|openapi\.json)/?")
TEXT = re.compile(r"text/|application/(javascript|json|xml|manifest)|image/svg")
# headers that decide the addresses in a page
NAMES = (b"host", b"x-forwarded-host", b"x-forwarded-proto", b"x-gradio-server")
HASHED = "/assets/"  # files whose names change with their contents
MOST_BYTES = 64_000_000  # more than all that gradio ships, in each encoding
SENT_AT_ONCE = 12  # answers to one visitor; a browser opens six connections
PIECE = 65_536  # bytes sent at once: no slow reader makes the server hold more
# at the end of the page: what it reads exists there
EARLY = (ASSETS / "early.js").read_bytes()
ENCODERS = {"br": lambda body: brotli.compress(body, quality=5), "gzip": gzip.compress}


@dataclass(frozen=True)
class Answer:
    """The app's answer for one address. bodies: by encoding, "" for the uncompressed one."""

    status: int
    headers: dict[str, str]
    bodies: dict[str, bytes] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def size(self) -> int:
        """Size of all bodies in bytes."""
        return sum(map(len, self.bodies.values()))

    async def body(self, accepted: str) -> tuple[str, bytes]:
        """(encoding, bytes) in the best encoding that the browser accepts."""
        worth = TEXT.match(self.headers.get("content-type", "")) and len(self.bodies[""]) > 400
        offers = (offer.replace(" ", "").partition(";q=") for offer in accepted.split(","))
        wanted = {name for name, _, weight in offers if weight.strip("0.") or not weight}
        name = next((name for name in ENCODERS if name in wanted), "") if worth else ""
        async with self.lock:
            if name not in self.bodies:
                self.bodies[name] = await asyncio.to_thread(ENCODERS[name], self.bodies[""])
        return name, self.bodies[name]


def with_story(page: bytes) -> bytes:
    """The page with colours and a script at its end that show the Story before Gradio has
    loaded."""
    before, end, after = page.rpartition(b"</body>")
    theme = re.search(rb'"theme_hash": ?"(\w+)"', page)
    colours = b'<link rel="stylesheet" href="./theme.css?v=%s">' % theme[1] if theme else b""
    return before + colours + b"<script>" + EARLY + b"</script>" + end + after if end else page


class Served:
    """Answers GET and HEAD of page and files from memory. on_render: called before a page is
    rendered; may raise."""

    def __init__(self, app: ASGIApp, on_render: Callable[[Scope], None]) -> None:
        self._app = app
        self._on_render = on_render
        self._answers: OrderedDict[tuple, asyncio.Task[Answer]] = OrderedDict()
        # visitor -> limit of answers sent to it at once
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, path = Headers(scope=scope), scope["path"]
        named = tuple(pair for pair in scope["headers"] if pair[0] in NAMES)
        key = (path, scope["scheme"], named) if PAGES.fullmatch(path) else (path,)
        answer = await self._answer(key, scope, named)
        encoding, body = await answer.body(headers.get("accept-encoding", ""))
        self._bound()
        extra = {"vary": "Accept-Encoding"} | ({"content-encoding": encoding} if encoding else {})
        if path.startswith(HASHED) and answer.status == 200:
            extra["cache-control"] = "public, max-age=31536000, immutable"
        if "etag" in answer.headers and headers.get("if-none-match") == answer.headers["etag"]:
            await Response(status_code=304, headers=answer.headers | extra)(scope, receive, send)
            return
        length = {"content-length": str(len(body))}
        every = answer.headers | extra | length
        raw = [(name.encode(), value.encode("latin-1")) for name, value in every.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": raw})
        pieces = range(0, len(body), PIECE) if scope["method"] != "HEAD" else ()
        turn = self._turns.setdefault(visitor_of(Request(scope)), asyncio.Semaphore(SENT_AT_ONCE))
        async with turn:
            for start in pieces:
                piece = {"body": body[start : start + PIECE], "more_body": True}
                await send({"type": "http.response.body", **piece})
                # lets a disconnect take effect: otherwise each piece logs a line
                await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})

    async def _answer(self, key: tuple, scope: Scope, named: tuple) -> Answer:
        if key not in self._answers:
            if PAGES.fullmatch(scope["path"]):
                self._on_render(scope)
            request = {**scope, "method": "GET", "headers": list(named), "query_string": b""}
            self._answers[key] = asyncio.ensure_future(self._rendered(request))
        self._answers.move_to_end(key)
        try:
            # shielded: others may wait for the same answer
            answer = await asyncio.shield(self._answers[key])
        except Exception:
            self._answers.pop(key, None)
            raise
        if answer.status != 200:
            self._answers.pop(key, None)
        return answer

    async def _rendered(self, scope: Scope) -> Answer:
        start, pieces = {}, []

        async def receive() -> Message:
            await asyncio.Event().wait()  # no body and no disconnect

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                pieces.append(message.get("body", b""))

        await self._app(scope, receive, send)
        pairs = [(name.decode().lower(), text.decode("latin-1")) for name, text in start["headers"]]
        left_out = ("content-length", "accept-ranges")
        headers = {name: text for name, text in pairs if name not in left_out}
        body = b"".join(pieces)
        body = with_story(body) if scope["path"] == "/" else body
        return Answer(start["status"], headers, {"": body})

    def _bound(self) -> None:
        """Drops the least recently used answers until the rest fits into the limit."""
        size = sum(map(_size_of, self._answers.values()))
        while size > MOST_BYTES and len(self._answers) > 1:
            _, task = self._answers.popitem(last=False)
            size -= _size_of(task)


def _size_of(task: asyncio.Task[Answer]) -> int:
    """Bytes of an answer, 0 until the app has given it."""
    return task.result().size if task.done() and not task.exception() else 0
