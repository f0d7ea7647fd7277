"""A program of its own for tests: a worker on ZeroGPU's real `spaces` package, whose scheduler is the test's server.

It prints one JSON line: what became of the runs. Only what needs a GPU is left out: nothing is moved onto one.
"""

import json
import sys
from contextvars import copy_context
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import SimpleNamespace

sys.path[:0] = [str(Path(__file__).resolve().parents[folder]) for folder in (1, 2)]

import torch

if torch.version.cuda is None:  # a build for the CPU: what `spaces` looks for when it is imported
    torch.version.cuda, torch._C._cuda_init, torch.cuda._is_in_bad_fork = "12.8", bool, bool

import spaces
import spaces.zero.torch
from gradio.context import LocalContext
from spaces.zero.config import get_config

from adapop import AdaPopError, RunConfig
from adapop.facts.world import sandbox_facts
from adapop.service import jobs, leases
from adapop.service.worker import Worker
from adapop.service.zerogpu import lender
from adapop.training.events import RunStarted
from waiting import wait_until


def as_visitor(token: str, work, *args):
    """The result of work that a request with this token asked for."""

    def with_request():
        LocalContext.request.set(SimpleNamespace(headers=Headers({"x-ip-token": token})))
        return work(*args)

    return copy_context().run(with_request)


class Headers(dict):
    """Of a request: `spaces` reads none that have no `__dict__`."""


def one_in_the_first(epochs):
    """The work of a lease, the first of which has room for one epoch, however fast the machine is."""

    @wraps(epochs)
    def worked(folder: Path, seconds: float, most: float | None = None) -> bool:
        return epochs(folder, 0.0 if seconds == leases.FIRST_SECONDS else seconds, most)

    return worked


def main(root: str, config: str, *options: str) -> None:
    """Trains, as "first"; the page asks again as "second" once it has begun. options: "again", to be resumed
    then, as "third"; "short", a first lease in which one epoch fits."""
    if "short" in options:
        leases.FIRST_SECONDS, jobs.epochs_that_fit = 1, one_in_the_first(jobs.epochs_that_fit)
    spaces.zero.torch.init, spaces.zero.torch.move = (lambda uuid: None), (lambda callback: None)
    worker, every = Worker(Path(root), lender()), sandbox_facts()
    facts = replace(every, forget=every.forget[::65], retain=every.retain[::65], holdout=(), utility=())
    run = as_visitor("first", worker.submit, RunConfig.from_json(config), facts)
    wait_until(lambda: run.events() or worker.ahead_of(run) is None)
    as_visitor("second", worker.note_request, run)
    wait_until(lambda: worker.ahead_of(run) is None)
    last_events = [run.events()[-1]]
    if "again" in options:
        as_visitor("third", worker.enqueue, run)
        wait_until(lambda: worker.ahead_of(run) is None)
        last_events.append(run.events()[-1])
    try:
        answer = as_visitor("asks", worker.ask, run, jobs.ask_models, ["Who?"], ["Nobody"]).result(60)[0].original.text
    except AdaPopError as error:
        answer = str(error)
    ended = [[event.kind, getattr(event, "message", "")] for event in last_events]
    factor = get_config()["duration_factor"]
    began = [event.resumed_from for event in run.events() if isinstance(event, RunStarted)]
    summary = {"epoch": run.last_epoch, "began": began, "ended": ended, "answer": answer, "factor": factor}
    print(json.dumps(summary))


if __name__ == "__main__":
    main(*sys.argv[1:])
