"""Lets one visitor misbehave in every way we know while others use the app, and compares what those others meet.

First the others for half a minute that is not counted, since an app that has just begun loads its engine then; then
they alone, then with that visitor beside them. It is a process of its own and lets the app go first, as its computer
would be another; a minute after the end the app's memory is looked at again.
"""

import json
import os
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from calling import JSON_BODY, ROW, Stranger, call, failures, megabytes, run_as_command
from clients import Tally, at_work

from adapop.facts.world import sandbox_facts
from adapop.runs.examples import ASKED, PREFIX
from serving import served

HANDS = 8  # requests of the misbehaving visitor at once
WAIT_SECONDS, WARM_MINUTES = 60.0, 0.5
GOOD = {"longer": 2.0, "memory": 1.1}  # times that an answer may take, and memory may be a minute later
EXAMPLE, SHOWN = f"{PREFIX}{ASKED[0]}", sandbox_facts().sha256

# written once: its own work shall not take the app's time. Both are a little smaller than a public app allows
NESTED = json.dumps({"data": [[[[]] * 50] * 2_300, "paper"]}).encode()
LIST = json.dumps([{"question": "Who?", "answer": "x", "paraphrases": ["a"] * 390_000}]).encode()
SETS = "sets that a forged page keeps"


class Visitor(Stranger):
    """The one that misbehaves. calls, met: by way, how often it was tried, and how often it came as far as it can: to
    be worked on, or to the answer that is given to all of its kind."""

    def __init__(self, address: str, folder: Path) -> None:
        super().__init__(address, "203.0.113.66")
        self.folder, self.calls, self.met = folder, Counter(), Counter()

    def work(self, seconds: float) -> None:
        """Each way once, then each by turns until the time is over, with eight requests at once."""
        ends = time.monotonic() + seconds
        chosen = [[ROW], "wga", "paper", None, 1, 0, "paper", "error", "sandbox"]
        call(self.address, "start_run", chosen, {"X-Forwarded-For": self.visitor})
        ways, turn = list(self.ways()), 0
        with ThreadPoolExecutor(HANDS) as hands:
            while turn < len(ways) or time.monotonic() < ends:
                until = 0.0 if turn < len(ways) else min(ends, time.monotonic() + 5.0)
                name = ways[turn % len(ways)]
                for calls, met in hands.map(self._repeated, [name] * HANDS, [until] * HANDS):
                    self.calls[name] += calls
                    self.met[name] += met
                turn += 1
        self.met[SETS] = len(list((self.folder / "sets").glob("*/about.json")))

    def ways(self) -> dict[str, Callable[[], bool]]:
        """What it does, by name; the costly ones last, for what they use up is missing to those after them. Each says
        whether it came as far as it can."""
        return {
            SETS: self._forged_set,
            "questions, many at once": lambda: self.post("call/probe", {"data": [EXAMPLE, "Who?", ""]}) == 200,
            "answers that nobody collects": lambda: self.post("call/beta", {"data": [[ROW], "paper"]}) == 200,
            "past the queue": lambda: self.post("run/predict", {"data": [None], "fn_index": 0}) == 404,
            "sessions": self._session,
            "files that take long to read": self._slow_file,
            "names of 400,000 letters": lambda: (
                self.post("call/start_run", {"data": [[ROW], "x/" * 200_000]}) in (200, 413)
            ),
            "large bodies of many small things": lambda: (
                self.send("gradio_api/call/beta", NESTED, JSON_BODY)[0] in (200, 400, 413)
            ),
            "pages": lambda: self.send("")[0] == 200,
        }

    def _repeated(self, name: str, until: float) -> tuple[int, int]:
        """(how often it was tried until then, at least once, how often it came as far as it can)."""
        way = self.ways()[name]
        met = [way()]
        while time.monotonic() < until:
            met.append(way())
        return len(met), sum(met)

    def _session(self) -> bool:
        """An event of a page that nobody has open."""
        return self.forges(secrets.choice([one for one in self.events if not one["inputs"]]), []) == 200

    def _forged_set(self) -> bool:
        """What a page sends to keep its set, with another name each time. Whether it was kept is seen on the disk."""
        for event in self.events:
            if event["api_visibility"] == "private" and len(event["inputs"]) == 6:
                self.forges(event, [SHOWN, None, None, "own", None, {"source": "own", "set": secrets.token_hex(16)}])
        return False

    def _slow_file(self) -> bool:
        """A file whose cell is a list of many items, put into the page's upload."""
        code, path = self.upload(LIST)
        return code == 200 and self.page_reads(path) == 200


