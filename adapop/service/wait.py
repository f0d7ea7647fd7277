"""How long a queued run will wait: by the steps of the run that is worked on, and the pace of those behind it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapop.errors import AdaPopError
from adapop.runs.pace import Left, Pace, left_of
from adapop.runs.run import Run


@dataclass(frozen=True)
class Wait:
    """How long a run waits for its turn."""

    ahead: int
    """How many runs are before this one; 0: it is being worked on."""
    seconds: float | None
    """How long those will take, None if unknown."""
    at_least: bool = False
    """Whether a part of it was never timed here, and is not in the seconds."""


def wait_behind(runs: Sequence[Run], paces: Mapping[str, Pace], began: float) -> Wait:
    """The wait behind runs, the first of which is next or worked on. paces: by model, of runs that came to their end.
    began: when the first was begun (seconds since 1970), 0 if none is worked on."""
    left = [_left_of(run, paces, began if run is runs[0] else 0.0) for run in runs]
    if None in left:
        return Wait(len(runs), None)
    return Wait(len(runs), sum(one.seconds for one in left), any(one.covers != "all" for one in left))


def _left_of(run: Run, paces: Mapping[str, Pace], began: float) -> Left | None:
    """What a run will take from now on, None if unknown: by its own steps, or the pace of its model."""
    now = time.time()
    try:
        pace, events = paces.get(run.config.model), run.events()
    except AdaPopError:  # one damaged run must not keep all behind it from knowing where they stand
        return None
    if not began:
        return Left(pace.left(run), "all") if pace else None
    if events and events[-1].time >= began and (left := left_of(events, pace, now)):
        return left
    if pace is None:
        return None
    last = run.checkpoint(run.last_epoch or 0)  # what it has saved does not count as left
    since = max(began, last.stat().st_mtime if last.exists() else 0.0)
    return Left(max(0.0, pace.left(run) - (now - since)), "all")
