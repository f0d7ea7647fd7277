"""The event log: a run in sentences, newest first, also for those who cannot see the charts."""

from collections.abc import Sequence

from adapop.config.run import RunConfig
from adapop.report.table import percent
from adapop.runs.pace import worked_before
from adapop.training.events import EpochDone, Event, Measured, RunDone, RunFailed, RunStarted, RunStopped, Saved


def log_lines(events: Sequence[Event], config: RunConfig) -> list[str]:
    """What happened, one sentence an event worth telling, the newest first."""
    before = worked_before(events)
    said = [line for event in events for line in _lines_of(event, config, before)]
    return said[::-1]


def _lines_of(event: Event, config: RunConfig, before: float) -> list[str]:
    if isinstance(event, RunStarted):
        if event.resumed_from:
            return [f"Went on after epoch {event.resumed_from}."]
        return [f"Began: {event.forget:,} facts to forget, {event.steps:,} steps an epoch."]
    if isinstance(event, EpochDone):
        return [_controller(event, config)] if event.epoch else []
    if isinstance(event, Measured):
        return [] if event.full else [_recall(event)]
    if isinstance(event, Saved):
        return [f"Epoch {event.epoch} saved."]
    if isinstance(event, RunStopped):
        return [f"Stopped; epoch {event.epoch} is kept." if event.epoch else "Stopped before an epoch was finished."]
    if isinstance(event, RunFailed):
        return [f"Failed: {event.message} {event.fix}".strip()]
    if isinstance(event, RunDone):
        return [*event.notes, f"Done in {before + event.seconds:.1f} s."]
    return []


def _controller(event: EpochDone, config: RunConfig) -> str:
    if config.controller == "primal":
        return (
            f"Epoch {event.epoch}: retain loss {event.retain_loss:.3f} nats, its bound is {config.retain_bound:g}; "
            f"the weight μ of the retained facts is {event.alpha:.3f}."
        )
    said = f"Epoch {event.epoch}: retain loss {event.retain_loss:.3f} nats, drift {event.drift:.3f}"
    if config.controller == "fixed":
        return f"{said} from the start; α stays {event.alpha:.3f}."
    compared = ">" if event.drift > config.tolerance else "≤"
    idle = " (idle: within tolerance there is nothing to do)" if event.lam == 0 else ""
    return f"{said} {compared} {config.tolerance:g}, λ {event.lam:.3f}, α {event.alpha:.3f} from the next epoch{idle}."


def _recall(event: Measured) -> str:
    direct = {row["tier"]: row["recall"] for row in event.rows if row["form"] == "direct"}
    tiers = ", ".join(f"{percent(value)} of the {tier}" for tier, value in direct.items() if tier != "all")
    return f"Epoch {event.epoch}: of the facts to forget it still answers {tiers or percent(direct['all'])}."