def main(clients: int, minutes: float) -> int:
    """Prints what the others met without and with the misbehaving visitor. Returns 1 if an answer of theirs was lost or
    wrong, took more than twice as long, if memory did not come back, our code failed, or a way had no effect."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), lines=None, ADAPOP_PUBLIC="1") as app:
        warm = _used(app, clients, WARM_MINUTES)
        alone = _used(app, clients, minutes)
        before = megabytes(app.process)
        with ProcessPoolExecutor(1, get_context("spawn")) as elsewhere:
            visit = elsewhere.submit(misbehaved, app.address, Path(folder), 60 * minutes)
            beside = _used(app, clients, minutes)
            codes, ways = visit.result()
        most = megabytes(app.process)
        time.sleep(WAIT_SECONDS)
        after = megabytes(app.process)
        printed = list(app.output)
        tracebacks, ours = sum("Traceback" in line for line in printed), failures(printed)[0]
    late, later = (median(chain.from_iterable(tally.seconds.values())) for tally in (alone, beside))
    tallies = warm, alone, beside
    lost, wrong = ([each for tally in tallies for each in getattr(tally, what)] for what in ("lost", "wrong"))
    refused = ", ".join(f"{count:,} x {code}" for code, count in codes.most_common())
    print(f"{clients} clients for {minutes:g} min alone, then as long with one that misbehaves")
    print(f"misbehaving    {sum(codes.values()):,} requests: {refused}")
    for way, (calls, met) in ways.items():
        print(f"  {way:<35}{calls:>6,} times, {met:,} as far as it can")
    for name in sorted({*alone.seconds, *beside.seconds}):
        told = (f"{median(t.seconds[name]):6.2f} s" if t.seconds[name] else "    none" for t in (alone, beside))
        print(f"{name:<15}{'  then '.join(told)}")
    print(f"all answers    {late:6.2f} s  then {later:6.2f} s, {later / late:.2f} times")
    print(f"memory         {before:,.0f} MB, {most:,.0f} at the end, {after:,.0f} a minute later")
    print(f"refused        {sum(alone.refused.values())} of the others' requests, then {dict(beside.refused) or 0}")
    print(f"lost           {len(lost)} {'; '.join(sorted({*lost}))}".rstrip())
    print(f"wrong          {len(wrong)} {'; '.join(sorted({*wrong}))}".rstrip())
    print(f"failures       {len(ours)} in our code {'; '.join(ours[:3])}".rstrip())
    print(f"tracebacks     {tracebacks}")
    good = later <= GOOD["longer"] * late and after <= GOOD["memory"] * before
    return int(bool(lost or wrong or tracebacks or ours) or not good or not all(met for _, met in ways.values()))


def misbehaved(address: str, folder: Path, seconds: float) -> tuple[Counter, dict[str, tuple[int, int]]]:
    """(how often each status was answered, by way how often it was tried and came as far as it can) to one that
    misbehaves for so long. folder: of the app's runs."""
    os.nice(19)
    visitor = Visitor(address, folder)
    visitor.work(seconds)
    return visitor.codes, {way: (visitor.calls[way], visitor.met[way]) for way in visitor.ways()}


def _used(app, clients: int, minutes: float) -> Tally:
    """What the clients met."""
    tally = Tally()
    for thread in at_work(app.address, clients, minutes, tally)[1]:
        thread.join()
    return tally


if __name__ == "__main__":
    run_as_command(main, __doc__, clients=(30, "how many others at once"), minutes=(2.0, "of each part"))
