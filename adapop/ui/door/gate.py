"""The gate in front of Gradio: which requests are accepted, from whom, how many, and how large.

Gradio serves far more than this app needs: it fetches any public address on request, runs functions
outside its queue, and serves recordings, monitoring and an editor. Paths that are not listed below
are closed. A visitor is identified by the request's address; behind a proxy, uvicorn takes it from
X-Forwarded-For, but only if FORWARDED_ALLOW_IPS names that proxy.
"""

import asyncio
import ipaddress
import json
import logging
import os
import re
import socket
from collections import Counter, defaultdict
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapop.errors import LimitError
from adapop.limits import PROCESSOR, REQUEST, REQUESTS, UPLOAD, WRITTEN, is_public
from adapop.runs.files import FULL
from adapop.service.visitor_limits import Usage
from adapop.ui.door.pages import PAGES, STATIC, Pages
from adapop.ui.door.streams import Streams, parsed
from adapop.ui.redaction import place_of
from adapop.ui.visitors import visitor_of

API = "/gradio_api/"
READ = re.compile(
    API + r"(user|login_check|token|app_id|startup-events|queue/(data|status)|upload_progress"
    r"|heartbeat/\w{1,64}"
    r"|file=(?!/*https?:).*|call/(v2/)?\w{1,64}/\w{1,64})/?"
)
WRITES = re.compile(API + r"(queue/join|cancel|reset|upload|call/(v2/)?(\w{1,64}))/?")
FILES, UPLOADS = f"{API}file=", f"{API}upload"
ADDRESS = re.compile(r"\s*https?:", re.IGNORECASE)
FORM_MEGABYTES = 0.064  # added to a file by the form around it
SMALL = 4_096  # bytes: smaller bodies are parsed in the event loop, which is faster
DEPTH = 24  # most levels of nested values
VALUES_A_MEGABYTE = 100_000  # most values per megabyte of the request limit
READ_SECONDS = 60.0
# Gradio makes a page's state in the event loop: pages begin one after another, with a pause
PAUSE_SECONDS, MOST_PAUSE = 0.05, 1.0
# the networks of a Space's own proxies, which are trusted about a request's sender
SPACE_PROXIES = "127.0.0.1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10"
# the page has inline scripts, and Gradio evaluates strings; nothing is loaded from elsewhere
POLICY = (
    "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "object-src 'none'; style-src 'self' 'unsafe-inline'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'self' https://huggingface.co https://*.hf.space"
)
FILE_POLICY = "default-src 'none'; sandbox"  # of visitors' files
log = logging.getLogger(__name__)


