"""Calls the running app over plain HTTP, as programs and pages do, and tells what it answered and printed.

A script that imports this first finds the package and the helpers of the tests, wherever it was started.
"""

import argparse
import json
import secrets
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from adapop.paths import ROOT

PATIENCE_SECONDS = 30
NOBODY: Mapping[str, str] = {}


class Refused(Exception):
    """The app refused a request; the message is its reason."""


def event(address: str, body: dict) -> list:
    """The output of a page's event, once its turn has come; an OSError: none in time; a ValueError: one without it."""
    answer(f"{address}gradio_api/queue/join", body)
    message = completed(address, body["session_hash"])
    if not message.get("success"):
        raise ValueError(message)
    return message["output"]["data"]


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


BEGINNINGS = ("an event failed", "a request failed", "work that a page watched failed", "a run failed")
PLACE = 'File "'
OURS = f"{PLACE}{ROOT / 'adapop'}"


def failures(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """(ours, Gradio's): the failures among what an app printed, in a line of ours or in Gradio's own checks of values,
    each with its kind and place, which stand in the same line or the next."""
    ours, others = [], []
    for line, following in pairwise([*lines, ""]):
        if line.startswith(BEGINNINGS):
            words = line.strip() if PLACE in line else f"{line.strip()} {following.strip()}"
            (others if PLACE in words and OURS not in words else ours).append(words)
    return ours, others


def call(
    address: str, name: str, data: list, headers: Mapping[str, str] = NOBODY, patience: float = PATIENCE_SECONDS
) -> list:
    """What a named endpoint answers to the values of its first parameters; raises `Refused` with its words, an
    OSError if no answer came in time, or a ValueError. patience: seconds without a word, the app's heartbeat being
    one."""
    body = dict(zip(parameters_of(address)[name], data))
    queued = answer(f"{address}gradio_api/call/v2/{name}", body, headers, patience)["event_id"]
    kind, content = streamed(f"{address}gradio_api/call/{name}/{queued}", headers, patience)
    if kind == "error":
        raise Refused(str(content["error"] if isinstance(content, dict) else content))
    if not kind:
        raise ValueError("the stream ended without an output")
    return content


@cache
def parameters_of(address: str) -> dict[str, list[str]]:
    """The parameters of each named endpoint; those that are not sent get their defaults."""
    described = answer(f"{address}gradio_api/info")["named_endpoints"]
    names = {name: [one["parameter_name"] for one in part["parameters"]] for name, part in described.items()}
    return {name.strip("/"): parameters for name, parameters in names.items()}


def streamed(url: str, headers: Mapping[str, str] = NOBODY, patience: float = PATIENCE_SECONDS) -> tuple[str, Any]:
    """("complete" or "error", its content) of a call's stream; an empty kind if it ended without one."""
    kind = ""
    with urllib.request.urlopen(urllib.request.Request(url, headers=dict(headers)), timeout=patience) as stream:
        for line in stream:
            if line.startswith(b"event: "):
                kind = line.removeprefix(b"event: ").strip().decode()
            elif line.startswith(b"data: ") and kind in ("complete", "error"):
                return kind, json.loads(line.removeprefix(b"data: "))
    return "", None


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


class Stranger:
    """A visitor of a running app who sends what no page would. events: of the page, those that the app answers. codes:
    how often which status was answered, 0 for a connection that was closed."""

    def __init__(self, address: str, visitor: str) -> None:
        self.address, self.visitor, self.codes = address, visitor, Counter()
        self.events = [one for one in answer(f"{address}config")["dependencies"] if one["backend_fn"]]

    def send(self, path: str, body: bytes | None = None, headers: Mapping[str, str] = NOBODY) -> tuple[int, bytes]:
        """(status, content) of a request."""
        code, content = sent(self.address + path, body, {"X-Forwarded-For": self.visitor, **headers})
        self.codes[code] += 1
        return code, content

    def post(self, path: str, body: dict) -> int:
        """The status of a JSON body that is sent to Gradio's API."""
        content = json.dumps(body, ensure_ascii=False).encode()
        return self.send(f"gradio_api/{path}", content, JSON_BODY)[0]

    def forges(self, event: dict, data: list) -> int:
        """The status of an event of a page that nobody has open."""
        return self.post("queue/join", {"data": data, "fn_index": event["id"], "session_hash": secrets.token_hex(6)})

    def upload(self, content: bytes) -> tuple[int, str]:
        """(status, the path that the app gives a file)."""
        form = multipart([("a.json", content)])
        code, told = self.send("gradio_api/upload", form, {"Content-Type": FORM})
        return code, json.loads(told)[0] if code == 200 else ""

    def page_reads(self, path: str) -> int:
        """The status of the event by which a forged page has its uploaded file read."""
        uploads = (one for one in self.events if any(kind == "upload" for _, kind in one["targets"]))
        file = {"path": path, "orig_name": "a.json", "meta": {"_type": "gradio.FileData"}}
        return self.forges(next(one for one in uploads if len(one["inputs"]) == 4), ["own", file, "own", None])


def run_as_command(main: Callable[..., int], about: str, **options: tuple[Any, str]) -> None:
    """Calls `main` with the options of the command line, and exits with what it gives. about: the script's docstring.
    options: by name, the default and what it is."""
    command = argparse.ArgumentParser(description=about.partition("\n")[0])
    for name, (default, what) in options.items():
        command.add_argument(f"--{name}", type=type(default), default=default, help=f"{what}; default {default:,}")
    sys.exit(main(**vars(command.parse_args())))
