"""From a run to what the page says and allows: one pure function, no component."""

from __future__ import annotations

import time
from dataclasses import dataclass

from adapop.config import RunConfig
from adapop.events import EpochDone, Event, Measured, RunDone, RunFailed, RunStarted, RunStopped, Saved, StepDone

TICKING = ("queued", "starting", "running", "measuring", "stopping")


@dataclass(frozen=True)
class RunView:
    """state: one of empty, queued, starting, running, measuring, stopping, done, stopped, interrupted, failed.
    label, detail: words for the strip. percent: how far, 0 to 100. The rest says which controls work."""

    state: str
    label: str
    detail: str = ""
    percent: int = 0
    can_start: bool = True
    can_stop: bool = False
    can_resume: bool = False

    @property
    def ticking(self) -> bool:
        """Whether the page should look again in a moment."""
        return self.state in TICKING


def view(events: list[Event], stop_requested: bool, ahead: int | None, saved: bool) -> RunView:
    """What to show of a run. ahead: its place in the queue, None if nobody is working on it."""
    starts = [event for event in events if isinstance(event, RunStarted)]
    last = events[-1] if events else None
    if ahead is not None and isinstance(last, (RunStopped, RunFailed)):  # resumed, but not begun again
        if stop_requested:
            return RunView("stopping", "Stopping", "", 0, can_start=False)
        return _waiting(ahead)
    if isinstance(last, RunDone):
        since = " since it was resumed" if starts[-1].resumed_from else ""
        return RunView("done", "Done", f"{_epochs(starts[-1].epochs)}, {last.seconds:.0f} s{since}", 100)
    if isinstance(last, RunFailed):
        return RunView("failed", "Failed", f"{last.message} {last.fix}".strip(), can_resume=saved)
    if isinstance(last, RunStopped):
        kept = f"Epoch {last.epoch} is kept." if last.epoch else "No epoch was finished."
        return RunView("stopped", "Stopped", kept, can_resume=True)
    if ahead is None:
        gone = "The process that trained it is gone. What its last finished epoch saved is kept."
        return RunView("interrupted", "Interrupted", gone, can_resume=True)
    if ahead or not starts:
        return _waiting(ahead)
    return _working(events, starts[-1], stop_requested, saved)


def _waiting(ahead: int) -> RunView:
    if ahead:
        return RunView("queued", "Waiting", f"{ahead} before this one", can_start=False, can_stop=True)
    return RunView("starting", "Starting", "loading the model", 1, can_start=False, can_stop=True)


def _working(events: list[Event], start: RunStarted, stop_requested: bool, saved: bool) -> RunView:
    """A run somebody is working on: where it stands and how long it may still take."""
    steps = [event for event in events if isinstance(event, StepDone) and event.time >= start.time]
    total = start.epochs * start.steps
    done = max([start.resumed_from * start.steps] + [(e.epoch - 1) * start.steps + e.step for e in steps])
    epoch = min(start.epochs, 1 + done // start.steps)
    elapsed = max(0.0, time.time() - start.time)
    percent = max(2, round(95 * done / total))
    if stop_requested:
        return RunView("stopping", "Stopping", "after the current step", percent, can_start=False)
    if done == total:
        return RunView("measuring", "Measuring", "asking every question, in every form", 97, can_start=False)
    fresh = done - start.resumed_from * start.steps
    remaining = f", about {elapsed / fresh * (total - done):.0f} s left" if fresh >= start.steps else ""
    detail = f"epoch {epoch} of {start.epochs} · {elapsed:.0f} s{remaining}"
    return RunView("running", "Running", detail, percent, can_start=False, can_stop=True)


def log_lines(events: list[Event], config: RunConfig) -> list[str]:
    """The run in sentences, newest first: the text twin of the charts."""
    lines = []
    for event in events:
        if isinstance(event, EpochDone) and event.epoch:
            said = f"Epoch {event.epoch}: retain loss {event.retain_loss:.3f} nats, drift {event.drift:.3f}"
            if config.controller == "fixed":
                lines.append(f"{said} from the start; α stays {event.alpha:.3f}.")
            else:
                compared = ">" if event.drift > config.tolerance else "≤"
                next_alpha = f"λ {event.lam:.3f}, α {event.alpha:.3f} from the next epoch."
                lines.append(f"{said} {compared} {config.tolerance:g}, {next_alpha}")
        elif isinstance(event, Measured) and not event.full:
            direct = {row["tier"]: row["recall"] for row in event.rows if row["form"] == "direct"}
            tiers = ", ".join(f"{tier} {value:.2f}" for tier, value in direct.items() if tier != "all")
            lines.append(
                f"Epoch {event.epoch}: recall of the facts to forget: {tiers or format(direct['all'], '.2f')}."
            )
        elif isinstance(event, Saved):
            lines.append(f"Epoch {event.epoch} saved.")
        elif isinstance(event, RunDone):
            lines += [*event.notes, f"Done in {event.seconds:.1f} s."]
    return lines[::-1]


def _epochs(count: int) -> str:
    return f"{count} epoch{'' if count == 1 else 's'}"
