"""Applies a function to many items in several processes. If a process dies, only its item is lost.

Each worker is a spawned process that lives long, so torch is imported once per worker, not once per
item. The parent owns the order and the results and imports nothing heavy.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from adapop.errors import ConfigError
from adapop.paths import ASSETS, ROOT

ATTEMPTS = 3
NOT_SENT = [".git", ".venv*", "tests", "*.html"]


@dataclass(frozen=True)
class Finished:
    """An item with its result, or with the reason of its failure in `error`."""

    item: Any
    result: Any = None
    error: str = ""


def finished(
    items: Sequence[Any], function: Callable[[Any], Any], processes: int
) -> Iterator[Finished]:
    """Yields the result of `function` for every item, as they are completed. Closing the iterator
    ends the workers. function: pickled by its name. An item whose worker was killed is tried again,
    at most three times in all. An exception of the function becomes the item's error."""
    waiting = deque((item, 1) for item in items)
    with tempfile.TemporaryDirectory(prefix="adapop-bench-", ignore_cleanup_errors=True) as folder:
        workers = [_Worker(function, folder) for _ in range(min(processes, len(waiting)))]
        try:
            for worker in workers:
                worker.begin(waiting.popleft())
            while at_work := [worker for worker in workers if worker.item is not None]:
                busy = {worker.connection: worker for worker in at_work}
                for connection in wait(list(busy)):
                    yield from _collect(busy[connection], waiting)
        finally:
            for worker in workers:
                worker.end()


def _collect(worker: _Worker, waiting: deque) -> Iterator[Finished]:
    """Sends a worker its next item, then yields the item that it finished, if any."""
    (item, attempt), worker.item = worker.item, None
    try:
        result = Finished(item, *worker.connection.recv())
    except (EOFError, OSError):
        worker.restart()
        result = None
        if attempt < ATTEMPTS:
            waiting.append((item, attempt + 1))
        else:
            reason = f"its process died {ATTEMPTS} times; is there enough memory?"
            result = Finished(item, error=reason)
    if waiting:
        worker.begin(waiting.popleft())
    if result is not None:
        yield result


class _Worker:
    """A process and its pipe. item: the item in progress and its attempt, None while idle."""

    def __init__(self, function: Callable[[Any], Any], folder: str) -> None:
        self._arguments = (function, folder)
        self.item: tuple[Any, int] | None = None
        self.restart()

    def restart(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, pipe = context.Pipe()
        self.process = context.Process(target=_serve, args=(pipe, *self._arguments), daemon=True)
        self.process.start()
        pipe.close()  # our copy is closed, so that reading ends when the process dies

    def begin(self, item: tuple[Any, int]) -> None:
        self.item = item
        with suppress(BrokenPipeError):  # `_collect` notices that an idle worker died
            self.connection.send(item[0])

    def end(self) -> None:
        self.process.kill()
        self.process.join()


def _serve(connection: Connection, function: Callable[[Any], Any], folder: str) -> None:
    """Runs in the worker: computes items until the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    # Set before torch is imported: the other cores are for the other workers.
    os.environ["OMP_NUM_THREADS"] = "1"
    tempfile.tempdir = folder
    while True:
        try:
            item = connection.recv()
        except EOFError:
            return
        try:
            reply = (function(item), "")
        except Exception as error:  # noqa: BLE001  the others go on; the parent reports this one
            reply = (None, f"{type(error).__name__}: {error}")
        try:
            connection.send(reply)
        except BrokenPipeError:
            return


def finished_on_ray(
    items: Sequence[Any], function: Callable[[Any], Any], processes: int
) -> Iterator[Finished]:
    """As `finished`, on the cluster that $RAY_ADDRESS names, else on `processes` workers here. The
    package travels with the work; nodes need its requirements. Raises ConfigError: Ray is not
    installed."""
    if not items:
        return
    try:
        import ray
    except ImportError:
        message = "--ray needs Ray, which is not installed."
        raise ConfigError(message, "`pip install ray`, or leave --ray out.") from None
    address = os.environ.get("RAY_ADDRESS")
    ray.init(
        address=address or "local",
        num_cpus=None if address else processes,
        include_dashboard=None if address else False,
        runtime_env={**_package(), "excludes": NOT_SENT, "env_vars": {"OMP_NUM_THREADS": "1"}},
        log_to_driver=False,
    )
    try:
        task = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(_result)
        pending = {task.remote(function, item): item for item in items}
        while pending:
            (ready,), _ = ray.wait(list(pending))
            item = pending.pop(ready)
            try:
                yield Finished(item, ray.get(ready))
            except ray.exceptions.RayError as error:
                yield Finished(item, error=_reason(error))
    finally:
        ray.shutdown()


def _package() -> dict[str, Any]:
    """Ray's setting of the path to upload: the checkout, or the package alone if pip installed
    it."""
    if ASSETS.parent == ROOT:
        return {"working_dir": str(ROOT)}
    return {"py_modules": [str(ROOT / "adapop")]}


def _result(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


def _reason(error: Exception) -> str:
    """One line on why a task failed: the function's exception, or Ray's message."""
    cause = getattr(error, "cause", None)
    if cause is not None:
        return f"{type(cause).__name__}: {cause}"
    return f"its process died {ATTEMPTS} times ({type(error).__name__})"
