"""Applies a function to many items in several processes, or on a Ray cluster, with joblib."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError

from adapop.errors import ConfigError, RunError
from adapop.paths import ASSETS, ROOT

# Makes joblib's calls and yields each item's place with its result or error.
Results = Callable[[list], Iterator[tuple[int, Any, str]]]
NOT_SENT = [".git", ".venv*", "tests", "*.html"]
DIED = (
    "a process died before it was done; is there enough memory? Start again, perhaps with fewer "
    "--processes: what is done is kept."
)


@dataclass(frozen=True)
class Finished:
    """An item with its result, or with the reason of its failure in `error`."""

    item: Any
    result: Any = None
    error: str = ""


def finished(
    items: Sequence[Any], function: Callable[[Any], Any], processes: int, ray: bool = False
) -> Iterator[Finished]:
    """Yields the result of `function` for every item, as they are completed. Closing the iterator
    ends the workers. function: pickled by its name. An exception of the function becomes the item's
    error. If a worker is killed, every item that is not done by then has `DIED`.

    processes: 1 for none but this. ray: on the cluster that $RAY_ADDRESS names, else on `processes`
    workers here. Raises ConfigError: Ray is not installed. RunError: it does not start."""
    left = dict(enumerate(items))
    backend = _on_ray(processes) if ray and left else _on_this_machine(processes)
    with backend as results, tempfile.TemporaryDirectory(prefix="adapop-bench-") as folder:
        attempt, here = delayed(_attempt), os.getpid()
        calls = [attempt(function, place, item, folder, here) for place, item in left.items()]
        try:
            with closing(results(calls)) as work:
                for place, result, error in work:
                    yield Finished(left.pop(place), result, error)
        except TerminatedWorkerError:
            yield from (Finished(item, error=DIED) for item in left.values())


def _attempt(
    function: Callable[[Any], Any], place: int, item: Any, folder: str, parent: int
) -> tuple[int, Any, str]:
    """Runs in the worker. folder: for its temporary files, which a killed worker leaves behind."""
    if os.getpid() != parent:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
        if os.path.isdir(folder):  # not on another machine
            tempfile.tempdir = folder
    try:
        return place, function(item), ""
    except Exception as error:  # noqa: BLE001  the others go on; the parent reports this one
        return place, None, f"{type(error).__name__}: {error}"


@contextmanager
def _on_this_machine(processes: int) -> Iterator[Results]:
    """joblib's processes, one core each."""
    with parallel_config(backend="loky", inner_max_num_threads=1):
        yield Parallel(n_jobs=processes, batch_size=1, return_as="generator_unordered")


@contextmanager
def _on_ray(processes: int) -> Iterator[Results]:
    """Ray's workers, to which the package travels with the work; nodes need its requirements.
    joblib cannot yield results from Ray one by one: they come for a round of all workers."""
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        message = "--ray needs Ray, which is not installed."
        raise ConfigError(message, "`pip install ray`, or leave --ray out.") from None
    address = os.environ.get("RAY_ADDRESS")
    try:
        ray.init(
            address=address or "local",
            num_cpus=None if address else processes,
            include_dashboard=None if address else False,
            runtime_env={**_package(), "excludes": NOT_SENT, "env_vars": {"OMP_NUM_THREADS": "1"}},
            log_to_driver=False,
        )
    except Exception as error:  # on a busy machine Ray raises nothing more specific
        why = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        do = "Check RAY_ADDRESS and that cluster" if address else "Try again on a quieter machine"
        fix = f"{do}, or leave --ray out. What is done is kept."
        raise RunError(f"Ray did not start: {why}.", fix) from error
    register_ray()
    workers = max(2, int(ray.cluster_resources()["CPU"]))  # joblib uses no worker for one

    def results(calls: list) -> Iterator[tuple[int, Any, str]]:
        for start in range(0, len(calls), workers):
            try:
                yield from Parallel(n_jobs=workers, batch_size=1)(calls[start : start + workers])
            except ray.exceptions.RayError as error:
                raise TerminatedWorkerError(str(error)) from None

    try:
        with parallel_config(backend="ray"):
            yield results
    finally:
        ray.shutdown()


def _package() -> dict[str, Any]:
    """Ray's setting of the path to upload: the checkout, or the package alone if pip installed
    it."""
    if ASSETS.parent == ROOT:
        return {"working_dir": str(ROOT)}
    return {"py_modules": [str(ROOT / "adapop")]}
