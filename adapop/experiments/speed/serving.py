"""Starts the app in a process of its own and calls it over plain HTTP, as programs and pages do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adapop.paths import ROOT

PATIENCE_SECONDS, LINES_KEPT = 30, 50
NOBODY: Mapping[str, str] = {}


@dataclass(frozen=True)
class Served:
    """A running app. address: ends with a slash. process: its id. said: the last lines it printed."""

    address: str
    process: int
    said: deque[str]


class Refused(Exception):
    """The app refused a request; the message is its reason."""


@contextmanager
def served(folder: Path, program: Sequence[str] = ("app.py",), **environment: str) -> Iterator[Served]:
    """Runs `python app.py` with its runs in the folder, until the block ends. environment: further variables.

    Raises:
        RuntimeError: it ended without an address.
    """
    there = {**os.environ, "ADAPOP_RUNS": str(folder), "ADAPOP_PUBLIC": "0", **environment}
    command, said = [sys.executable, "-u", *program], deque[str](maxlen=LINES_KEPT)
    server = subprocess.Popen(command, cwd=ROOT, env=there, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for line in server.stdout:
            said.append(line)
            if found := re.search(r"http://\S+", line):
                break
        else:
            raise RuntimeError("the app ended without serving a page:\n" + "".join(said))
        # an app whose words nobody reads stands still once the pipe is full
        threading.Thread(target=said.extend, args=(server.stdout,), daemon=True).start()
        yield Served(found.group().rstrip("/") + "/", server.pid, said)
    finally:
        server.terminate()
        server.wait()


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
