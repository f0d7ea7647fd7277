"""A run's numbers and replies in an experiment tracker: TensorBoard, trackio or Weights & Biases.

A tracker is followed through one function of a run's events, so that `execute`, `unlearn` and the
command line serve any other tracker alike. The packages are optional. **Replies to the facts to
forget are sent, too**: trackio and TensorBoard keep them on this machine unless told otherwise,
Weights & Biases sends them to its server unless WANDB_MODE is "offline".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd

from adapop.config.run import check_choice
from adapop.errors import ConfigError
from adapop.runs.rows import epoch_row, step_row
from adapop.training.events import TERMINAL, EpochDone, Event, Measured, RunStarted, Saved, StepDone

if TYPE_CHECKING:
    from adapop.runs.run import Run

PROJECT = "adapop"
FOLDER = "tensorboard"  # beside the runs


class Tracker(Protocol):
    """What a tracker must be able to do."""

    def numbers(self, values: Mapping[str, float], step: int) -> None:
        """Logs numbers by name at an optimiser step, counted over all epochs."""

    def table(self, name: str, rows: pd.DataFrame, step: int) -> None:
        """Logs a table of texts and numbers."""

    def close(self) -> None:
        """Ends the log of this run."""


class TensorBoard:
    """Event files in a folder of the run's id, in `tensorboard` beside the runs."""

    def __init__(self, run: Run) -> None:
        module = _imported("torch.utils.tensorboard", "tensorboard")
        self.writer = module.SummaryWriter(str(run.folder.parent / FOLDER / run.id))
        self.writer.add_text("config", f"```json\n{run.config.to_json()}\n```")

    def numbers(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def table(self, name: str, rows: pd.DataFrame, step: int) -> None:
        self.writer.add_text(name, f"```text\n{rows.to_string(index=False)}\n```", step)

    def close(self) -> None:
        self.writer.close()


class Wandb:
    """A run of the project "adapop", by the interface that trackio took over from wandb."""

    package = "wandb"

    def __init__(self, run: Run) -> None:
        self.module = _imported(self.package, self.package)
        self._start(run, project=PROJECT, name=run.id, config=json.loads(run.config.to_json()))

    def _start(self, run: Run, **about: Any) -> None:
        self.module.init(id=run.id, resume="allow", **about)

    def numbers(self, values: Mapping[str, float], step: int) -> None:
        self.module.log(dict(values), step=step)

    def table(self, name: str, rows: pd.DataFrame, step: int) -> None:
        self.module.log({name: self.module.Table(dataframe=rows)}, step=step)

    def close(self) -> None:
        self.module.finish()


class Trackio(Wandb):
    """The same with trackio, which keeps its runs on this machine."""

    package = "trackio"

    def _start(self, run: Run, **about: Any) -> None:
        self.module.init(resume="allow", embed=False, **about)


TRACKERS: dict[str, Callable[[Run], Tracker]] = {
    "tensorboard": TensorBoard,
    "trackio": Trackio,
    "wandb": Wandb,
}


def following(run: Run, tracker: str | Tracker) -> Callable[[Event], None]:
    """A function that logs each event of a run: losses after each step, the controller's row and
    the measurements after each epoch, and then a table of the replies to the facts to forget.

    tracker: a name of `TRACKERS`, or one of your own. Raises ConfigError: no such tracker, or its
    package is not installed."""
    if isinstance(tracker, str):
        check_choice("log", tracker, tuple(TRACKERS))
        tracker = TRACKERS[tracker](run)
    steps = 0

    def follow(event: Event) -> None:
        nonlocal steps
        if isinstance(event, RunStarted):
            steps = event.steps
        elif isinstance(event, StepDone):
            row = step_row(event, steps)
            tracker.numbers(_numbers("step", row), row["step"])
        elif isinstance(event, EpochDone):
            tracker.numbers(_numbers("epoch", epoch_row(event)), event.epoch * steps)
        elif isinstance(event, Measured):
            tracker.numbers(_measured(event), event.epoch * steps)
        elif isinstance(event, Saved):
            frames = run.rows("frames")
            replies = frames[frames["epoch"] == event.epoch].dropna(subset=["answer"])
            if len(replies):
                facts = run.rows("facts")[["fact", "question", "answer", "tier"]]
                facts = facts.rename(columns={"answer": "right answer"})
                replies = replies[["fact", "p", "rank", "answer"]]
                replies = facts.merge(replies.rename(columns={"answer": "reply"}), on="fact")
                tracker.table("replies", replies, event.epoch * steps)
        elif isinstance(event, TERMINAL):
            tracker.close()

    return follow


def _numbers(kind: str, row: Mapping[str, Any]) -> dict[str, float]:
    values = ((name, value) for name, value in row.items() if name not in ("step", "epoch"))
    return {f"{kind}/{name}": value for name, value in values if isinstance(value, Real)}


def _measured(event: Measured) -> dict[str, float]:
    """Each mean of a measurement as "full/forget/reworded/popular/recall"."""
    when, values = "full" if event.full else "quick", {}
    for row in event.rows:
        place = "/".join((when, row["group"], row["form"], row["tier"]))
        numbers = {name: value for name, value in row.items() if name != "facts"}
        values |= _numbers(place, numbers)
    return values


def _imported(module: str, package: str) -> Any:
    """Raises ConfigError: it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        message = f"Logging needs {package}, which cannot be imported ({error})."
        raise ConfigError(message, f'pip install "{package}", or leave out --log.') from error
