"""Kills runs at random moments, resumes them, and compares each with a run that nobody disturbed.

Every attempt at a run is a process of its own and every kill a real SIGKILL. The processes are forked from one that
has imported the engine, so that a hundred of them take minutes and not an hour.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path

from adapop import Run, make_config
from adapop.facts.world import sandbox_facts
from forking import forked
from interrupting import timeless

KILLS_A_RUN = 4
METHODS = ("adapop", "altpo")  # the second also keeps the wrong answers that it found
EPOCHS, FACTS, BATCH = 2, 8, 2
KEPT = ("adapter_model.safetensors", "optimizer.safetensors", "state.json")
POLL_SECONDS = 0.0002
# seconds from what is waited for to the kill, at most
SAVING_SECONDS, SAYING_SECONDS = 0.01, 0.003


@dataclass
class Survived:
    """kills: how many. runs: how many were compared. different: what of which run was not as it should be."""

    kills: int = 0
    runs: int = 0
    different: list[str] = field(default_factory=list)


def survived(kills: int, seed: int, root: Path) -> Survived:
    """Kills attempts at runs until that many were killed; each run is then gone on with to its end and compared."""
    rng, tally = random.Random(seed), Survived()
    straight = {method: _prepared(method, root / "straight") for method in METHODS}
    seconds = {method: _finished(run) for method, run in straight.items()}
    while tally.kills < kills:
        method = METHODS[tally.runs % len(METHODS)]
        run = _prepared(method, root / "killed")
        for _ in range(min(KILLS_A_RUN, kills - tally.kills)):
            tally.kills += _killed(run, rng, seconds[method])
        if run.state != "done":
            _finished(run)
        tally.runs += 1
        tally.different += [f"{run.id} ({method}): {what}" for what in _differences(run, straight[method])]
    return tally


def attempt(folder: Path) -> None:
    """Goes on with a run to its end. What a process does until it is killed."""
    from adapop.runs.execute import execute

    for _ in execute(Run(folder)):
        pass


def _prepared(method: str, root: Path) -> Run:
    from adapop.runs.execute import prepare

    facts = sandbox_facts()
    few = {group: getattr(facts, group)[:FACTS] for group in ("forget", "retain", "holdout", "utility")}
    return prepare(make_config(method, epochs=EPOCHS, batch=BATCH, micro_batch=BATCH), replace(facts, **few), root)


def _finished(run: Run) -> float:
    """Lets an attempt come to its end, and returns how long it took."""
    begun = time.perf_counter()
    process = forked(attempt, run.folder)
    process.join()
    if run.state != "done":
        raise RuntimeError(f"{run.folder} did not come to its end: {run.events()[-1:]}")
    return time.perf_counter() - begun


def _killed(run: Run, rng: random.Random, seconds: float) -> bool:
    """Starts an attempt and kills it: a third of them at any moment, a third while a checkpoint is written, a third as
    an event is. Whether it was not done before."""
    process = forked(attempt, run.folder)
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
    return process.exitcode != 0


def _wait(seen: Callable[[], bool], process: BaseProcess) -> None:
    while process.is_alive() and not seen():
        time.sleep(POLL_SECONDS)


def _raw(run: Run) -> str:
    path = run.folder / "events.jsonl"
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _differences(run: Run, straight: Run) -> list[str]:
    """What of a run is not as in the undisturbed one."""
    differences = [
        f"{name} of epoch {epoch}"
        for epoch in range(1, EPOCHS + 1)
        for name in KEPT
        if (run.checkpoint(epoch) / name).read_bytes() != (straight.checkpoint(epoch) / name).read_bytes()
    ]
    return differences + (["events"] if timeless(run.events()) != timeless(straight.events()) else [])
