"""The page and the shipped files, made once and then served from memory.

Gradio renders its page for each request and compresses each answer in the event loop. Here the page
is rendered once, for a host that does not exist, whose name is replaced by that of each request;
each answer is compressed once for an encoding, in a thread, by a public app before anybody asks.
"""

import asyncio
import gzip
import re
from collections.abc import Callable, Iterator
from functools import partial

import brotli
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapop.limits import is_public
from adapop.ui.parts.html import with_story

# each file by one path alone, so that no more is kept than Gradio ships
STATIC = re.compile(
    r"/(static|assets|svelte)(/[\w-][\w.-]*)+|/favicon\.ico|/(gradio_api/)?theme\.css|/robots\.txt"
    r"|/manifest\.json"
)
PAGES = re.compile(r"/|/config/?|/gradio_api/(info|openapi\.json)/?")
TEXT = re.compile(r"text/|application/(javascript|json|xml|manifest)|image/svg")
NO_HOST = b"adapop.invalid"  # stands for the page's own host in what was rendered
NAME = re.compile(r"[\w.\-:\[\]]{1,253}")
HOSTS = 16  # names of this app whose pages are kept compressed; others get them as they are
HASHED = "/assets/"  # files whose names change with their contents
NAMED = re.compile(rb"""["'/]([\w.-]{1,99}\.(?:js|css))["'?]""")  # such files, in a page or script
REST_SECONDS = 0.01  # between the files made ahead: the app answers meanwhile
PIECE = 65_536  # bytes sent at once, a step of the gate's: a slow reader's answer is not held whole
ENCODERS = {"br": lambda body: brotli.compress(body, quality=5), "gzip": gzip.compress}
Parts = tuple[bytes, ...]  # of a body: between them the app's own address belongs
Rendered = tuple[int, dict[str, str], Parts]  # status, headers, body


class Pages:
    """Answers GET and HEAD of pages and files from memory; app makes them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._made: dict[tuple, asyncio.Future] = {}  # (path,) rendered; with more, compressed
        self._origins = {b""}  # of what names no host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends an answer. A HEAD of the page is answered at once, and the page rendered then:
        Gradio asks for it when it starts, and a busy machine renders longer than it waits."""
        headers, path = Headers(scope=scope), scope["path"]
        if path == "/" and scope["method"] == "HEAD":
            self._once((path,), self._rendered, scope)
            if is_public():
                self._once(("ahead",), self._ahead, scope)
            await Response(media_type="text/html")(scope, receive, send)
            return
        status, fields, parts = await self._once((path,), self._rendered, scope)
        if path.startswith(HASHED) and status == 200:
            fields = fields | {"cache-control": "public, max-age=31536000, immutable"}
        if headers.get("if-none-match", "-") == fields.get("etag"):
            await Response(status_code=304, headers=fields)(scope, receive, send)
            return
        origin, encoding = origin_of(scope) if len(parts) > 1 else b"", "identity"
        of_text = status == 200 and TEXT.match(fields.get("content-type", ""))
        if of_text and self._is_known(origin):
            encoding = best_encoding(headers.get("accept-encoding", ""))
        if encoding != "identity":
            parts = await self._compressed(path, origin, encoding, parts)
        size = sum(map(len, parts)) + (len(parts) - 1) * len(origin)
        fields = fields | {"vary": "Accept-Encoding", "content-encoding": encoding}
        raw = Response(headers=fields | {"content-length": str(size)}).raw_headers
        await send({"type": "http.response.start", "status": status, "headers": raw})
        for piece in _pieces(parts if scope["method"] != "HEAD" else (), origin):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})

    async def _ahead(self, scope: Scope) -> None:
        """Makes the page, and in all encodings the files that it names, and that they name."""
        paths = ["/", "/theme.css"]
        for path in paths:  # which grows meanwhile
            status, _, parts = await self._once((path,), self._rendered, scope | {"path": path})
            for encoding in ENCODERS if status == 200 and path != "/" else ():
                await self._compressed(path, b"", encoding, parts)
            names = await asyncio.to_thread(NAMED.findall, b"".join(parts))
            named = dict.fromkeys(f"{HASHED}{name.decode()}" for name in names)
            paths += [one for one in named if one not in paths]
            await asyncio.sleep(REST_SECONDS)

    def _compressed(self, path: str, origin: bytes, encoding: str, parts: Parts) -> asyncio.Future:
        make = partial(asyncio.to_thread, lambda: (ENCODERS[encoding](origin.join(parts)),))
        return self._once((path, origin, encoding), make)

    def _is_known(self, origin: bytes) -> bool:
        """Whether an origin is one of the first: a stranger may invent any number of them."""
        if len(self._origins) < HOSTS:
            self._origins.add(origin)
        return origin in self._origins

    def _once(self, key: tuple, make: Callable, *values) -> asyncio.Future:
        """What is made of the values, once for a key; shielded, since others may wait for it."""
        if key not in self._made:
            self._made[key] = asyncio.ensure_future(make(*values))
        return asyncio.shield(self._made[key])

    async def _rendered(self, scope: Scope) -> Rendered:
        start, body, path = {}, bytearray(), scope["path"]

        async def receive() -> Message:
            await asyncio.Event().wait()  # no body and no disconnect

        async def send(message: Message) -> None:
            start.update(message)
            body.extend(message.get("body", b""))

        named = {"method": "GET", "headers": [(b"host", NO_HOST)], "query_string": b""}
        try:
            await self._app({**scope, **named, "scheme": "http"}, receive, send)
        finally:
            if start.get("status") != 200:  # is not kept
                del self._made[path,]
        pairs = [(name.decode().lower(), text.decode("latin-1")) for name, text in start["headers"]]
        left_out = ("content-length", "accept-ranges", "content-encoding")
        headers = {name: text for name, text in pairs if name not in left_out}
        whole = with_story(bytes(body)) if path == "/" else bytes(body)
        parts = whole.split(b"http://" + NO_HOST) if PAGES.fullmatch(path) else (whole,)
        return start["status"], headers, tuple(parts)


def origin_of(scope: Scope) -> bytes:
    """The address of the app that a request names, also behind a proxy."""
    headers = Headers(scope=scope)
    host = headers.get("x-forwarded-host", "").partition(",")[0].strip() or headers["host"]
    secure = "https" in (scope["scheme"], headers.get("x-forwarded-proto", ""))
    return f"http{'s' * secure}://{host if NAME.fullmatch(host) else 'localhost'}".encode()


def best_encoding(accepted: str) -> str:
    """The best of our encodings that an Accept-Encoding header accepts, "identity" for none."""
    offers = (offer.replace(" ", "").partition(";q=") for offer in accepted.split(","))
    acceptable = {name for name, _, weight in offers if weight.strip("0.") or not weight}
    return next((name for name in ENCODERS if name in acceptable), "identity")


def _pieces(parts: Parts, origin: bytes) -> Iterator[bytes]:
    for number, part in enumerate(parts):
        if number and origin:
            yield origin
        for start in range(0, len(part), PIECE):
            yield part[start : start + PIECE]
