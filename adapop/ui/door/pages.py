"""The page and the shipped files, made once and then served from memory.

Gradio renders its page for each request and compresses each answer in the event loop. Here the page
is rendered once, for a host that does not exist, whose name is replaced by that of each request;
each answer is compressed once for an encoding, in a thread.
"""

import asyncio
import gzip
import re
from collections import OrderedDict
from dataclasses import dataclass, field, replace

import brotli
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapop.paths import ASSETS

STATIC = re.compile(
    r"/(static|assets|svelte)/.*|/favicon\.ico|/(gradio_api/)?theme\.css|/robots\.txt"
    r"|/manifest\.json"
)
PAGES = re.compile(r"/|/config/?|/gradio_api/(info|openapi\.json)/?")
TEXT = re.compile(r"text/|application/(javascript|json|xml|manifest)|image/svg")
NO_HOST = b"adapop.invalid"  # stands for the page's own host in what was rendered
NAME = re.compile(r"[\w.\-:\[\]]{1,253}")
HOSTS = 16  # names of this app whose pages are kept; others are served, and not compressed
HASHED = "/assets/"  # files whose names change with their contents
MOST_BYTES = 64_000_000  # more than all that gradio ships, in each encoding
PIECE = 65_536  # bytes sent at once: no slow reader makes the server hold more
EARLY = (ASSETS / "early.js").read_bytes()  # at the end of the page: what it reads exists there
ENCODERS = {"br": lambda body: brotli.compress(body, quality=5), "gzip": gzip.compress}


@dataclass(frozen=True)
class Answer:
    """An answer. bodies: by encoding, "identity" for the uncompressed one. compressed: whether it
    may be."""

    status: int
    headers: dict[str, str]
    bodies: dict[str, bytes] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    compressed: bool = True

    async def body(self, accepted: str) -> tuple[str, bytes]:
        """(encoding, bytes) in the best encoding that the browser accepts."""
        plain = self.bodies["identity"]
        worth = self.compressed and TEXT.match(self.headers.get("content-type", ""))
        worth = worth and len(plain) > 400
        offers = (offer.replace(" ", "").partition(";q=") for offer in accepted.split(","))
        wanted = {name for name, _, weight in offers if weight.strip("0.") or not weight}
        name = next((name for name in ENCODERS if worth and name in wanted), "identity")
        async with self.lock:
            if name not in self.bodies:
                self.bodies[name] = await asyncio.to_thread(ENCODERS[name], plain)
        return name, self.bodies[name]


def with_story(page: bytes) -> bytes:
    """The page with colours and a script at its end that show the Story before Gradio has
    loaded."""
    before, end, after = page.rpartition(b"</body>")
    theme = re.search(rb'"theme_hash": ?"(\w+)"', page)
    colours = b'<link rel="stylesheet" href="./theme.css?v=%s">' % theme[1] if theme else b""
    return before + colours + b"<script>" + EARLY + b"</script>" + end + after if end else page


class Pages:
    """Answers GET and HEAD of pages and files from memory; app makes them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._answers: OrderedDict[tuple, asyncio.Future[Answer]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends an answer. A HEAD of the page is answered at once, and the page rendered then:
        Gradio asks for it when it starts, and a busy machine renders longer than it waits."""
        headers, path = Headers(scope=scope), scope["path"]
        if path == "/" and scope["method"] == "HEAD":
            answer, encoding, body = Answer(200, {"content-type": "text/html"}), "identity", b""
            self._made(("/",), scope)
        else:
            answer = await self._answer(scope, headers)
            encoding, body = await answer.body(headers.get("accept-encoding", ""))
        extra = {"vary": "Accept-Encoding", "content-encoding": encoding}
        if path.startswith(HASHED) and answer.status == 200:
            extra["cache-control"] = "public, max-age=31536000, immutable"
        if "etag" in answer.headers and headers.get("if-none-match") == answer.headers["etag"]:
            await Response(status_code=304, headers=answer.headers | extra)(scope, receive, send)
            return
        self._bound()
        every = answer.headers | extra | ({"content-length": str(len(body))} if body else {})
        raw = [(name.encode(), value.encode("latin-1")) for name, value in every.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": raw})
        for start in range(0, len(body), PIECE) if scope["method"] != "HEAD" else ():
            piece = body[start : start + PIECE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)  # others have their turn, and a disconnect takes effect
        await send({"type": "http.response.body", "body": b""})

    async def _answer(self, scope: Scope, headers: Headers) -> Answer:
        """The answer for a path; of a page with the request's own host."""
        path = scope["path"]
        answer = await self._made((path,), scope)
        if not PAGES.fullmatch(path) or answer.status != 200:
            return answer
        host = headers.get("x-forwarded-host", "").partition(",")[0].strip() or headers["host"]
        secure = "https" in (scope["scheme"], headers.get("x-forwarded-proto", ""))
        origin = f"http{'s' * secure}://{host if NAME.fullmatch(host) else 'localhost'}".encode()
        if (key := (path, origin)) not in self._answers:
            page = answer.bodies["identity"].replace(b"http://" + NO_HOST, origin)
            of_host = replace(answer, bodies={"identity": page}, lock=asyncio.Lock())
            if sum(len(key) > 1 for key in self._answers) >= HOSTS:  # invented by somebody
                return replace(of_host, compressed=False)
            self._answers[key] = asyncio.get_running_loop().create_future()
            self._answers[key].set_result(of_host)
        self._answers.move_to_end(key)
        return self._answers[key].result()

    async def _kept(self, made: asyncio.Future[Answer], key: tuple) -> Answer:
        try:
            answer = await asyncio.shield(made)  # others may wait for the same answer
        except Exception:
            self._answers.pop(key, None)
            raise
        if answer.status != 200:
            self._answers.pop(key, None)
        return answer

    def _made(self, key: tuple, scope: Scope) -> asyncio.Future[Answer]:
        if key not in self._answers:
            named = [(b"host", NO_HOST)]
            request = {**scope, "method": "GET", "headers": named, "query_string": b""}
            self._answers[key] = asyncio.ensure_future(self._rendered(request | {"scheme": "http"}))
        self._answers.move_to_end(key)
        return asyncio.ensure_future(self._kept(self._answers[key], key))

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
        return Answer(start["status"], headers, {"identity": body})

    def _bound(self) -> None:
        """Drops the least recently used answers until the rest fits into the limit."""
        sizes = [sum(map(len, one.result().bodies.values())) for one in self._answers.values()
                 if one.done() and not one.exception()]  # fmt: skip
        for _size in sizes:
            if sum(sizes) <= MOST_BYTES:
                return
            sizes = sizes[1:]
            self._answers.popitem(last=False)
