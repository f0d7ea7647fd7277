"""Calls the running app over plain HTTP, as programs and pages do.

A script that imports this first finds the package and the helpers of the tests, wherever it was started.
"""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

PATIENCE_SECONDS = 30
NOBODY: Mapping[str, str] = {}


class Refused(Exception):
    """The app refused a request; the message is its reason."""


def completed(address: str, session: str, patience: float = PATIENCE_SECONDS) -> dict:
    """The message that ends a page's event; empty if none came."""
    url = f"{address}gradio_api/queue/data?session_hash={session}"
    with urllib.request.urlopen(url, timeout=patience) as stream:
        messages = (json.loads(line.removeprefix(b"data: ")) for line in stream if line.startswith(b"data: "))
        return next((message for message in messages if message.get("msg") == "process_completed"), {})


def sent(url: str, body: bytes | None, headers: Mapping[str, str] = NOBODY, patience: float = 60) -> tuple[int, bytes]:
    """(status, content) of a request; status 0 where the connection was closed without one."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, dict(headers)), timeout=patience) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


def megabytes(process: int) -> float:
    """What a process holds in memory, 0 if it is gone."""
    try:
        return psutil.Process(process).memory_info().rss / 2**20
    except psutil.NoSuchProcess:
        return 0.0


def call(
    address: str, name: str, data: list, headers: Mapping[str, str] = NOBODY, patience: float = PATIENCE_SECONDS
) -> list:
    """What a named endpoint answers to the values of its first parameters; raises `Refused` with its words, an
    OSError if no answer came in time, or a ValueError. patience: seconds without a word, the app's heartbeat being
    one."""
    body = dict(zip(parameters_of(address)[name], data))
    queued = answer(f"{address}gradio_api/call/v2/{name}", body, headers, patience)["event_id"]
    request, kind = urllib.request.Request(f"{address}gradio_api/call/{name}/{queued}", headers=dict(headers)), ""
    with urllib.request.urlopen(request, timeout=patience) as stream:
        for line in stream:
            if line.startswith(b"event: "):
                kind = line.removeprefix(b"event: ").strip().decode()
            elif line.startswith(b"data: ") and kind in ("complete", "error"):
                content = json.loads(line.removeprefix(b"data: "))
                if kind == "complete":
                    return content
                raise Refused(str(content["error"] if isinstance(content, dict) else content))
    raise ValueError("the stream ended without an output")


@cache
def parameters_of(address: str) -> dict[str, list[str]]:
    """The parameters of each named endpoint; those that are not sent get their defaults."""
    described = answer(f"{address}gradio_api/info")["named_endpoints"]
    names = {name: [one["parameter_name"] for one in part["parameters"]] for name, part in described.items()}
    return {name.strip("/"): parameters for name, parameters in names.items()}


def answer(
    url: str, body: dict | None = None, headers: Mapping[str, str] = NOBODY, patience: float = PATIENCE_SECONDS
) -> dict:
    """The JSON value at an address, or the reply to a JSON body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, JSON_BODY | dict(headers))
    with urllib.request.urlopen(request, timeout=patience) as reply:
        return json.loads(reply.read())


FORM = "multipart/form-data; boundary=x"
JSON_BODY = {"Content-Type": "application/json"}
ROW = {"question": "Who wrote the book Hamlet?", "answer": "Shakespeare", "score": 9}


def multipart(files: list[tuple[str, bytes]]) -> bytes:
    """A form of these files, of the type `FORM`."""
    part = b'--x\r\nContent-Disposition: form-data; name="files"; filename="%s"\r\n\r\n%s\r\n'
    return b"".join(part % (name.encode(), content) for name, content in files) + b"--x--\r\n"
