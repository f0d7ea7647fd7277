"""A run is worked on by one process at a time, and the lock dies with it. The other process is a real one."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest
from test_worker import wait_until

from adapop.cli import main
from adapop.config.presets import make_config
from adapop.errors import RunError
from adapop.paths import ROOT
from adapop.runs.execute import execute, prepare
from adapop.runs.lock import held
from adapop.runs.run import create_run
from adapop.service.cleanup import overdue
from adapop.service.worker import Worker
from adapop.training.events import RunDone, RunStarted, to_json

HOLDER = """
import sys
from pathlib import Path
from adapop.runs.lock import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def few(small):
    return replace(small, forget=small.forget[:8], retain=small.retain[:8], holdout=(), utility=())


@contextmanager
def worked_on_elsewhere(run):
    """Another process that holds the run, until its input ends or it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(run.folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_second_process_is_refused_by_name_and_writes_nothing(few, capsys):
    run = prepare(make_config(epochs=1), few)
    started = run.append(RunStarted(
        run=run.id, model="sandbox", method="adapop", facts="few", forget=8, retain=8, holdout=0, epochs=1, steps=1,
    ))  # fmt: skip
    run.request_stop()
    with worked_on_elsewhere(run):
        assert run.locked
        with pytest.raises(RunError, match=f"Run {run.id} is being worked on by another process. Wait until"):
            list(execute(run))
        assert main(["resume", run.id]) == 2
        assert "is being worked on by another process" in capsys.readouterr().err
        worker = Worker(run.folder.parent)
        worker.enqueue(run)
        wait_until(lambda: worker.ahead_of(run) is None)
        assert (run.events(), run.stop_requested) == ([started], True), "a stop is meant for who works on it"
        assert overdue(run.folder.parent, None, 0.0, lambda name: False) == []
    assert not run.locked


def test_the_lock_dies_with_its_process(few):
    run = prepare(make_config(epochs=1), few)
    assert not run.locked
    with worked_on_elsewhere(run) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not run.locked
        assert isinstance(list(execute(run))[-1], RunDone)


def test_a_run_is_locked_from_its_first_event_to_its_last_and_no_longer(few):
    run = prepare(make_config(epochs=1), few)
    events = execute(run)
    next(events)
    assert run.locked
    events.close()
    assert not run.locked
    for event in execute(run):
        assert run.locked or isinstance(event, RunDone)
    assert not run.locked


def test_looking_does_not_disturb(few):
    """Who looks holds the lock for an instant, and a run that begins then waits for it."""
    run = create_run(make_config("wga"), few, None)
    assert not (run.folder / "lock").exists() and not run.locked
    for _ in range(50):
        with held(run.folder):
            assert run.locked
        assert not run.locked


def test_text_of_an_event_does_not_depend_on_the_lock(few):
    """The lock is no part of what a run says."""
    run = prepare(make_config(epochs=1), few)
    (first, *_) = execute(run)
    assert "lock" not in to_json(first)
