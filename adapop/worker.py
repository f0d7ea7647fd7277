"""One accelerator, one queue: runs and questions are done one after the other, in a thread of their own.

A run belongs to its folder, not to the request that started it: the page may close. The engine (torch, transformers)
is imported here in the background, so that the first page opens at once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from adapop.config import RunConfig, make_config
from adapop.facts import Fact, FactSet
from adapop.progress import Progress
from adapop.runs import Run

if TYPE_CHECKING:
    from adapop.model import AdaptedModel
    from adapop.probes.ask import Asked
    from adapop.probes.plan import Plan
    from adapop.probes.prompts import NotApplicable
    from adapop.probes.rows import ProbeRow

log = logging.getLogger(__name__)


class Worker:
    """Does one thing at a time on the accelerator. `submit` and `ask` return at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="adapop")
        self._waiting: list[str] = []
        self._lock = threading.Lock()
        self._probed: tuple[Path, AdaptedModel] | None = None

    def warm_up(self) -> None:
        """Imports the engine in the background."""
        self._executor.submit(_engine)

    def submit(self, config: RunConfig, facts: FactSet) -> Run:
        """Prepares a run and queues it.

        Raises:
            AdaPopError: the run cannot be prepared; nothing was queued.
        """
        run = _engine().prepare(config, facts, self.root)
        self.enqueue(run)
        return run

    def enqueue(self, run: Run) -> None:
        """Queues a prepared, stopped or interrupted run."""
        with self._lock:
            if run.id in self._waiting:
                return
            self._waiting.append(run.id)
        self._executor.submit(self._work, run).add_done_callback(_log_failure)

    def ahead_of(self, run: Run) -> int | None:
        """How many runs are before this one (0: it is being worked on), None if it is not in the queue."""
        with self._lock:
            return self._waiting.index(run.id) if run.id in self._waiting else None

    def ask(self, run: Run, prompts: list[str], golds: list[str]) -> Future[list[Asked]]:
        """Asks both models of a run, when its turn comes."""
        return self._executor.submit(self._asked, run, prompts, golds)

    def recall(self, facts: Sequence[Fact]) -> tuple[Future[dict[str, float]], Progress]:
        """What the original sandbox model can answer, by fact id, when its turn comes; and how far it is."""
        progress = Progress()
        return self._executor.submit(_recalled, facts, progress), progress

    def probe(self, run: Run, plan: Plan) -> tuple[Future[list[ProbeRow | NotApplicable]], Progress]:
        """Asks both models of a run everything in the plan, when its turn comes; and how far it is.

        What was found is in the run's folder, also if it ends early: `Run.probes`.
        """
        progress = Progress()
        return self._executor.submit(self._found, run, plan, progress), progress

    def recover(self, run: Run, name: str) -> tuple[Future[dict], Progress]:
        """Tries to get a run's facts back by one of `RECOVERY`, when its turn comes; and how far it is.

        The result is in the run's folder: `Run.recovery`.
        """
        progress = Progress()
        return self._executor.submit(self._recovered, run, name, progress), progress

    def _work(self, run: Run) -> None:
        try:
            for _ in _engine().execute(run):
                pass
        finally:
            with self._lock:
                self._waiting.remove(run.id)

    def _asked(self, run: Run, prompts: list[str], golds: list[str]) -> list[Asked]:
        from adapop.probes.ask import ask

        return ask(self._model(run), prompts, golds, run.config.max_new_tokens)

    def _found(self, run: Run, plan: Plan, progress: Progress) -> list[ProbeRow | NotApplicable]:
        from adapop.probes.battery import battery

        found: list[ProbeRow | NotApplicable] = []
        model = self._model(run)
        try:
            for row in battery(model, run.facts, plan, progress):
                found.append(row)
        finally:
            if found:  # else what an earlier probing found is worth more
                run.save_probes(found)
        return found

    def _recovered(self, run: Run, name: str, progress: Progress) -> dict:
        from adapop.probes.recovery.choice import recover

        result = recover(name, self._model(run), run.facts, run.config.max_new_tokens, progress)
        run.save_recovery(name, result)
        return result

    def _model(self, run: Run) -> AdaptedModel:
        """The run's model at its last checkpoint; the one asked last is kept."""
        checkpoint = run.checkpoint(run.last_epoch or 0)
        if self._probed is None or self._probed[0] != checkpoint:
            self._probed = (checkpoint, _engine().load_model(run))
        return self._probed[1]


def _recalled(facts: Sequence[Fact], progress: Progress) -> dict[str, float]:
    from adapop.model import AdaptedModel
    from adapop.probes.measure import recall_by_fact

    config = make_config()
    return recall_by_fact(AdaptedModel.load(config), facts, config.max_new_tokens, progress)


@cache
def _engine():
    from adapop import execution

    return execution


def _log_failure(done: Future) -> None:
    if error := done.exception():
        log.error("a run failed", exc_info=error)
