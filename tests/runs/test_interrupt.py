"""Ctrl-C, as a real signal to a real process: it ends within seconds, and what was running can be gone on with."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from gradio_client import Client

from adapop.paths import ROOT
from adapop.runs.execute import execute
from adapop.runs.listed import all_runs
from adapop.runs.run import runs_root
from adapop.training.events import RunStarted, StepDone
from waiting import wait_until

PATIENCE_SECONDS, END_SECONDS, MOMENTS = 120, 20, 3
LOADING = ("import signal", "adapop/__init__.py")  # before there is anything that could catch it
pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to whole consoles")]


@contextmanager
def started(*command: str):
    """A process of this package, killed if it is still there at the end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def interrupted_at_work(process):
    """The run that is interrupted as soon as it makes steps, once its process has ended."""
    wait_until(lambda: all_runs() and any(isinstance(event, StepDone) for event in all_runs()[0].events()))
    process.send_signal(signal.SIGINT)
    process.wait(END_SECONDS)
    return all_runs()[0]


def assert_resumable(run) -> None:
    assert (run.state, run.locked, run.stop_requested) == ("interrupted", False, False)
    events = execute(run)
    assert isinstance(next(events), RunStarted)
    events.close()


def test_a_run_of_the_command_line():
    with started("-m", "adapop", "run", "--epochs", "50", "--out", str(runs_root())) as process:
        run = interrupted_at_work(process)
        _, stderr = process.communicate()
    assert process.returncode == 130
    assert f"adapop resume {run.id}" in stderr and "Traceback" not in stderr
    assert_resumable(run)


def test_no_moment_shows_a_traceback():
    """While it is loaded (after Python itself is), while it works, and while it ends."""
    command = "-m adapop run --epochs 1 --measure off".split()
    begun = time.monotonic()
    with started(*command) as process:
        process.communicate()
    whole = time.monotonic() - begun
    for moment in range(MOMENTS):
        with started(*command) as process:
            time.sleep(0.1 + moment / (MOMENTS - 1) * whole)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=END_SECONDS)
        # Python shows its own before our first line, and while it loads what we catch it with
        loading = "adapop" not in stderr or any(line in stderr for line in LOADING)
        assert "Traceback" not in stderr or loading, (moment, stderr)
        starting = "Traceback" in stderr and "adapop" not in stderr  # Python itself, on a busy machine; it ends with 1
        assert process.returncode in (0, 130, -signal.SIGINT) or starting, (moment, process.returncode, stderr)


def test_the_app_does_not_wait_for_the_run_at_work():
    with started("app.py") as process:
        address = next(filter(None, (re.search(r"http://\S+", line) for line in process.stdout))).group()
        threading.Thread(target=process.stdout.read, daemon=True).start()
        app = Client(address, verbose=False, httpx_kwargs={"timeout": PATIENCE_SECONDS})
        app.predict("sandbox", epochs=50, api_name="/start_run")
        run = interrupted_at_work(process)
    assert process.returncode == 130
    assert_resumable(run)


def test_one_that_falls_into_a_destructor_is_not_lost():
    """Python itself would say "Exception ignored" with a traceback, and go on."""
    script = """
import os, signal, sys, time
from adapop import __main__, cli
class Destroyed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
def work():
    Destroyed()
    time.sleep(20)
cli.main = work
sys.exit(__main__.main())
"""
    with started("-c", script) as process:
        out, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, out, said) == (130, "", "")
