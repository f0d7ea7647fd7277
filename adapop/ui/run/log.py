"""The event log: a run in sentences, a line per epoch, newest first; readable without charts."""

from collections.abc import Sequence
from itertools import groupby

from adapop.config.run import RunConfig
from adapop.errors import number_of
from adapop.remark import sentences
from adapop.report.table import percent
from adapop.runs.pace import worked_before
from adapop.training.events import (
    EpochDone,
    Event,
    Measured,
    RunDone,
    RunFailed,
    RunStarted,
    RunStopped,
    Saved,
    Taught,
)

OF_AN_EPOCH = (EpochDone, Measured, Saved)


def log_lines(events: Sequence[Event], config: RunConfig, asking: Sequence[str] = ()) -> list[str]:
    """The events worth reporting, a sentence each, those of an epoch in one line, newest first.
    asking: sentences on how the model is asked, inserted once after the start."""
    before = worked_before(events)
    log = []
    by_epoch = groupby(events, lambda one: one.epoch if isinstance(one, OF_AN_EPOCH) else None)
    for epoch, of in by_epoch:
        own = list(of)
        every = (line for event in own for line in _lines_of(event, config, before))
        lines = [line for line in every if line not in asking]
        if asking and isinstance(own[0], RunStarted) and not own[0].resumed_from:
            lines.insert(1, " ".join(asking))
        if epoch is None:
            log += lines
        elif lines or isinstance(own[-1], Saved):
            head = f"Epoch {epoch} saved." if isinstance(own[-1], Saved) else f"Epoch {epoch}:"
            log.append(" ".join([head, *lines]))
    return log[::-1]


def _lines_of(event: Event, config: RunConfig, before: float) -> list[str]:
    if isinstance(event, RunStarted):
        if event.resumed_from:
            return [f"Went on after epoch {event.resumed_from}."]
        facts, steps = number_of(event.forget, "fact"), number_of(event.steps, "step")
        return [f"Began: {facts} to forget, {steps} an epoch."]
    if isinstance(event, Taught):
        return sentences(event.notes)
    if isinstance(event, EpochDone):
        return [_controller(event, config)] if event.epoch else []
    if isinstance(event, Measured):
        return [] if event.full else [_recall(event)]
    if isinstance(event, RunStopped):
        why = ": its time on the accelerator was used up" if event.out_of_time else ""
        if event.epoch:
            return [f"Stopped{why}; epoch {event.epoch} is kept."]
        return [f"Stopped before an epoch was finished{why}."]
    if isinstance(event, RunFailed):
        return [f"Failed: {event.message} {event.fix}".strip()]
    if isinstance(event, RunDone):
        return [*sentences(event.notes), f"Done in {before + event.seconds:.1f} s."]
    return []


def _controller(event: EpochDone, config: RunConfig) -> str:
    if config.controller == "primal":
        loss = f"loss {event.retain_loss:.3f} nats, its bound is {config.retain_bound:g}"
        return f"Kept facts: {loss}; their weight μ is {event.alpha:.3f}."
    suffered = event.drift > config.tolerance
    drift = f"drift {event.drift:.3f} {'>' if suffered else '≤'} {config.tolerance:g}"
    state = "rose beyond" if suffered else "is within"
    loss = f"The loss of kept facts {state} the tolerance"
    if config.controller == "fixed":
        return f"{loss} ({drift}); their weight α stays {event.alpha:.3f}."
    weight = f"{drift}, λ {event.lam:.3f}, α {event.alpha:.3f}"
    return f"{loss}{', so the next epoch protects them more' * suffered} ({weight})."


def _recall(event: Measured) -> str:
    rows = [row for row in event.rows if (row["group"], row["form"]) == ("forget", "direct")]
    direct, recall = {row["tier"]: row["recall"] for row in rows}, event.recall("retain")
    tiers = [f"{percent(value)} of the {tier}" for tier, value in direct.items() if tier != "all"]
    left = f"{', '.join(tiers)} facts" if tiers else f"{percent(direct['all'])} of the facts"
    retained = "" if recall is None else f" and {percent(recall)} of those to retain"
    return f"Asked as trained, it still answers {left} to forget{retained}."
