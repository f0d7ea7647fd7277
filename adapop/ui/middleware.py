"""The gate in front of Gradio: which requests are accepted, from whom, how many, and how large.

Gradio serves far more than this app needs: it fetches any public address on request, runs functions
outside its queue, and serves recordings, monitoring and an editor. Paths that are not listed below
are closed. A visitor is identified by the request's address; behind a proxy, uvicorn takes it from
X-Forwarded-For, but only if FORWARDED_ALLOW_IPS names that proxy.
"""

import ipaddress
import logging
import os
import re
import socket
from functools import partial

import httpx  # Gradio downloads with it, see `fetch_nothing`
from gradio import processing_utils
from gradio.context import LocalContext
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapop.errors import LimitError
from adapop.limits import CONNECTIONS, REQUEST, UPLOAD, is_public
from adapop.runs.files import FULL
from adapop.service.visitor_limits import JOBS, PROCESSOR, REQUESTS, SERVED, Ledger
from adapop.ui.body import parsed
from adapop.ui.queue import SIZE
from adapop.ui.redaction import place_of
from adapop.ui.served import PAGES, STATIC, Served
from adapop.ui.visitors import network_of, refusing_slowly, visitor_of
from adapop.ui.wiring import toast

API = "/gradio_api/"
READ = re.compile(
    API + r"(user|login_check|token|app_id|startup-events|queue/(data|status)|upload_progress"
    r"|heartbeat/\w{1,64}"
    r"|file=(?!/*https?:).*|call/(v2/)?\w{1,64}/\w{1,64})/?"
)
WRITTEN = re.compile(API + r"(queue/join|cancel|reset|upload|call/(v2/)?\w{1,64})/?")
FILES = f"{API}file="
PAGE_COST = 100  # a page that must be rendered anew counts as this many requests
FORM_MEGABYTES = 0.064  # added to a file by the form around it
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
    """An ASGI app behind these checks. ledger: counts requests, uploads and connections."""

    def __init__(self, app: ASGIApp, ledger: Ledger) -> None:
        self._app, self._ledger = app, ledger
        cost = partial(ledger.spend, REQUESTS, PAGE_COST)
        self._served = Served(app, lambda scope: cost(visitor_of(Request(scope))))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visitor = visitor_of(Request(scope))
        send = self._marked(scope, visitor, send)
        try:
            with self._ledger.held(CONNECTIONS, visitor):
                if refusal := self._refusal(scope, visitor):
                    await refusing_slowly()
                    await refusal(scope, receive, send)
                else:
                    await self._answered(scope, receive, send, visitor)
        except LimitError as error:
            await PlainTextResponse(str(error), 429)(scope, receive, send)

    def _refusal(self, scope: Scope, visitor: str) -> PlainTextResponse | None:
        path, method, headers = scope["path"], scope["method"], Headers(scope=scope)
        if not is_public() and not is_own_host(headers.get("host", "")):
            fix = "Open it by its address or as localhost, or put the name into ADAPOP_HOSTS."
            return PlainTextResponse(f"This app does not answer to this name. {fix}", 421)
        known = WRITTEN if method == "POST" else READ
        if not any(shape.fullmatch(path) for shape in (STATIC, PAGES, known)):
            return PlainTextResponse("This app has nothing here, and fetches no address.", 404)
        if method not in ("GET", "HEAD", "OPTIONS") and not is_own_page(headers):
            return PlainTextResponse("A page of another site asks for this.", 403)
        uploads = _uploads(path)
        if method == "POST" and (refusal := _too_long(scope, headers, uploads)):
            return refusal
        try:
            self._ledger.check(SERVED, visitor)
            self._ledger.spend(REQUESTS, 1, visitor)
            if method == "POST":
                self._ledger.check(PROCESSOR, visitor)
            if uploads:
                self._ledger.spend(JOBS, 1, visitor)
        except LimitError as error:
            return PlainTextResponse(str(error), 429)
        return None

    async def _answered(self, scope: Scope, receive: Receive, send: Send, visitor: str) -> None:
        """Sends Gradio's answer; 400 if Gradio raises, 507 if the disk is full."""
        begun = False

        async def sent(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app_for(scope, visitor)(scope, receive, sent)
        except LimitError:
            raise
        # any error; its text is not logged, because it may quote the user
        except Exception as error:  # noqa: BLE001
            log.error("a request failed: %s", place_of(error))
            words = "This request could not be understood."
            if full := isinstance(error, OSError) and error.errno in FULL:
                words = "The disk of this app is full; try later."
            if not begun:
                await PlainTextResponse(words, 507 if full else 400)(scope, receive, send)

    def _marked(self, scope: Scope, visitor: str, send: Send) -> Send:
        """A send function that adds security headers and counts the bytes sent."""
        policy = FILE_POLICY if scope["path"].startswith(FILES) else POLICY

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Content-Security-Policy"] = policy
            elif size := len(message.get("body", b"")):
                self._ledger.charge(SERVED, size / 1e6, visitor)
            await send(message)

        return marked

    def _app_for(self, scope: Scope, visitor: str) -> ASGIApp:
        """The app for a request. Drops Accept-Encoding: Gradio would compress in the event loop."""
        path, method = scope["path"], scope["method"]
        if method in ("GET", "HEAD") and (STATIC.fullmatch(path) or PAGES.fullmatch(path)):
            return self._served
        ranges = Headers(scope=scope).get("range", "")
        # gradio fails on several ranges
        left_out = (b"accept-encoding", b"range" if "," in ranges else b"")
        scope["headers"] = [header for header in scope["headers"] if header[0] not in left_out]
        if method != "POST":
            return self._app
        if _uploads(path):
            most = int((UPLOAD.value() + FORM_MEGABYTES) * 1e6)
            return RequestBodyLimitMiddleware(self._app, most)

        async def with_value(scope: Scope, receive: Receive, send: Send) -> None:
            refusal, receive, seconds = await parsed(scope, receive)
            self._ledger.charge(PROCESSOR, seconds, visitor)
            await (refusal or self._app)(scope, receive, send)

        return RequestBodyLimitMiddleware(with_value, int(REQUEST.value() * 1e6))


def _uploads(path: str) -> bool:
    return path.rstrip("/").endswith("/upload")


def _too_long(scope: Scope, headers: Headers, uploads: bool) -> PlainTextResponse | None:
    """The refusal of a body that is too large or does not declare its size, or None. Records the
    size."""
    limit = UPLOAD if uploads else REQUEST
    length = headers.get("content-length", "")
    if not length.isdecimal():
        return PlainTextResponse("Say how long the request is (Content-Length).", 411)
    if "transfer-encoding" in headers:  # HTTP ignores Content-Length beside it
        words = "Say either how long the request is or send it in chunks, not both."
        return PlainTextResponse(words, 400)
    scope[SIZE] = int(length)
    if int(length) / 1e6 > limit.value() + FORM_MEGABYTES * uploads:
        return PlainTextResponse(f"At most {limit.value():,} MB at once here ({limit.name}).", 413)
    return None


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


class _NoNetwork(httpx.AsyncBaseTransport):
    """An HTTP transport that refuses every request."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise toast("This app fetches no address. Upload the file itself.")


def fetch_nothing() -> None:
    """Stops Gradio from fetching any address that is given instead of an uploaded file."""
    processing_utils.async_transport = _NoNetwork()


def visitor() -> str:
    """The sender of the event now being handled; empty outside events."""
    request = LocalContext.request.get(None)
    return network_of(request.client.host) if request and request.client else ""
