"""Fresh processes that have the engine already: forked from one that loaded it once, a tenth of a second each.

What they work on is given to them: of the environment they see what it was when the first of them was started.
"""

import multiprocessing
from collections.abc import Callable

ENGINE = ["adapop.runs.execute", "adapop.probes.battery"]


def fresh_processes():
    """The context that starts them; where a system cannot fork, the one that starts them from nothing."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(ENGINE)
    return context


def forked(work: Callable, *values) -> multiprocessing.process.BaseProcess:
    """A process at work; the caller waits for it or kills it. work: a function of a module."""
    process = fresh_processes().Process(target=_worked, args=(work, values), daemon=True)
    process.start()
    return process


def _worked(work: Callable, values: tuple) -> None:
    import torch

    torch.set_num_threads(1)
    work(*values)
