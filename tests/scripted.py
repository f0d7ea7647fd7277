"""A real HTTP server whose replies a test scripts: what services say in good and in bad weather."""

import contextlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Asked:
    """One request as it arrived. query: the last value of each parameter. body: parsed JSON, None without one."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: object
    time: float


@dataclass(frozen=True)
class Reply:
    """One reply. body: bytes as they are, a string as UTF-8, anything else as JSON. seconds: wait before answering.

    cut: announce the whole body but send only this many bytes.
    """

    body: object = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cut: int | None = None


def _parsed(content: bytes) -> object:
    """A JSON body, or the list of the objects of one with an object a line."""
    try:
        return json.loads(content)
    except ValueError:
        return [json.loads(line) for line in content.splitlines()]


class ScriptedServer:
    """`replies` are given out in order; when none is left, `answer` is called with each request.

    asked: every request so far. url: where it listens.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.replies: list[Reply] = []
        self.answer: Callable[[Asked], object] = lambda request: Reply("nothing is scripted", 404)
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _next(self, request: Asked) -> Reply:
        with self._lock:
            self.asked.append(request)
            reply = self.replies.pop(0) if self.replies else self.answer(request)
        return reply if isinstance(reply, Reply) else Reply(reply)

    def _handler(self):
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                parts = urlsplit(self.path)
                length = int(self.headers.get("Content-Length") or 0)
                body = _parsed(self.rfile.read(length)) if length else None
                query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
                headers = {name.lower(): value for name, value in self.headers.items()}
                self._send(scripted._next(Asked(self.command, parts.path, query, headers, body, time.monotonic())))

            do_HEAD = do_POST = do_GET

            def _send(self, reply: Reply) -> None:
                time.sleep(reply.seconds)
                content = reply.body if isinstance(reply.body, (bytes, str)) else json.dumps(reply.body)
                content = content.encode() if isinstance(content, str) else content
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                with contextlib.suppress(OSError):  # the client gave up, as some tests want it to
                    self.wfile.write(content[: reply.cut])

            def log_message(self, *_) -> None:
                pass

        return Handler
