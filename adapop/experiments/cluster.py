"""Applies a function to many items on a Ray cluster. Ray is optional and imported here alone."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from adapop.errors import ConfigError
from adapop.experiments.engine import ATTEMPTS, Finished
from adapop.paths import ASSETS, ROOT

NOT_SENT = [".git", ".venv*", "tests", "*.html"]


def finished_on_ray(items: Sequence[Any], function: Callable[[Any], Any], processes: int) -> Iterator[Finished]:
    """As `engine.finished`, on the cluster that $RAY_ADDRESS names, else on one of `processes`
    workers started here.

    The package travels with the work; the nodes need its requirements installed.

    Raises:
        ConfigError: Ray is not installed.
    """
    if not items:
        return
    try:
        import ray
    except ImportError:
        raise ConfigError(
            "--ray needs Ray, which is not installed.", "`pip install ray`, or leave --ray out."
        ) from None
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
    """The path that Ray uploads: the checkout, or only the package where pip installed it."""
    return {"working_dir": str(ROOT)} if ASSETS.parent == ROOT else {"py_modules": [str(ROOT / "adapop")]}


def _result(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


def _reason(error: Exception) -> str:
    """One line on why a task failed: the function's exception, or Ray's message."""
    cause = getattr(error, "cause", None)
    if cause is not None:
        return f"{type(cause).__name__}: {cause}"
    return f"its process died {ATTEMPTS} times ({type(error).__name__})"
