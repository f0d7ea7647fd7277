"""The gate in front of Gradio: which requests are accepted, from whom, how many, and how large.

Gradio serves more than this app needs: it fetches any address on request, runs functions outside
its queue, and serves recordings, monitoring and an editor. Paths not listed below are closed.

What a visitor asks passes a line of the visitor's own, in which one step goes on in each round of
the event loop: a request begins, or a piece of an answer leaves. So nobody waits for more than one
step of each other visitor.
"""

import asyncio
import ipaddress
import json
import logging
import os
import re
import socket
from contextlib import suppress
from functools import lru_cache, partial
from time import monotonic
from weakref import WeakValueDictionary

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapop.errors import LimitError
from adapop.limits import PROCESSOR, REQUEST, REQUESTS, UPLOAD, WRITTEN, is_public
from adapop.runs.files import FULL
from adapop.service.visitor_limits import Usage
from adapop.ui.door.pages import PAGES, STATIC, Pages
from adapop.ui.door.streams import Page
from adapop.ui.redaction import place_of
from adapop.ui.visitors import visitor_of

API, FILES, UPLOADS = "/gradio_api/", "/gradio_api/file=", "/gradio_api/upload"
READ = re.compile(
    API + r"(user|login_check|token|app_id|startup-events|queue/(data|status)|upload_progress"
    r"|heartbeat/\w{1,64}|file=(?!/*https?:).*|call/(v2/)?\w{1,64}/\w{1,64})/?"
)
WRITES = re.compile(API + r"(queue/join|cancel|reset|upload|call/(v2/)?\w{1,64})/?|/mcp")
ADDRESS = re.compile(r"\s*https?:", re.IGNORECASE)
FORM_MEGABYTES = 0.064  # added to a file by the form around it
SMALL = 4_096  # bytes: smaller bodies are parsed in the event loop, which is faster
DEPTH = 24  # most levels of nested values
VALUES_A_MEGABYTE = 100_000  # most values per megabyte of the request limit
READ_SECONDS = 60.0
REST, MOST_REST = 4.0, 1.0  # rounds of the loop before a next event, seconds at most
MOST_PAGES = 5_000  # whose events' order is known
# the page has inline scripts, and Gradio evaluates strings; nothing is loaded from elsewhere
POLICY = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "object-src 'none'; style-src 'self' 'unsafe-inline'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'self' https://huggingface.co https://*.hf.space"
)
FILE_POLICY = "default-src 'none'; sandbox"  # of visitors' files
log = logging.getLogger(__name__)


