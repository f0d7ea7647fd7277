"""Decides which epoch's adapter is the result of a run that keeps its best one, and when training
ends early. Both follow from the run's events, so a resumed run decides the same."""

from collections.abc import Sequence

from adapop.config.presets import RETAIN_KEPT
from adapop.probes.prompts import REWORDED
from adapop.runs.run import Run
from adapop.training.events import Event, Measured


def keeps(event: Measured, original: Measured) -> bool:
    """Whether a model keeps the facts to retain: `RETAIN_KEPT` of the original's recall or more."""
    return _retained(event) >= RETAIN_KEPT * _retained(original)


def best_epoch(events: Sequence[Event]) -> int | None:
    """The best measured epoch, None before any was measured. Among epochs that keep the facts to
    retain: the lowest recall of the facts to forget, reworded if they have rewordings. If no epoch
    keeps them: the highest recall of the facts to retain. Ties go to the first epoch."""
    original, *epochs = _measured(events) or [None]
    return min(epochs, key=lambda event: _badness(event, original)).epoch if epochs else None


def ends_early(run: Run) -> bool:
    """Whether the best epoch is at least as many epochs ago as the run's patience."""
    events, patience = run.events(), run.config.patience
    best = best_epoch(events) if patience else None
    return best is not None and _measured(events)[-1].epoch - best >= patience


def epochs_left(run: Run) -> int:
    """How many epochs are still to be trained, if training does not end early from here on."""
    return 0 if ends_early(run) else run.config.epochs - (run.last_epoch or 0)


def _measured(events: Sequence[Event]) -> list[Measured]:
    """Measurements at the ends of epochs, the original model's first."""
    return [event for event in events if isinstance(event, Measured) and not event.full]


def _badness(event: Measured, original: Measured) -> tuple[bool, float]:
    if not keeps(event, original):
        return True, -_retained(event)
    reworded = event.recall("forget", REWORDED)
    return False, event.recall("forget") if reworded is None else reworded


def _retained(event: Measured) -> float:
    return event.recall("retain") or 0.0