class Gate:
    """An ASGI app behind these checks. usage: what each visitor has used. turns: see `Streams`.
    defaults: endpoint -> a function that completes the values of an older program."""

    def __init__(
        self,
        app: ASGIApp,
        usage: Usage,
        turns: dict[int, str],
        defaults: dict[str, Callable[[list], list]],
    ) -> None:
        self._app, self._usage, self._defaults = app, usage, defaults
        self._pages, self._streams = Pages(app), Streams(app, turns)
        self._open: Counter[str] = Counter()
        self._lines: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visitor, send = visitor_of(Request(scope)), _marked(scope, send)
        self._open[visitor] += 1
        try:
            if refusal := self._refusal(scope, visitor):
                await refusal(scope, receive, send)
            else:
                await self._answered(scope, receive, send, visitor)
        finally:
            self._open[visitor] -= 1
            self._open += Counter()  # drops visitors without requests

    def _refusal(self, scope: Scope, visitor: str) -> PlainTextResponse | None:
        path, method, headers = scope["path"], scope["method"], Headers(scope=scope)
        if not is_public() and not is_own_host(headers.get("host", "")):
            fix = "Open it by its address or as localhost, or add the name to ADAPOP_HOSTS."
            return PlainTextResponse(f"This app does not serve this host name. {fix}", 421)
        known = WRITES if method == "POST" else READ
        if not any(shape.fullmatch(path) for shape in (STATIC, PAGES, known)):
            return PlainTextResponse("This app has no page here and fetches no other address.", 404)
        if method not in ("GET", "HEAD", "OPTIONS") and not is_own_page(headers):
            return PlainTextResponse("This request comes from a page of another site.", 403)
        if method == "POST" and (refusal := _too_long(headers, path)):
            return refusal
        try:
            self._usage.check_open(self._open[visitor])
            self._usage.spend(REQUESTS, 1, visitor)
            if method == "POST":
                self._usage.check(PROCESSOR, visitor)
                self._usage.spend(WRITTEN, int(headers["content-length"]) / 1e6, visitor)
        except LimitError as error:
            return PlainTextResponse(str(error), 429)
        return None

    async def _answered(self, scope: Scope, receive: Receive, send: Send, visitor: str) -> None:
        """Sends the answer; 400 if Gradio raises, 507 if the disk is full."""
        begun = False

        async def sent(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app_for(scope, visitor)(scope, receive, sent)
        # any error; its text is not logged, because it may quote the user
        except Exception as error:  # noqa: BLE001
            log.error("a request failed: %s", place_of(error))
            words = "This request could not be understood."
            if full := isinstance(error, OSError) and error.errno in FULL:
                words = "The disk of this app is full; try again later."
            if not begun:
                await PlainTextResponse(words, 507 if full else 400)(scope, receive, sent)

    def _app_for(self, scope: Scope, visitor: str) -> ASGIApp:
        path, method, headers = scope["path"], scope["method"], Headers(scope=scope)
        if STATIC.fullmatch(path) or PAGES.fullmatch(path):
            return self._pages
        if "," in headers.get("range", ""):  # gradio fails on several ranges
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"range"]
        if method != "POST":
            session = QueryParams(scope["query_string"]).get("session_hash")
            if path.rstrip("/") == f"{API}queue/data" and session:
                return lambda *asgi: self._streams.stream(session, *asgi)
            return self._app
        if path.rstrip("/") == UPLOADS:
            most = int((UPLOAD.value() + FORM_MEGABYTES) * 1e6)
            return RequestBodyLimitMiddleware(_one_file(self._app), most)

        async def with_value(scope: Scope, receive: Receive, send: Send) -> None:
            async with asyncio.timeout(READ_SECONDS):
                body = await Request(scope, receive).body()
            fault, value = (
                _value(body) if len(body) <= SMALL else await asyncio.to_thread(_value, body)
            )
            if fault:
                await PlainTextResponse(fault, 400)(scope, receive, send)
                return
            await self._event(value, body, scope, receive, send, visitor)

        return RequestBodyLimitMiddleware(with_value, int(REQUEST.value() * 1e6))

    async def _event(
        self, value: object, body: bytes, scope: Scope, receive: Receive, send: Send, visitor: str
    ) -> None:
        """Passes an event on in its page's order; new pages of a public app with pauses."""
        _, _, endpoint = WRITES.fullmatch(scope["path"]).groups()
        value = value if isinstance(value, dict) else {}
        if endpoint in self._defaults and isinstance(value.get("data"), list):
            value["data"] = self._defaults[endpoint](value["data"])
            body = json.dumps(value).encode()
            length = (b"content-length", b"%d" % len(body))
            others = [pair for pair in scope["headers"] if pair[0] != b"content-length"]
            scope = {**scope, "headers": [*others, length]}
        app = self._app
        if scope["path"].rstrip("/").endswith("/join") and isinstance(value.get("fn_index"), int):
            app = lambda *asgi: self._streams.join(value, *asgi)  # noqa: E731
        elif endpoint is None:
            await app(scope, _again(body, receive), send)
            return
        if not is_public() or not (endpoint or self._streams.is_new(value.get("session_hash"))):
            await app(scope, _again(body, receive), send)
            return
        async with self._lines[visitor], self._lines[""]:
            loop = asyncio.get_running_loop()
            began = loop.time()
            await asyncio.sleep(PAUSE_SECONDS)
            late = loop.time() - began - PAUSE_SECONDS
            await asyncio.sleep(min(2 * late, MOST_PAUSE))  # a busy loop begins fewer
        await app(scope, _again(body, receive), send)
        if not self._lines[visitor].locked():
            del self._lines[visitor]


def _again(body: bytes, receive: Receive) -> Receive:
    """A receive function that replays a body. An empty one too: else FastAPI waits for ever."""
    left = [body]

    async def again() -> Message:
        if not left:
            return await receive()
        return {"type": "http.request", "body": left.pop(), "more_body": False}

    return again


def _one_file(app: ASGIApp) -> ASGIApp:
    """An app for forms of one file. Raises ValueError in it as soon as a second one comes."""

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
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

        await app(scope, one if boundary else receive, send)

    return counted


def _marked(scope: Scope, send: Send) -> Send:
    """A send function that adds security headers, and an encoding: without one, Gradio would
    compress the answer in the event loop."""
    policy = FILE_POLICY if scope["path"].startswith(FILES) else POLICY

    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Content-Security-Policy"] = policy
            headers.setdefault("Content-Encoding", "identity")
        await send(message)

    return marked


def _too_long(headers: Headers, path: str) -> PlainTextResponse | None:
    """The refusal of a body that is too large or does not declare its size, or None."""
    uploads = path.rstrip("/") == UPLOADS
    limit = UPLOAD if uploads else REQUEST
    length = headers.get("content-length", "")
    if not length.isdecimal():
        return PlainTextResponse("State the length of the request (Content-Length).", 411)
    if "transfer-encoding" in headers:  # HTTP ignores Content-Length beside it
        words = "Either state the length of the request or send it in chunks, not both."
        return PlainTextResponse(words, 400)
    if int(length) / 1e6 > limit.value() + FORM_MEGABYTES * uploads:
        return PlainTextResponse(f"At most {limit.value():,} MB at once here ({limit.name}).", 413)
    return None


def _value(body: bytes) -> tuple[str, object]:
    """(why no page sends this body or "", its value)."""
    try:
        value = parsed(body)
    except ValueError:
        return "This request is not JSON.", None
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
    ADAPOP_HOSTS (separated by commas; * for any)."""
    host = re.sub(r":\d*$", "", name).strip("[]").lower()
    named = os.environ.get("ADAPOP_HOSTS", "").lower().replace(",", " ").split()
    allowed = {"localhost", socket.gethostname().lower(), *named}
    if "*" in allowed or host in allowed or host.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def trust_own_proxies() -> None:
    """Makes a Space take senders' addresses from its own proxies, unless FORWARDED_ALLOW_IPS is
    set."""
    if os.environ.get("SPACE_ID"):
        os.environ.setdefault("FORWARDED_ALLOW_IPS", SPACE_PROXIES)
