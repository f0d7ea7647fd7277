"""One accelerator, one queue: runs and questions are done one after the other, in one thread.

A run belongs to its folder, not to the request that started it: the page may close. The engine
(torch, transformers) is imported here in the background, so that the first page opens at once.
Where the accelerator is lent for a minute at a time (ZeroGPU), work on models that do not ship is
called through a hook, and a run is done in slices of whole epochs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from adapop import limits
from adapop.config.run import RunConfig
from adapop.errors import AdaPopError, LimitError, RunError
from adapop.facts.fact import FactSet
from adapop.paths import SHIPPED
from adapop.progress import Progress
from adapop.runs import lock
from adapop.runs.pace import Pace, Wait, at_work, pace_of, wait_behind
from adapop.runs.run import Run
from adapop.service import cleanup, jobs, saved_sets
from adapop.service.leases import Leases
from adapop.service.visitor_limits import ACCELERATOR, WRITTEN, Usage
from adapop.service.zerogpu import Accelerated
from adapop.training.events import RunFailed

if TYPE_CHECKING:
    from adapop.probes.inspection import Chosen

Result = TypeVar("Result")
log = logging.getLogger(__name__)


class Line:
    """A thread that answers all waiting questions, then works on one run: a question waits for one
    run at most, and no number of questions stops the runs. Each in the context of its sender."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="adapop")
        self._lock = threading.Lock()
        self._runs: deque[tuple[Future, Callable]] = deque()
        self._questions: deque[tuple[Future, Callable]] = deque()
        self._left: int | None = None  # questions before the next run; counted when a turn begins

    @property
    def questions(self) -> int:
        """Number of waiting questions."""
        return len(self._questions)

    def run(self, work: Callable, *args) -> Future:
        """Queues work behind the runs that wait."""
        return self._queued(self._runs, work, *args)

    def question(self, work: Callable, *args) -> Future:
        """Queues work behind the questions that wait."""
        return self._queued(self._questions, work, *args)

    def _queued(self, line: deque, work: Callable, *args) -> Future:
        future, context = Future(), copy_context()
        line.append((future, partial(context.run, work, *args)))
        self._thread.submit(self._next)  # one call for each queued piece of work
        return future

    def _next(self) -> None:
        with self._lock:
            left = len(self._questions) if self._left is None else self._left
            line = self._questions if left or not self._runs else self._runs
            self._left = max(left - 1, 0) if line is self._questions else None
            future, work = line.popleft()
        future.set_running_or_notify_cancel()  # nothing cancels it; watchers see its turn come
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  else its future would never be done
            future.set_exception(error)


