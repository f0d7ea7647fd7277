"""Lets many pages watch one run while it trains, and counts the updates that each gets, and how late.

The app runs as `python app.py` starts it. The visitors speak HTTP as the page does (its timer through the queue, the
answer as a stream), each in a session of its own, from one other process on the same cores.
"""

import json
import os
import re
import secrets
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

from calling import answer, call, event, run_as_command

from adapop.runs.run import find_run
from adapop.training.events import Saved
from serving import served

EPOCHS = 5
FAILURES = 20  # after so many a page gives up
TICK_SECONDS = 0.7
ENDED = ("done", "stopped", "failed", "interrupted")


@dataclass
class Visitor:
    """What one page saw. ticks: seconds each answer took. saved: when it first read that an epoch was saved."""

    ticks: list[float] = field(default_factory=list)
    saved: dict[int, float] = field(default_factory=dict)
    failed: int = 0
    state: str = ""


def main(visitors: int) -> int:
    """Prints the table. Takes about a minute. Returns 1 if a page missed an update or the end, else 0."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as app:
        address = app.address
        tick = _tick(answer(f"{address}config"))
        settings = ["sandbox", "adapop", "paper", None, EPOCHS, 0, "paper", "error", "own"]
        begun = call(address, "start_run", settings)[0]
        run = find_run(begun["run"], Path(folder))
        crowd = [Visitor() for _ in range(visitors)]
        with ThreadPoolExecutor(visitors) as pages:
            list(pages.map(lambda visitor: _watch(address, tick, run.id, visitor), crowd))
        written = {event.epoch: event.time for event in run.events() if isinstance(event, Saved)}
        seconds = run.events()[-1].time - run.events()[0].time
    late = [seen - written[epoch] for visitor in crowd for epoch, seen in visitor.saved.items()]
    ticks = sorted(second for visitor in crowd for second in visitor.ticks)
    missed = sum(len(written) - len(visitor.saved) for visitor in crowd)
    print(f"{len(crowd)} visitors, one run of {EPOCHS} epochs in {seconds:.0f} s, {os.cpu_count()} cores for all")
    print(f"answers                     {len(ticks):>8}, without one: {sum(visitor.failed for visitor in crowd)}")
    print(f"an answer takes             {quantiles(ticks, n=20)[9]:>8.2f} s, 95 %: {quantiles(ticks, n=20)[18]:.2f} s")
    print(f"saved epoch to every page   {max(late):>8.2f} s at most")
    print(f"updates dropped             {missed:>8} of {len(written) * len(crowd)}")
    ended = sum(visitor.state == "done" for visitor in crowd)
    print(f"pages that saw the end      {ended:>8}")
    return int(missed > 0 or ended < visitors)


def _watch(address: str, tick: dict, run: str, visitor: Visitor) -> None:
    """Ticks as a page does until its strip shows that the run is over. tick: the timer's event."""
    session = secrets.token_hex(6)
    data = [run, *[None] * (len(tick["inputs"]) - 1)]  # the rest is state that the server holds
    while visitor.state not in ENDED and visitor.failed < FAILURES:
        begun = time.monotonic()
        try:
            output = event(address, {"data": data, "fn_index": tick["id"], "session_hash": session})
        except (OSError, ValueError):
            visitor.failed += 1
            continue
        visitor.ticks.append(time.monotonic() - begun)
        updates = dict(zip(tick["names"], output))
        visitor.state = updates["strip"]["state"]
        if "__type__" not in updates["event-log"]:  # else it is as it was
            for epoch in re.findall(r"Epoch (\d+) saved", json.dumps(updates["event-log"])):
                visitor.saved.setdefault(int(epoch), time.time())
        time.sleep(max(0.0, TICK_SECONDS - (time.monotonic() - begun)))


def _tick(config: dict) -> dict:
    """The event of a timer that fills both the run's strip and its log, with the names of what it fills."""
    names = {component["id"]: component["props"].get("elem_id") for component in config["components"]}
    for one in config["dependencies"]:
        outputs = [names.get(component) for component in one["outputs"]]
        if any(trigger == "tick" for _, trigger in one["targets"]) and {"strip", "event-log"} <= set(outputs):
            return one | {"names": outputs}
    raise RuntimeError("the page has no timer that fills the strip and the log: adapt this benchmark")


if __name__ == "__main__":
    run_as_command(main, __doc__, visitors=(20, "how many pages"))
