"""Leases of a lent GPU: with ZeroGPU's own `spaces` package, whose scheduler is a server of the test's."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adapop.paths import SANDBOX_FOLDER
from adapop.runs.run import Run
from adapop.service.leases import FIRST_SECONDS, LOAD_SECONDS, MOST_SECONDS, lease_seconds
from adapop.service.zerogpu import EXPIRED, REFUSALS, TAKEN_AWAY
from adapop.training.events import RunStarted, Saved
from scripted import Reply
from tiny_runs import tiny_config

PROGRAM = Path(__file__).parent / "lending.py"
LEASE = {"idle": False, "nvidiaIndex": 0, "nvidiaUUID": "GPU-0", "allowToken": "let me"}
QUOTA = Reply({"left": 5, "wait": "01:00:00"}, 429, {"X-Approve-Result": "quota-exceeded"})
EXPIRES, BUSY = Reply("", 401), Reply("", 503)


class Scheduler:
    """ZeroGPU's: it notes who asked, for how many seconds. given: what it answers first. kill: of which leases the
    process that gets the GPU is killed."""

    def __init__(self, server, given=(), kill=()) -> None:
        self.given, self.kill, self.leases = list(given), set(kill), []
        server.answer = self._answer

    def _answer(self, asked) -> Reply:
        if asked.path == "/schedule":
            reply = self.given.pop(0) if self.given else None
            self.leases.append((asked.query.get("token"), int(asked.query["durationSeconds"])))
            return reply or Reply(LEASE)
        if asked.path == "/allow" and len(self.leases) in self.kill:
            os.kill(int(asked.query["pid"]), signal.SIGKILL)
        return Reply("")


@pytest.fixture
def lend(server, tmp_path, monkeypatch):
    """Runs the program with a scheduler and gives what it said."""
    pytest.importorskip("spaces")
    model = shutil.copytree(SANDBOX_FOLDER, tmp_path / "model")  # a model that is not the sandbox by its name

    def run(scheduler, *again, **changes):
        config = tiny_config(model=changes.pop("model", str(model)), epochs=3, **changes).to_json()
        environment = os.environ | {"SPACES_ZERO_GPU": "true", "SPACES_ZERO_DEVICE_API_URL": server.url}
        done = subprocess.run(
            [sys.executable, PROGRAM, tmp_path / "runs", config, *again],
            capture_output=True, text=True, env=environment, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.mark.slow
def test_a_run_takes_one_lease_that_its_owner_pays_and_a_second_for_what_is_left(lend, server):
    scheduler = Scheduler(server)
    said = lend(scheduler)
    assert (said["ended"], said["epoch"]) == ([["run_done", ""]], 3)
    tokens, seconds = zip(*scheduler.leases)
    assert tokens == ("first", "asks"), "three epochs fit into one lease"
    assert seconds == (FIRST_SECONDS * said["factor"], 15 * said["factor"]) and said["answer"]


@pytest.mark.slow
def test_the_sandbox_asks_for_no_gpu(lend, server):
    scheduler = Scheduler(server)
    said = lend(scheduler, model="sandbox")
    assert said["ended"] == [["run_done", ""]] and said["answer"] and scheduler.leases == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "kill", "words"),
    [
        ([None, QUOTA], (), REFUSALS["ZeroGPU quota exceeded"]), ([None, EXPIRES], (), EXPIRED),
        ([None, BUSY], (), REFUSALS["ZeroGPU client error"]), ([], (2,), TAKEN_AWAY),
    ],
    ids=["quota", "expired", "busy", "killed"],
)  # fmt: skip
def test_what_went_wrong_is_told_and_the_run_goes_on_where_it_was(lend, server, given, kill, words):
    """The first lease has room for one epoch; the second is refused, or its GPU is taken away."""
    scheduler = Scheduler(server, given, kill)
    said = lend(scheduler, "again", "short")
    (failed, message), (done, _) = said["ended"]
    assert (failed, message, done) == ("run_failed", words[0], "run_done")
    tokens, seconds = zip(*scheduler.leases)
    assert said["epoch"] == 3 and tokens[:3] == ("first", "second", "third"), "in the name of the latest request"
    assert seconds[0] < seconds[1] <= MOST_SECONDS * said["factor"]
    assert said["began"][0] == 0 and said["began"][-1] == 1, "what the first lease did is not done again"


def test_a_lease_is_as_long_as_what_is_left_needs(tmp_path, tiny, monkeypatch):
    from adapop.runs.execute import prepare

    monkeypatch.setattr(Run, "last_epoch", property(lambda run: len([e for e in run.events() if e.kind == "saved"])))
    run = prepare(tiny_config(epochs=10), tiny, tmp_path)
    assert lease_seconds(run) == FIRST_SECONDS
    started = RunStarted(
        run=run.id, model="m", method="wga", facts="f", forget=4, retain=4, holdout=0, epochs=10, steps=2
    )
    say(run, 100.0, started)
    assert lease_seconds(run) == FIRST_SECONDS, "no epoch was seen yet"
    say(run, 104.0, Saved(run=run.id, epoch=1))
    assert lease_seconds(run) == LOAD_SECONDS + 1.25 * 4 * 11
    say(run, 144.0, Saved(run=run.id, epoch=2))
    assert lease_seconds(run) == MOST_SECONDS, "as many of the eight as fit"
    say(run, 344.0, Saved(run=run.id, epoch=3))
    assert lease_seconds(run) == LOAD_SECONDS + 250, "one has to fit"


def say(run: Run, time: float, event) -> None:
    """Writes an event as it was written then."""
    line = run.append(event)
    path = run.folder / "events.jsonl"
    path.write_text(re.sub(rf'"time": ?{line.time!r}', f'"time": {time}', path.read_text("utf-8")), "utf-8")
