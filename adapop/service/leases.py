"""Leases of a lent GPU: their length, and the visitor in whose name they are requested."""

from collections.abc import Callable, Iterable
from contextvars import Context, copy_context
from math import ceil
from pathlib import Path
from time import monotonic

from adapop.paths import SHIPPED
from adapop.runs.best import epochs_left
from adapop.runs.run import Run
from adapop.service import jobs
from adapop.service.jobs import END_EPOCHS, SPARE
from adapop.service.zerogpu import ASK_SECONDS, LONG_SECONDS, Accelerated, on_accelerator
from adapop.training.events import Event, RunStarted, Saved

# Seconds of a run's first lease, which loads the model and times an epoch; of the longest lease,
# unless one epoch needs more (a visitor without an account has 120 s a day, counted 1.5 times); and
# of loading the model.
FIRST_SECONDS, MOST_SECONDS, LOAD_SECONDS = 60, 75, 10
# the jobs that a lent GPU is asked for, besides runs -> for how many seconds
QUESTIONS = {
    jobs.ask_models: ASK_SECONDS,
    jobs.ask_columns: LONG_SECONDS,
    jobs.inspect_columns: LONG_SECONDS,
    jobs.sample_columns: LONG_SECONDS,
    jobs.at_strengths: LONG_SECONDS,
    jobs.layers_of_reply: LONG_SECONDS,
    jobs.probe_models: LONG_SECONDS,
    jobs.recover_facts: LONG_SECONDS,
}


class Leases:
    """Runs work on a lent GPU. accelerated: lends it, None if there is no lent GPU."""

    def __init__(self, accelerated: Accelerated | None) -> None:
        requested_seconds = lambda _, seconds, most: seconds  # noqa: E731
        self._epochs = on_accelerator(jobs.epochs_that_fit, accelerated, requested_seconds)
        self._jobs = {job: on_accelerator(job, accelerated, s) for job, s in QUESTIONS.items()}
        self._requests: dict[str, Context] = {}  # run -> context of its owner's last request

    def on_gpu(self, job: Callable, runs: Iterable[Path]) -> Callable:
        """One of `QUESTIONS` that first downloads the models of all runs that are asked, then is
        called on the lent GPU. runs: their folders."""

        def leased(folder: Path, *args):
            for one in dict.fromkeys(runs):
                jobs.fetch_model(one)
            return self._jobs[job](folder, *args)

        return leased

    def note_request(self, run: Run) -> None:
        """Stores the context of the owner's latest request: the next GPU is asked for in its name,
        because the permission of an older request may have expired."""
        self._requests[run.id] = copy_context()

    def forget(self, run: Run) -> None:
        """Forgets the requests about a run that is over."""
        self._requests.pop(run.id, None)

    def train(self, run: Run, seconds: float | None = None) -> None:
        """Executes the rest of a run, lease after lease; downloads its model first. seconds: as
        `jobs.whole_run` has it, over all leases. Raises AdaPopError: no model or no lease could be
        obtained, or the GPU was withdrawn."""
        jobs.fetch_model(run.folder)
        began, goes_on = monotonic(), True
        while goes_on:
            left = None if seconds is None else max(0.0, seconds - (monotonic() - began))
            work = self._epochs, run.folder, lease_seconds(run), left
            goes_on = self._requests[run.id].copy().run(*work)


def lease_seconds(run: Run) -> int:
    """Seconds of GPU time that a run requests next: at first for loading the model and timing an
    epoch; later for all remaining epochs, or as many as the longest lease allows, at least one."""
    took = _epoch_seconds(run.events())
    if took is None:
        return FIRST_SECONDS
    left = epochs_left(run)
    then = 1 if left else END_EPOCHS
    both = then, left + END_EPOCHS
    least, all_of_it = (LOAD_SECONDS + SPARE * took * epochs for epochs in both)
    return ceil(max(least, min(all_of_it, MOST_SECONDS)))


def _epoch_seconds(events: Iterable[Event]) -> float | None:
    """The longest time from one saved epoch to the next; None before the first was saved."""
    took, since = [], None
    for event in events:
        if isinstance(event, Saved) and since is not None:
            took.append(event.time - since)
        since = event.time if isinstance(event, RunStarted | Saved) else since
    return max(took, default=None)


def cost_of_run(model: str) -> str:
    """The GPU time that a run asks ZeroGPU for, in words."""
    if model in SHIPPED:
        return "GPU time: none; the included models do not need a GPU."
    then = f"then what the other epochs need, as a rule at most {MOST_SECONDS} s at a time"
    cost = f"GPU time: {FIRST_SECONDS} s of Hugging Face's shared GPU, {then}."
    return f"{cost} Leave the page open: it is the page that asks for the time."
