"""Lets one visitor misbehave in every way we know while others use the app, and compares what those others meet.

First the others for half a minute that is not counted, since an app that has just begun loads its engine then; then
they alone, then with that visitor beside them. It is a process of its own and lets the app go first, as its computer
would be another; a minute after the end the app's memory is looked at again.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from calling import answer, call
from clients import Client, Tally
from load import megabytes

from adapop.experiments.speed.waiting import served

SENDER = {"X-Forwarded-For": "203.0.113.66", "Content-Type": "application/json"}
HANDS = 8  # requests of the misbehaving visitor at once
WAIT_SECONDS, WARM_MINUTES = 60.0, 0.5
GOOD = {"longer": 2.0, "memory": 1.1}  # times that an answer may take, and memory may be a minute later
ROW = {"question": "Who wrote the book Hamlet?", "answer": "Shakespeare", "score": 9}


NESTED = json.dumps([[[]] * 50] * 2_500)[1:-1]  # written once: its own work shall not take the app's time
LIST = json.dumps([{"question": "Who?", "answer": "x", "paraphrases": ["a"] * 400_000}]).encode()


class Visitor:
    """The one that misbehaves. codes: what was answered to it."""

    def __init__(self, address: str) -> None:
        self.address, self.codes = address, Counter()
        self._events = answer(f"{address}config")["dependencies"]
        self._run = ""

    def work(self, ends: float) -> None:
        """Each way by turns until then (of time.monotonic), with eight requests at once."""
        self._run = call(
            self.address, "start_run", [[ROW], "wga", "paper", None, 1, 0, "paper", "error", "sandbox"], SENDER
        )[0]["run"]
        ways, turn = list(self.ways().values()), 0
        with ThreadPoolExecutor(HANDS) as hands:
            while time.monotonic() < ends:
                way, until = ways[turn % len(ways)], min(ends, time.monotonic() + 5.0)
                list(hands.map(self._repeated, [way] * HANDS, [until] * HANDS))
                turn += 1

    def ways(self) -> dict[str, Callable[[], None]]:
        """What it does, by name."""
        return {
            "large bodies of many small things, never collected": lambda: self._event(NESTED),
            "answers that nobody collects": lambda: self._post("call/beta", {"data": [[ROW], "paper"]}),
            "past the queue": lambda: self._post("run/predict", {"data": [None], "fn_index": 0, "session_hash": "x"}),
            "sets that a forged page keeps": self._forged_set,
            "questions, many at once": lambda: self._post("call/probe", {"data": [self._run, "Who?", ""]}),
            "files that take long to read": self._slow_file,
            "names of 400,000 letters": lambda: self._post("call/start_run", {"data": [[ROW], "x/" * 200_000]}),
            "pages": lambda: self._get(""),
            "sessions": lambda: self._event(""),
        }

    def _repeated(self, way: Callable[[], None], until: float) -> None:
        while time.monotonic() < until:
            way()

    def _event(self, data: str) -> None:
        """Any event of a page, for a session of its own. data: what it carries, as it is written in JSON."""
        event, session = secrets.choice(self._events)["id"], secrets.token_hex(6)
        body = f'{{"data": [{data}], "fn_index": {event}, "session_hash": "{session}"}}'
        self._send("queue/join", body.encode(), SENDER)

    def _forged_set(self) -> None:
        for event in self._events:
            if event["api_visibility"] == "private" and len(event["inputs"]) == 6:
                forged = [False, None, None, "own", None, {"source": "own", "set": secrets.token_hex(16)}]
                self._post(
                    "queue/join", {"data": forged, "fn_index": event["id"], "session_hash": secrets.token_hex(6)}
                )

    def _slow_file(self) -> None:
        """A file whose cell is a list of many items, put into the page's upload."""
        body = (
            b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.json"\r\n\r\n' + LIST + b"\r\n--x--\r\n"
        )
        sent = self._send("upload", body, {**SENDER, "Content-Type": "multipart/form-data; boundary=x"})
        if sent:
            file = {"path": json.loads(sent)[0], "orig_name": "a.json", "meta": {"_type": "gradio.FileData"}}
            for event in self._events:
                if any(kind == "upload" for _, kind in event["targets"]):
                    data = [file, "own", None][: len(event["inputs"])]
                    body = {"data": data, "fn_index": event["id"], "session_hash": secrets.token_hex(6)}
                    self._post("queue/join", body)

    def _post(self, path: str, body: dict) -> None:
        self._send(path, json.dumps(body).encode(), SENDER)

    def _get(self, path: str) -> None:
        self._send(path, None, SENDER, "")

    def _send(self, path: str, body: bytes | None, headers: dict, prefix: str = "gradio_api/") -> bytes:
        """What came back, empty where it was refused."""
        request = urllib.request.Request(f"{self.address}{prefix}{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                self.codes[reply.status] += 1
                return reply.read()
        except urllib.error.HTTPError as error:
            self.codes[error.code] += 1
        except OSError as error:
            self.codes[type(error).__name__] += 1
        return b""


def main(clients: int, minutes: float) -> int:
    """Prints what the others met without and with the misbehaving visitor. Returns 1 if an answer of theirs was lost or
    wrong, took more than twice as long, or if memory did not come back.

    clients: the others. minutes: of each of the two parts.
    """
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), ADAPOP_PUBLIC="1") as app:
        warm = _used(app, clients, WARM_MINUTES)
        alone = _used(app, clients, minutes)
        before = megabytes(app.process)
        with ProcessPoolExecutor(1, get_context("spawn")) as elsewhere:
            codes = elsewhere.submit(misbehaved, app.address, 60 * minutes)
            beside = _used(app, clients, minutes)
            codes = codes.result()
        most = megabytes(app.process)
        time.sleep(WAIT_SECONDS)
        after = megabytes(app.process)
        tracebacks = sum("Traceback" in line for line in app.said)
    late, later = (median(chain.from_iterable(tally.seconds.values())) for tally in (alone, beside))
    lost, wrong = (
        [each for tally in (warm, alone, beside) for each in getattr(tally, what)] for what in ("lost", "wrong")
    )
    refused = ", ".join(f"{count:,} x {code}" for code, count in codes.most_common())
    print(f"{clients} clients for {minutes:g} min alone, then as long with one that misbehaves")
    print(f"misbehaving    {sum(codes.values()):,} requests: {refused}")
    for name in sorted({*alone.seconds, *beside.seconds}):
        told = (f"{median(t.seconds[name]):6.2f} s" if t.seconds[name] else "    none" for t in (alone, beside))
        print(f"{name:<15}{'  then '.join(told)}")
    print(f"all answers    {late:6.2f} s  then {later:6.2f} s, {later / late:.2f} times")
    print(f"memory         {before:,.0f} MB, {most:,.0f} at the end, {after:,.0f} a minute later")
    print(f"refused        {sum(alone.refused.values())} of the others' requests, then {dict(beside.refused) or 0}")
    print(f"lost           {len(lost)} {'; '.join(sorted({*lost}))}".rstrip())
    print(f"wrong          {len(wrong)} {'; '.join(sorted({*wrong}))}".rstrip())
    print(f"tracebacks     {tracebacks}")
    good = later <= GOOD["longer"] * late and after <= GOOD["memory"] * before
    return int(bool(lost or wrong or tracebacks) or not good)


def misbehaved(address: str, seconds: float) -> Counter:
    """How often each status was answered to one that misbehaves for so long."""
    os.nice(19)
    visitor = Visitor(address)
    visitor.work(time.monotonic() + seconds)
    return visitor.codes


def _used(app, clients: int, minutes: float) -> Tally:
    """What the clients met."""
    tally, ends = Tally(), time.monotonic() + 60 * minutes
    crowd = [Client(app.address, number, tally) for number in range(clients)]
    threads = [threading.Thread(target=client.work, args=(ends,)) for client in crowd]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


if __name__ == "__main__":
    command = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    command.add_argument("--clients", type=int, default=30, help="how many others at once; default 30")
    command.add_argument("--minutes", type=float, default=2.0, help="of each part; default 2")
    sys.exit(main(**vars(command.parse_args())))
