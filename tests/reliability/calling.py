"""Calls the running app over plain HTTP, as programs and pages do."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping

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
    url = f"{address}gradio_api/queue/data?session_hash={body['session_hash']}"
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as stream:
        for line in stream:
            message = json.loads(line.removeprefix(b"data: ")) if line.startswith(b"data: ") else {}
            if message.get("msg") == "process_completed":
                if not message["success"]:
                    raise ValueError(message)
                return message["output"]["data"]
    raise ValueError("the stream ended without an output")


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
