"""Kills runs at random moments, resumes them, and compares each with a run that nobody disturbed.

Every attempt at a run is a process of its own and every kill a real SIGKILL. The processes are forked from one that
has imported the engine, so that a hundred of them take minutes and not an hour.
"""

import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.context import BaseContext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from calling import run_as_command

from adapop.config.presets import make_config
from adapop.errors import ConfigError
from adapop.facts.world import sandbox_facts
from adapop.runs.run import Run
from adapop.training.events import Measuring, RunStarted

KILLS_A_RUN = 4
METHODS = ("adapop", "altpo")  # the second also keeps the wrong answers that it found
EPOCHS, FACTS, BATCH = 2, 8, 2
KEPT = ("adapter_model.safetensors", "optimizer.safetensors", "state.json")
HIDDEN = ("run", "time", "seconds")  # what may differ between two runs of one configuration
POLL_SECONDS = 0.0002
# seconds from what is waited for to the kill, at most
SAVING_SECONDS, SAYING_SECONDS = 0.01, 0.003


@dataclass
class Survived:
    """kills: how many by what was waited for. runs: how many were compared. different: what of which run was not as it
    should be."""

    kills: Counter = field(default_factory=Counter)
    runs: int = 0
    different: list[str] = field(default_factory=list)


def main(kills: int) -> int:
    """Prints the table. Exit status 1 if anything differed."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = survived(kills, 0, Path(folder))
    for aim, count in found.kills.most_common():
        print(f"{f'killed at {aim}':<44}{count:>5}")
    print(f"{'killed in all':<44}{found.kills.total():>5}")
    print(f"{'runs gone on with to their end':<44}{found.runs:>5}")
    print(f"{'adapters, optimisers or logs that differ':<44}{len(found.different):>5}")
    print(*found.different, sep="\n", end="\n" if found.different else "")
    print(f"{time.perf_counter() - begun:.0f} s")
    return int(bool(found.different))


def survived(kills: int, seed: int, root: Path) -> Survived:
    """Kills attempts at runs until that many were killed; each run is then gone on with to its end and compared."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        raise ConfigError("This system cannot fork processes.", "Run it on Linux or macOS.")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["adapop.runs.execute"])
    rng, found = random.Random(seed), Survived()
    straight = {method: _prepared(method, root / "straight") for method in METHODS}
    seconds = {method: _finished(context, run) for method, run in straight.items()}
    while found.kills.total() < kills:
        method = METHODS[found.runs % len(METHODS)]
        run = _prepared(method, root / "killed")
        for _ in range(min(KILLS_A_RUN, kills - found.kills.total())):
            if aim := _killed(context, run, rng, seconds[method]):
                found.kills[aim] += 1
        if run.state != "done":
            _finished(context, run)
        found.runs += 1
        found.different += [f"{run.id} ({method}): {what}" for what in _differences(run, straight[method])]
    return found


def attempt(folder: Path) -> None:
    """Goes on with a run to its end. What a process does until it is killed."""
    import torch

    from adapop.runs.execute import execute

    torch.set_num_threads(1)
    for _ in execute(Run(folder)):
        pass


def _prepared(method: str, root: Path) -> Run:
    from adapop.runs.execute import prepare

    facts = sandbox_facts()
    few = {group: getattr(facts, group)[:FACTS] for group in ("forget", "retain", "holdout", "utility")}
    return prepare(make_config(method, epochs=EPOCHS, batch=BATCH, micro_batch=BATCH), replace(facts, **few), root)


def _finished(context: BaseContext, run: Run) -> float:
    """Lets an attempt come to its end, and returns how long it took."""
    begun = time.perf_counter()
    process = context.Process(target=attempt, args=(run.folder,))
    process.start()
    process.join()
    if run.state != "done":
        raise RuntimeError(f"{run.folder} did not come to its end: {run.events()[-1:]}")
    return time.perf_counter() - begun


def _killed(context: BaseContext, run: Run, rng: random.Random, seconds: float) -> str | None:
    """Starts an attempt and kills it: a third of them at any moment, a third while a checkpoint is written, a third as
    an event is. Returns which, None if it was done before."""
    process = context.Process(target=attempt, args=(run.folder,))
    process.start()
    aim = rng.choice(("any moment", "a checkpoint", "an event"))
    if aim == "a checkpoint":
        following = run.checkpoint((run.last_epoch or 0) + 1).name
        part = rng.choice(("writing-*", f"writing-*/{KEPT[1]}", f"writing-*/{KEPT[2]}", following))
        _wait(lambda: any(run.folder.glob(part)), process)
        time.sleep(rng.uniform(0, SAVING_SECONDS))
    elif aim == "an event":
        lines = _raw(run).count("\n") + rng.randrange(1, 2 * EPOCHS + EPOCHS * FACTS // BATCH)
        _wait(lambda: _raw(run).count("\n") >= lines, process)
        time.sleep(rng.uniform(0, SAYING_SECONDS))
    else:
        process.join(rng.uniform(0, seconds))
    process.kill()
    process.join()
    return None if process.exitcode == 0 else aim


def _wait(seen: Callable[[], bool], process: multiprocessing.process.BaseProcess) -> None:
    while process.is_alive() and not seen():
        time.sleep(POLL_SECONDS)


def _raw(run: Run) -> str:
    path = run.folder / "events.jsonl"
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _differences(run: Run, straight: Run) -> list[str]:
    """What of a run is not as in the undisturbed one."""
    found = [
        f"{name} of epoch {epoch}"
        for epoch in range(1, EPOCHS + 1)
        for name in KEPT
        if (run.checkpoint(epoch) / name).read_bytes() != (straight.checkpoint(epoch) / name).read_bytes()
    ]
    return found + (["events"] if _said(run) != _said(straight) else [])


def _said(run: Run) -> list[tuple[str, dict]]:
    """What a run said, but for its name, the clock, that it was begun again, and how far a slow measurement was."""
    events = [event for event in run.events() if not isinstance(event, RunStarted | Measuring)]
    return [(event.kind, {key: value for key, value in asdict(event).items() if key not in HIDDEN}) for event in events]


if __name__ == "__main__":
    run_as_command(main, __doc__, kills=(100, "how many"))
