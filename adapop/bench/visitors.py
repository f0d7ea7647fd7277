"""Many visitors who watch one run while it trains: does each of them get every update, and how late?

The app runs as `python app.py` starts it. The visitors speak HTTP as the page does (its timer through the queue, the
answer as a stream), each in a session of its own, from one other process on the same cores.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

from adapop.events import Saved
from adapop.runs import find_run

ROOT = Path(__file__).resolve().parents[2]
VISITORS, EPOCHS = 20, 5
TICK_SECONDS = 0.7
PATIENCE_SECONDS = 30
ENDED = ("done", "stopped", "failed", "interrupted")


@dataclass
class Visitor:
    """What one page saw. ticks: seconds each answer took. saved: when it first read that an epoch was saved."""

    ticks: list[float] = field(default_factory=list)
    saved: dict[int, float] = field(default_factory=dict)
    failed: int = 0
    state: str = ""


@dataclass(frozen=True)
class Tick:
    """The timer's event of the page, as the server's configuration describes it. log, strip: places in its answer."""

    number: int
    inputs: int
    strip: int
    log: int


def main() -> None:
    """Prints the table. Takes about a minute."""
    with tempfile.TemporaryDirectory() as folder, _served(Path(folder)) as address:
        tick = _tick(_answer(f"{address}config"))
        settings = ["sandbox", "adapop", "paper", None, EPOCHS, 0, "paper", "error", "own"]
        begun = _call(address, "start_run", settings)[0]
        run = find_run(begun["run"], Path(folder))
        visitors = [Visitor() for _ in range(VISITORS)]
        threads = [threading.Thread(target=_watch, args=(address, tick, run.id, visitor)) for visitor in visitors]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        written = {event.epoch: event.time for event in run.events() if isinstance(event, Saved)}
        seconds = run.events()[-1].time - run.events()[0].time
    late = [seen - written[epoch] for visitor in visitors for epoch, seen in visitor.saved.items()]
    ticks = sorted(second for visitor in visitors for second in visitor.ticks)
    missed = sum(len(written) - len(visitor.saved) for visitor in visitors)
    print(f"{len(visitors)} visitors, one run of {EPOCHS} epochs in {seconds:.0f} s, {os.cpu_count()} cores for all")
    print(f"answers                     {len(ticks):>8}, without one: {sum(visitor.failed for visitor in visitors)}")
    print(f"an answer takes             {quantiles(ticks, n=20)[9]:>8.2f} s, 95 %: {quantiles(ticks, n=20)[18]:.2f} s")
    print(f"saved epoch to every page   {max(late):>8.2f} s at most")
    print(f"updates dropped             {missed:>8} of {len(written) * len(visitors)}")
    print(f"pages that saw the end      {sum(visitor.state == 'done' for visitor in visitors):>8}")


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """The app's address, while it runs with its runs in the folder."""
    environment = {**os.environ, "ADAPOP_RUNS": str(folder), "ADAPOP_PUBLIC": "0"}
    command = [sys.executable, "-u", "app.py"]
    server = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        found = next(filter(None, (re.search(r"http://\S+", line) for line in server.stdout)))
        threading.Thread(target=server.stdout.read, daemon=True).start()
        yield found.group().rstrip("/") + "/"
    finally:
        server.terminate()
        server.wait()


def _watch(address: str, tick: Tick, run: str, visitor: Visitor) -> None:
    """Ticks as a page does until its strip shows that the run is over."""
    session = secrets.token_hex(6)
    data = [run, *[None] * (tick.inputs - 1)]  # the rest is state that the server holds
    while visitor.state not in ENDED and visitor.failed < VISITORS:
        begun = time.monotonic()
        try:
            output = _event(address, {"data": data, "fn_index": tick.number, "session_hash": session})
        except (OSError, ValueError):
            visitor.failed += 1
            continue
        visitor.ticks.append(time.monotonic() - begun)
        visitor.state = output[tick.strip]["state"]
        if "__type__" not in output[tick.log]:  # else it is as it was
            for epoch in re.findall(r"Epoch (\d+) saved", json.dumps(output[tick.log])):
                visitor.saved.setdefault(int(epoch), time.time())
        time.sleep(max(0.0, TICK_SECONDS - (time.monotonic() - begun)))


def _tick(config: dict) -> Tick:
    """The event of a timer that fills both the run's strip and its log."""
    names = {component["id"]: component["props"].get("elem_id") for component in config["components"]}
    for event in config["dependencies"]:
        outputs = [names.get(component) for component in event["outputs"]]
        if any(trigger == "tick" for _, trigger in event["targets"]) and {"strip", "event-log"} <= set(outputs):
            return Tick(event["id"], len(event["inputs"]), outputs.index("strip"), outputs.index("event-log"))
    raise RuntimeError("the page has no timer that fills the strip and the log: adapt this benchmark")


def _event(address: str, body: dict) -> list:
    """Queues a page's event and waits for its output.

    Raises:
        OSError: no answer in time. ValueError: an answer without an output.
    """
    _answer(f"{address}gradio_api/queue/join", body)
    url = f"{address}gradio_api/queue/data?session_hash={body['session_hash']}"
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as stream:
        for line in stream:
            message = json.loads(line.removeprefix(b"data: ")) if line.startswith(b"data: ") else {}
            if message.get("msg") == "process_completed":
                if not message["success"]:
                    raise ValueError(message)
                return message["output"]["data"]
    raise ValueError("the stream ended without an output")


def _call(address: str, name: str, data: list) -> list:
    """What a named endpoint answers."""
    event = _answer(f"{address}gradio_api/call/{name}", {"data": data})["event_id"]
    with urllib.request.urlopen(f"{address}gradio_api/call/{name}/{event}", timeout=PATIENCE_SECONDS) as stream:
        *_, last = (line for line in stream if line.startswith(b"data: "))
    return json.loads(last.removeprefix(b"data: "))


def _answer(url: str, body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as reply:
        return json.loads(reply.read())


if __name__ == "__main__":
    main()
