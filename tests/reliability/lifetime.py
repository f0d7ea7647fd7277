"""Does run after run in one process, as an app does for weeks, and shows what it still holds of those that are over."""

import gc
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import psutil
from calling import run_as_command

from adapop import METHODS, make_config
from adapop.facts.world import sandbox_facts
from adapop.service.worker import Worker

ROWS = 20
FACTS, BATCH = 4, 2
PATIENCE_SECONDS = 600


@dataclass(frozen=True)
class Held:
    """What the process holds after so many runs. megabytes: resident. files: open file descriptors. models: adapted
    models that are still referred to; the last that was asked is kept on purpose."""

    runs: int
    megabytes: float
    threads: int
    files: int
    models: int
    seconds: float


def main(runs: int) -> int:
    """Prints a row for every twentieth of the runs."""
    print("".join(f"{item.name:>12}" for item in fields(Held)))
    with tempfile.TemporaryDirectory() as folder:
        for held in lived(runs, max(1, runs // ROWS), Path(folder)):
            print("".join(f"{value:>12.0f}" for value in astuple(held)), flush=True)
    return 0


def lived(runs: int, every: int, root: Path) -> Iterator[Held]:
    """Does so many small runs, all methods by turns, each one also asked and then deleted; what is held after some."""
    import torch

    torch.set_num_threads(1)
    from adapop.model.adapted import AdaptedModel

    worker, process, begun, methods = Worker(root), psutil.Process(), time.perf_counter(), tuple(METHODS)
    world = sandbox_facts()
    facts = replace(world, forget=world.forget[:FACTS], retain=world.retain[:FACTS], holdout=(), utility=())
    for count in range(1, runs + 1):
        config = make_config(methods[count % len(methods)], epochs=1, batch=BATCH, micro_batch=BATCH)
        run = worker.submit(config, facts)
        worker.ask(run, [facts.forget[0].question], [facts.forget[0].answer]).result(PATIENCE_SECONDS)
        if run.state != "done":
            raise RuntimeError(f"run {count} did not come to its end: {run.events()[-1:]}")
        shutil.rmtree(run.folder)
        if count % every == 0:
            gc.collect()
            megabytes, seconds = process.memory_info().rss / 1e6, time.perf_counter() - begun
            models = sum(type(thing) is AdaptedModel for thing in gc.get_objects())
            yield Held(count, megabytes, process.num_threads(), process.num_fds(), models, seconds)


if __name__ == "__main__":
    run_as_command(main, __doc__, runs=(500, "how many"))
