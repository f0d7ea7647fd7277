"""A run is worked on by one process at a time, and the lock dies with it. The other process is a real one."""

import signal
import subprocess
import sys

import pytest

from adapop.config.presets import make_config
from adapop.errors import RunError
from adapop.paths import ROOT
from adapop.runs.execute import execute, prepare
from adapop.runs.lock import held
from adapop.runs.run import create_run
from adapop.service.cleanup import overdue
from adapop.service.worker import Worker
from adapop.training.events import RunDone
from forking import forked, fresh_processes
from raised import raised
from run_events import START
from tiny_runs import tiny_config
from waiting import wait_until

LOOKS = """
from pathlib import Path
from sys import argv
from adapop.runs.lock import is_held
print("looking", flush=True)
while True:
    is_held(Path(argv[1]))
"""


def hold(folder, sender) -> None:
    with held(folder):
        sender.send("held")
        signal.pause()


@pytest.mark.slow
def test_a_second_process_is_refused_by_name_and_writes_nothing_until_the_first_is_gone(tiny, cli):
    run = prepare(tiny_config(), tiny)
    started = run.append(START)
    run.request_stop()
    receiver, sender = fresh_processes().Pipe(duplex=False)
    process = forked(hold, run.folder, sender)
    try:
        assert receiver.recv() == "held" and run.locked
        raised(RunError, f"Run {run.id} is in use by another process. Wait until", list, execute(run))
        assert "by another process" in cli("resume", run.id, status=2).err
        worker = Worker(run.folder.parent)
        worker.enqueue(run)
        wait_until(lambda: worker.ahead_of(run) is None)
        assert (run.events(), run.stop_requested) == ([started], True), "a stop is meant for who works on it"
        assert overdue(run.folder.parent, None, 0.0) == []
    finally:
        process.kill()
        process.join()
    assert not run.locked, "the lock died with its process"
    run.clear_stop()
    assert isinstance(list(execute(run))[-1], RunDone)


def test_a_run_is_locked_while_it_is_worked_on(tiny):
    run = prepare(tiny_config(), tiny)
    events = execute(run)
    next(events)
    assert run.locked
    events.close()
    assert not run.locked
    for event in execute(run):
        assert run.locked or isinstance(event, RunDone)
    assert not run.locked


def test_a_run_at_which_several_processes_look_is_free_and_can_be_taken(tiny):
    """Who looks holds the lock for an instant, and a run that begins then waits for it."""
    run = create_run(make_config("wga"), tiny, None)
    assert not run.locked and not (run.folder / "lock").exists()
    with held(run.folder):
        pass
    command = [sys.executable, "-c", LOOKS, str(run.folder)]
    watchers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(4)]
    try:
        assert [process.stdout.readline() for process in watchers] == [b"looking\n"] * 4
        assert not any(run.locked for _ in range(300)), "nobody works on it"
        for _ in range(5):
            with held(run.folder):
                assert run.locked
    finally:
        for process in watchers:
            process.kill()
            process.communicate()


def test_a_run_that_is_gone_is_not_made_anew_by_locking_it(tmp_path):
    with pytest.raises(RunError, match="gone"), held(tmp_path / "run"):
        pass
    assert not (tmp_path / "run").exists()
