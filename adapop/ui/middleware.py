"""The gate in front of Gradio: which requests come in, from whom, how many, and how large.

Gradio serves far more than this app needs: it fetches any public address on request, runs functions beside its queue,
serves recordings, monitoring and an editor. What is not on the list below is closed. A visitor is the address that a
request comes from; behind a proxy, uvicorn takes it from X-Forwarded-For, and only where the connection comes from a
proxy that FORWARDED_ALLOW_IPS names.
"""

import ipaddress
import logging
import os
import re
import socket
import traceback

import gradio as gr
import httpx  # gradio's own, not ours: what it downloads with, and here must not
from gradio import processing_utils
from gradio.context import LocalContext
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapop.errors import LimitError
from adapop.limits import CONNECTIONS, REQUEST, UPLOAD, is_public
from adapop.service.ledger import JOBS, REQUESTS, SENT, Ledger
from adapop.ui.queue import SIZE, refusing_slowly, visitor_of

API = "/gradio_api/"
STATIC = re.compile(r"/(static|assets|svelte)/.*|/favicon\.ico|/(gradio_api/)?theme\.css|/robots\.txt|/manifest\.json")
PAGES = re.compile(r"/|/config/?|/gradio_api/(info|openapi\.json)/?")  # written anew for each request
READ = re.compile(
    API + r"(user|login_check|token|app_id|startup-events|queue/(data|status)|upload_progress|heartbeat/\w{1,64}"
    r"|file=(?!/*https?:).*|call/(v2/)?\w{1,64}/\w{1,64})/?"
)
WRITTEN = re.compile(API + r"(queue/join|cancel|reset|upload|call/(v2/)?\w{1,64})/?")
PAGE_COST = 20  # requests that one page counts as
FORM_MEGABYTES = 0.064  # that a form adds to the file in it
# the networks of a Space's own proxies: what they say of a request's sender is believed
SPACE_PROXIES = "127.0.0.1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10"
log = logging.getLogger(__name__)


class Gate:
    """An app behind these checks. ledger: where requests, uploads and connections are written down."""

    def __init__(self, app: ASGIApp, ledger: Ledger) -> None:
        self._app = app
        self._ledger = ledger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visitor = visitor_of(Request(scope))
        try:
            with self._ledger.held(CONNECTIONS, visitor):
                if refusal := self._refusal(scope, visitor):
                    await refusing_slowly()
                    await refusal(scope, receive, send)
                else:
                    await self._answered(scope, receive, send)
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
        uploads = path.rstrip("/").endswith("/upload")
        if method == "POST" and (refusal := _too_long(scope, headers, uploads)):
            return refusal
        try:
            if not STATIC.fullmatch(path):
                self._ledger.spend(REQUESTS, PAGE_COST if PAGES.fullmatch(path) else 1, visitor)
            if uploads:
                self._ledger.spend(JOBS, visitor=visitor)
            elif method == "POST":  # before it is read: half a megabyte of brackets takes half a second
                self._ledger.spend(SENT, scope[SIZE] / 1e6, visitor)
        except LimitError as error:
            return PlainTextResponse(str(error), 429)
        return None

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What Gradio answers; where it fails on a request that makes no sense, that it does."""
        begun = False

        async def sent(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        if "," in Headers(scope=scope).get("range", ""):  # which Gradio fails on
            scope["headers"] = [header for header in scope["headers"] if header[0] != b"range"]
        try:
            await self._app(scope, receive, sent)
        except Exception as error:  # noqa: BLE001  whatever it is; the log gets no text: that may quote what the user sent
            log.error(
                "a request failed: %s\n%s", type(error).__name__, "".join(traceback.format_tb(error.__traceback__))
            )
            if not begun:
                await PlainTextResponse("This request could not be understood.", 400)(scope, receive, send)


def _too_long(scope: Scope, headers: Headers, uploads: bool) -> PlainTextResponse | None:
    """The refusal of a body that is larger than it may be, or does not say how large it is. Writes the size down."""
    limit = UPLOAD if uploads else REQUEST
    length = headers.get("content-length", "")
    if not length.isdecimal():
        return PlainTextResponse("Say how long the request is (Content-Length).", 411)
    scope[SIZE] = int(length)
    if int(length) / 1e6 > limit.value() + FORM_MEGABYTES * uploads:
        return PlainTextResponse(f"At most {limit.value():,} MB at once here ({limit.name}).", 413)
    return None


def is_own_host(name: str) -> bool:
    """Whether a request's Host is this machine, and not a stranger's name that was made to lead here (DNS rebinding).

    This machine is any address, localhost, its own name, and what ADAPOP_HOSTS names (separated by commas; * for any).
    """
    host = re.sub(r":\d*$", "", name).strip("[]").lower()
    allowed = {each.strip().lower() for each in os.environ.get("ADAPOP_HOSTS", "").split(",")} - {""}
    if "*" in allowed or host in allowed | {"localhost", socket.gethostname().lower()} or host.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def trust_own_proxies() -> None:
    """From now on a Space believes its own proxies about who sends a request, unless FORWARDED_ALLOW_IPS is set."""
    if os.environ.get("SPACE_ID"):
        os.environ.setdefault("FORWARDED_ALLOW_IPS", SPACE_PROXIES)


class _NoNetwork(httpx.AsyncBaseTransport):
    """Connects to nothing."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise gr.Error("This app fetches no address. Upload the file itself.", duration=None)


def fetch_nothing() -> None:
    """From now on gradio fetches no address in the place of an uploaded file, public or not."""
    processing_utils.async_transport = _NoNetwork()


def visitor() -> str:
    """The sender of the event that is being handled, empty outside of one."""
    request = LocalContext.request.get(None)
    return request.client.host if request and request.client else ""
