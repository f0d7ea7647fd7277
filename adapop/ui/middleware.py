"""Middleware before gradio: no address is fetched for a visitor, nothing too large is read, uploads are counted.

Gradio fetches any public address on request: with `/gradio_api/file=http…`, or in the place of an uploaded file. We
need neither. A request's sender is known here by its address, which a proxy passes on and a stranger can forge.
"""

import re
from collections.abc import Mapping

import httpx  # gradio's own, not ours: what it downloads with, and here must not
from gradio import processing_utils
from gradio.context import LocalContext
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapop.errors import LimitError
from adapop.limits import UPLOAD
from adapop.service.rates import JOB, Admission

# addresses, the pages of others, and what the app has no use for: recordings, and its state kept under a link
CLOSED = re.compile(r"/(file|proxy)=/*https?:|/proxy=|/deep_link|/process_recording|/custom_component/", re.IGNORECASE)
FORM_BYTES = 64 * 1024  # that a form adds to the file in it


class Gate:
    """An app behind these checks. admission: counts uploads."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, _bounded(receive, _most()), send)
        else:
            await refusal(scope, receive, send)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        if CLOSED.search(scope["path"]):
            return PlainTextResponse("This app fetches no address.", 403)
        headers = Headers(scope=scope)
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > _most():
            return PlainTextResponse(f"At most {UPLOAD.value():,} MB at once here ({UPLOAD.name}).", 413)
        if scope["method"] == "POST" and scope["path"].rstrip("/").endswith("/upload"):
            try:
                self._admission.admit(JOB, _sender(headers, (scope.get("client") or ("",))[0]))
            except LimitError as error:
                return PlainTextResponse(str(error), 429)
        return None


class _NoNetwork(httpx.AsyncBaseTransport):
    """Connects to nothing."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("this app fetches no address", request=request)


def fetch_nothing() -> None:
    """From now on gradio fetches no address in the place of an uploaded file, public or not."""
    processing_utils.async_transport = _NoNetwork()


def visitor() -> str:
    """The sender of the event that is being handled, empty outside of one."""
    request = LocalContext.request.get(None)
    return _sender(request.headers, request.client.host if request.client else "") if request else ""


def _sender(headers: Mapping[str, str], host: str) -> str:
    return headers.get("x-forwarded-for") or host


def _most() -> int:
    return int(UPLOAD.value() * 1e6) + FORM_BYTES


def _bounded(receive: Receive, most: int) -> Receive:
    """The receiver of a body that does not say how long it is: after the limit it ends as if the sender had gone."""
    read = 0

    async def received() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        return message if read <= most else {"type": "http.disconnect"}

    return received
