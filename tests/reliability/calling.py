"""Calls the running app over plain HTTP, as programs and pages do, and tells what it answered and printed."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from itertools import pairwise

import psutil

from adapop.paths import ROOT

PATIENCE_SECONDS = 30
NOBODY: Mapping[str, str] = {}


class Refused(Exception):
    """The app refused a request; the message is its reason."""


def event(address: str, body: dict) -> list:
    """The output of a page's event, once its turn has come.

    Raises:
        OSError: no answer in time. ValueError: an answer without an output.
    """
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
    """What a named endpoint answers. patience: seconds without a word, the app's heartbeat being one.

    Raises:
        Refused: the endpoint's error, in its words. OSError: no answer in time. ValueError: one that does not read.
    """
    queued = answer(f"{address}gradio_api/call/{name}", {"data": data}, headers, patience)["event_id"]
    request = urllib.request.Request(f"{address}gradio_api/call/{name}/{queued}", headers=dict(headers))
    kind = ""
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


def answer(
    url: str, body: dict | None = None, headers: Mapping[str, str] = NOBODY, patience: float = PATIENCE_SECONDS
) -> dict:
    """The JSON value at an address, or the reply to a JSON body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=patience) as reply:
        return json.loads(reply.read())