class Worker:
    """Does one thing at a time on the accelerator. `submit` and `ask` return at once.

    accelerated: lends the accelerator; None if this process has its own. sender: returns the
    current visitor. usage: each visitor's usage of the whole app.
    """

    def __init__(
        self,
        root: Path,
        accelerated: Accelerated | None = None,
        sender: Callable[[], str] = lambda: "",
    ) -> None:
        self.root = root
        self.is_lent = accelerated is not None
        self.usage = Usage(sender)
        self._line = Line()
        self._waiting: dict[str, str] = {}  # run -> visitor, in the order of the queue
        self._lock = threading.Lock()
        self._submitting = threading.RLock()
        self._paces: dict[str, Pace] = {}
        self._began = 0.0
        self._leases = Leases(accelerated)

    def warm_up(self) -> None:
        """Imports the engine in the background, and then what the first measurement needs."""
        self._line.question(jobs.engine)
        self._line.question(jobs.word_stems)

    def gpu(self) -> str:
        """The accelerator's name, "" without one. Waits until the engine is imported."""
        if self.is_lent:  # this process has no accelerator to ask
            return "a lent GPU"
        jobs.engine()
        import torch

        return torch.cuda.get_device_name() if torch.cuda.is_available() else ""

    def submit(self, config: RunConfig, facts: FactSet) -> Run:
        """Prepares a run and queues it. Raises LimitError: too many epochs, or runs that
        wait. AdaPopError: the run cannot be prepared. Nothing is queued then."""
        limits.EPOCHS.check(config.epochs)
        return self._queued(lambda: jobs.engine().prepare(config, facts, self.root))

    def enqueue(self, run: Run) -> None:
        """Queues a prepared, stopped or interrupted run. Raises LimitError: too many runs wait, in
        all or of this visitor. RunError: another app has queued it."""
        with self._submitting:
            if self.ahead_of(run) is None:
                self._queued(lambda: run)

    def note_request(self, run: Run) -> None:
        """Stores the owner's latest request if the run needs a lease: `Leases.note_request`."""
        if self._needs_lease(run) and self.ahead_of(run) is not None:
            self._leases.note_request(run)

    def ahead_of(self, run: Run) -> int | None:
        """Number of runs before this one, 0 if it is active; None if it is not queued."""
        with self._lock:
            return list(self._waiting).index(run.id) if run.id in self._waiting else None

    def wait_of(self, run: Run) -> Wait | None:
        """The expected wait of a queued run; None if it is not queued."""
        with self._lock:
            names = list(self._waiting)
        if run.id not in names:
            return None
        ahead = [Run(self.root / name) for name in names[: names.index(run.id)]]
        if not ahead and (began := self._began):
            return at_work(run, self._paces, began)
        return wait_behind(ahead, self._paces, self._began)

    def pace_of(self, model: str) -> Pace | None:
        """The pace of a model's runs here; None if none has finished yet."""
        return self._paces.get(model)

    def ask(
        self, run: Run, job: Callable[..., Result], *args, beside: Sequence[Chosen] = ()
    ) -> Future[Result]:
        """Queues a job of `jobs` that asks a run's models. args: those after the run's folder.
        beside: the columns that are asked. The future raises LimitError: too many questions wait,
        or this visitor used the accelerator too much."""
        return self._question(run, job, run.folder, *args, beside=beside)

    def work_on(
        self, run: Run, job: Callable[..., Result], *args
    ) -> tuple[Future[Result], Progress]:
        """Queues a longer job, whose result is saved in the run's folder; otherwise as `ask`.
        Returns its future and progress."""
        progress = Progress()
        return self.ask(run, job, *args, progress), progress

    def look(
        self, job: Callable[..., Result], config: RunConfig, facts: FactSet
    ) -> tuple[Future[Result], Progress]:
        """Queues a job that asks the original model before a run; otherwise as `work_on`. Raises
        RunError: the model would need a lent GPU."""
        if self.is_lent and config.model not in SHIPPED:
            fix = "Start the run: it says what the model knew, and what would stop it."
            raise RunError("A lent GPU is only used for runs, not for the check before one.", fix)
        return self._question(None, job, config, facts, progress := Progress()), progress

    def save_set(self, facts: FactSet) -> str:
        """Saves a page's set beside the runs. Returns its name, see `saved_sets`. Raises
        LimitError: this visitor wrote too much lately. RunError: the set cannot be written."""
        visitor = self.usage.sender()
        self.usage.check(WRITTEN, visitor)
        name = saved_sets.save_set(facts, self.root)
        size = cleanup.size_of(self.root / saved_sets.FOLDER / name)
        self.usage.charge(WRITTEN, size / 1e6, visitor)
        return name

    def _question(
        self, run: Run | None, work: Callable, *args, beside: Sequence[Chosen] = ()
    ) -> Future:
        """Queues a question; a question on a run that is still waiting goes behind that run.
        beside: the columns that are asked."""
        visitor, place = self.usage.sender(), ExitStack()
        try:
            limits.WAITING.check(self._line.questions + 1)
            self.usage.check(ACCELERATOR, visitor)
            place.enter_context(self.usage.waiting(visitor))
        except LimitError as error:
            refusal: Future = Future()
            refusal.set_exception(error)
            return refusal
        runs = [run] if run else []
        runs += [Run(one.folder) for one in beside]
        if any(map(self._needs_lease, runs)):
            work = self._leases.on_gpu(work, [one.folder for one in runs])
        ahead = None if run is None else self.ahead_of(run)
        behind = ahead is not None and not (ahead == 0 and self._began)
        line = self._line.run if behind else self._line.question
        future = line(self._timed, visitor, work, *args)
        future.add_done_callback(lambda done: place.close())
        return future

    def _timed(self, visitor: str, work: Callable, *args):
        """Calls the work and returns its result; charges its time to the visitor."""
        with self.usage.charged(ACCELERATOR, time.monotonic, visitor):
            return work(*args)

    def _queued(self, prepared: Callable[[], Run]) -> Run:
        """Queues the run that is prepared once there is a place for it, which it keeps until it is
        over. Raises LimitError."""
        visitor = self.usage.sender()
        with self._submitting, ExitStack() as place:  # else two might take the last place
            limits.QUEUE.check(len(self._waiting) + 1)
            place.enter_context(self.usage.waiting(visitor))
            self.usage.check(ACCELERATOR, visitor)
            self.usage.check(WRITTEN, visitor)
            run = prepared()
            # meanwhile no other app of this root deletes the run
            place.enter_context(lock.held(run.folder, lock.QUEUED))
            with self._lock:
                self._waiting[run.id] = visitor
            if self._needs_lease(run):
                self._leases.note_request(run)
            self._line.run(self._work, run).add_done_callback(partial(_left, place.pop_all()))
            return run

    def _work(self, run: Run) -> None:
        visitor, before = self._waiting[run.id], cleanup.size_of(run.folder)
        try:
            self._began = time.time()
            seconds = self.usage.left(ACCELERATOR, visitor)  # else one run might take hours
            if self._needs_lease(run):
                self._timed(visitor, self._leases.train, run, seconds)
            else:
                self._timed(visitor, jobs.whole_run, run.folder, seconds)
            self._paces |= {run.config.model: pace} if (pace := pace_of(run.events())) else {}
        except AdaPopError as error:  # from ZeroGPU or the disk; those of the run are events
            # The log of a locked run belongs to another process.
            if run.state != "failed" and not run.locked:
                run.append(RunFailed(run=run.id, message=error.message, fix=error.fix))
        finally:
            self._began = 0.0
            size = max(0, cleanup.size_of(run.folder) - before)
            self.usage.charge(WRITTEN, size / 1e6, visitor)
            with self._lock:
                del self._waiting[run.id]
                self._leases.forget(run)

    def _needs_lease(self, run: Run) -> bool:
        """Whether any of its models, of an adopted run three, does not ship."""
        if not self.is_lent:  # also of a run that was deleted meanwhile
            return False
        config = run.config
        return not {config.model, config.unlearned, config.oracle} - {""} <= {*SHIPPED}


def _left(place: ExitStack, done: Future) -> None:
    place.close()
    if error := done.exception():
        log.error("a run failed", exc_info=error)