class Gate:
    """An ASGI app behind these checks. usage: what each visitor has used. turns: see `Page`."""

    def __init__(self, app: ASGIApp, usage: Usage, turns: dict[int, str]) -> None:
        self._app, self._usage = app, usage
        self._pages = Pages(app)
        self._page = lru_cache(MOST_PAGES)(lambda session: Page(app, turns))
        self._lines: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the answer or a refusal; 400 if Gradio raises, 507 if the disk is full."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visitor, begun = visitor_of(Request(scope)), False
        line = self._lines.setdefault(visitor, asyncio.Lock())

        async def sent(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                _mark(message, scope)
            else:
                await _step(line)
            await send(message)

        await _step(line, REST if scope["method"] == "POST" else 0)
        try:
            with self._usage.open(visitor):
                app = self._refusal(scope, visitor) or self._app_for(scope)
                upload = scope["path"].rstrip("/") == UPLOADS
                await app(scope, _of_one_file(scope, receive) if upload else receive, sent)
        except LimitError as error:
            await PlainTextResponse(str(error), 429)(scope, receive, sent)
        # any error; its text is not logged, because it may quote the user
        except Exception as error:  # noqa: BLE001
            log.error("a request failed: %s", place_of(error))
            words = "This request could not be understood; gradio_api/info says what can be asked."
            if full := isinstance(error, OSError) and error.errno in FULL:
                words = "The disk of this app is full; try again later."
            if not begun:
                await PlainTextResponse(words, 507 if full else 400)(scope, receive, sent)

    def _refusal(self, scope: Scope, visitor: str) -> PlainTextResponse | None:
        """The refusal of a request, or None. Raises LimitError: this visitor asked too much."""
        path, method, headers = scope["path"], scope["method"], Headers(scope=scope)
        if not is_own_host(headers.get("host", "")):
            fix = "Open it by its address or as localhost, or add the name to ADAPOP_HOSTS."
            return PlainTextResponse(f"This app does not serve this host name. {fix}", 421)
        known = WRITES if method == "POST" else READ
        if not any(shape.fullmatch(path) for shape in (STATIC, PAGES, known)):
            return PlainTextResponse("This app has no such page, and opens no other address.", 404)
        if method not in ("GET", "HEAD", "OPTIONS") and not is_own_page(headers):
            return PlainTextResponse("This request comes from a page of another site.", 403)
        if method == "POST" and (refusal := _too_long(headers, path)):
            return refusal
        self._usage.spend(REQUESTS, 1, visitor)
        if method == "POST":
            self._usage.check(PROCESSOR, visitor)
            self._usage.spend(WRITTEN, int(headers["content-length"]) / 1e6, visitor)
        return None

    def _app_for(self, scope: Scope) -> ASGIApp:
        path = scope["path"].rstrip("/")
        if STATIC.fullmatch(scope["path"]) or PAGES.fullmatch(scope["path"]):
            return self._pages
        if scope["method"] == "POST" and path != UPLOADS:
            return self._event
        session = QueryParams(scope["query_string"]).get("session_hash")
        if path == f"{API}queue/data" and session:
            return self._page(session).stream
        return self._app

    async def _event(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a JSON body on that a page might send; an event of a page in its page's order."""
        async with asyncio.timeout(READ_SECONDS):
            body = await Request(scope, receive).body()
        left, small = [body], len(body) <= SMALL
        fault, value = _value(body) if small else await asyncio.to_thread(_value, body)

        async def again() -> Message:
            if not left:
                return await receive()
            return {"type": "http.request", "body": left.pop(), "more_body": False}

        app: ASGIApp = self._app
        if fault:
            app = PlainTextResponse(fault, 400)
        elif scope["path"].rstrip("/") == f"{API}queue/join" and isinstance(value, dict):
            app = partial(self._page(value.get("session_hash")).join, value)
        await app(scope, again, send)


async def _step(line: asyncio.Lock, rest: float = 0.0) -> None:
    """Waits for the line's next round of the event loop, and then for so many times as long: a busy
    loop begins fewer events."""
    async with line:
        began = monotonic()
        await asyncio.sleep(0)
        if rest:
            await asyncio.sleep(min(rest * (monotonic() - began), MOST_REST))


def _of_one_file(scope: Scope, receive: Receive) -> Receive:
    """A receive function that raises ValueError as soon as the second file of a form comes."""
    boundary = Headers(scope=scope).get("content-type", "").partition("boundary=")[2]
    line, tail, count = b"--" + boundary.strip('"').encode(), b"", 0

    async def one() -> Message:
        nonlocal tail, count
        message = await receive()
        content = tail + message.get("body", b"")
        count += content.count(line)
        tail = content[len(content) - len(line) + 1 :]
        if count > 2:  # before the file, and at the end
            raise ValueError("a form of several files")
        return message

    return one if boundary else receive


def _mark(message: Message, scope: Scope) -> None:
    """Adds security headers to the start of an answer, and an encoding: without one, Gradio would
    compress the answer in the event loop."""
    headers = MutableHeaders(scope=message)
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Content-Security-Policy"] = FILE_POLICY if scope["path"].startswith(FILES) else POLICY
    headers.setdefault("Content-Encoding", "identity")


def _too_long(headers: Headers, path: str) -> PlainTextResponse | None:
    """The refusal of a body that is too large or does not declare its size, or None. The server
    reads no more of a body than was declared."""
    uploads = path.rstrip("/") == UPLOADS
    limit = UPLOAD if uploads else REQUEST
    length = headers.get("content-length", "")
    if not length.isdecimal() or "transfer-encoding" in headers:  # beside which a length is ignored
        words = "State the length of the request (Content-Length), and do not send it in chunks."
        return PlainTextResponse(words, 411)
    if int(length) / 1e6 > limit.value() + FORM_MEGABYTES * uploads:
        return PlainTextResponse(f"At most {limit.value():,} MB are allowed ({limit.name}).", 413)
    return None


def _value(body: bytes) -> tuple[str, object]:
    """(why no page sends this body or "", its value)."""
    try:
        value = json.loads(body) if body else None
    except (ValueError, RecursionError):
        return "This request is not JSON, or is nested too deep.", None
    level, count, depth = [value], 1, 0
    while level:
        depth += 1
        if depth > DEPTH or count > REQUEST.value() * VALUES_A_MEGABYTE:
            return f"This request holds too many values, or is nested deeper than {DEPTH}.", None
        nested = [one for one in level if isinstance(one, (dict, list))]
        files = (one.get("path") for one in nested if isinstance(one, dict))
        if any(isinstance(path, str) and ADDRESS.match(path) for path in files):
            return "This request names an address. Upload the file itself.", None
        level = [part for one in nested for part in (one.values() if type(one) is dict else one)]
        count += len(level)
    return "", value


def is_own_page(headers: Headers) -> bool:
    """Whether a request comes from a page of this app or from outside any page, by the browser's
    headers. Sec-Fetch-Site comes first: it stays valid behind a proxy that changes the Host."""
    if site := headers.get("sec-fetch-site"):
        return site in ("same-origin", "none")
    origin, own = headers.get("origin"), (headers.get("host"), headers.get("x-forwarded-host"))
    return origin is None or origin.partition("://")[2] in own


def is_own_host(name: str) -> bool:
    """Whether a request's Host is this machine, not a foreign name made to resolve to it (DNS
    rebinding). Accepted: any IP address, localhost, the machine's own name, and the names in
    ADAPOP_HOSTS (separated by commas; * for any). A public app has whatever names lead to its
    proxy, unless ADAPOP_HOSTS says which."""
    host = re.sub(r":\d*$", "", name).strip("[]").lower()
    default = "*" if is_public() else ""
    named = (os.environ.get("ADAPOP_HOSTS") or default).lower().replace(",", " ").split()
    allowed = {"localhost", socket.gethostname().lower(), *named}
    if "*" in allowed or host in allowed or host.endswith(".localhost"):
        return True
    with suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    return False
