"""A worker that only queues."""

from pathlib import Path

from adapop.config.run import RunConfig
from adapop.facts.fact import FactSet
from adapop.runs.execute import prepare
from adapop.runs.run import Run
from adapop.service.worker import Worker


class IdleWorker(Worker):
    """A worker that only queues."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.queued: list[Run] = []

    def submit(self, config: RunConfig, facts: FactSet) -> Run:
        self.enqueue(run := prepare(config, facts, self.root))
        return run

    def enqueue(self, run: Run) -> None:
        self.queued.append(run)

    def ahead_of(self, run: Run) -> int | None:
        return 0 if run in self.queued else None
