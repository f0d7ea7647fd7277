"""Maps a run's state to what the page says and allows, and its events to the log: a run in
sentences, a line per epoch, newest first, readable without charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

from adapop.config.run import RunConfig
from adapop.errors import AdaPopError, number_of
from adapop.remark import duration, sentences
from adapop.report.table import percent
from adapop.runs.pace import Left, Wait, left_of, worked_before
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.service.zerogpu import may_close
from adapop.training.events import (
    EpochDone,
    Event,
    Measured,
    Measuring,
    RunDone,
    RunFailed,
    RunStarted,
    RunStopped,
    Saved,
    StepDone,
    Taught,
    Teaching,
)
from adapop.ui.access import public_words, shown_run
from adapop.ui.parts import html


@dataclass(frozen=True)
class State:
    """A state's label, and the controls that work in it. ticking: the page should poll."""

    label: str
    start: bool = False
    stop: bool = False
    resume: bool = False
    ticking: bool = False


STATES = {
    "empty": State("No usable facts"),
    "invalid": State("Not ready"),
    "ready": State("Ready", start=True),
    "queued": State("Waiting", stop=True, ticking=True),
    "starting": State("Starting", stop=True, ticking=True),
    "running": State("Running", stop=True, ticking=True),
    "measuring": State("Measuring", stop=True, ticking=True),
    "stopping": State("Stopping", ticking=True),
    "elsewhere": State("Running elsewhere", start=True, stop=True, ticking=True),
    "done": State("Done", start=True),
    "stopped": State("Stopped", start=True, resume=True),
    "interrupted": State("Interrupted", start=True, resume=True),
    "failed": State("Failed", start=True, resume=True),
    "expired": State("Expired", start=True),
}
ENDED = (RunStopped, RunFailed)  # ended early: the result is the last saved epoch
OF_AN_EPOCH = (EpochDone, Measured, Saved)  # a line of the log
# labels of the parts of the final measurement
OF_EPOCH = "asking after the last epoch"
FINAL = "final measurement"  # not said of a pair, which has no other
OF_ORIGINAL = f"{FINAL}, 1 of 2: the original model"
OF_UNLEARNED = f"{FINAL}, 2 of 2: the unlearned model"
OF_ORACLE = f"{FINAL}: compared with a model that never learnt the facts"
# what is left of a pair that was stopped, by how many of both models are measured
PAIR_LEFT = (
    "No measurement was finished, so none is kept. Resume on Run to measure both models.",
    "The original model's measurement is kept; the unfinished one of the unlearned model is not. "
    "Resume on Run to measure the unlearned model.",
    "Both measurements are kept; the comparison with the oracle, which never learnt the facts, is "
    "not. Resume on Run.",
)
IDLE = {
    "empty": "Pick or correct a set on Facts.",
    "invalid": "The Run screen says what is missing.",
    "ready": "Press Start on Run.",
    "expired": "This run was deleted. Its settings are still on Run: start it again there.",
}


@dataclass(frozen=True)
class RunSeen:
    """The known state of the page's run. wait: None if it is not queued. saved: the last saved
    epoch. elsewhere: another process of this machine runs it, such as the command line. adopted: a
    pair of models, which are only measured."""

    events: tuple[Event, ...] = ()
    stop_requested: bool = False
    wait: Wait | None = None
    saved: int | None = None
    elsewhere: bool = False
    adopted: bool = False


@dataclass(frozen=True)
class RunView:
    """state: a key of `STATES`. detail: text of the strip. percent: progress, 0 to 100. ready:
    whether facts and settings allow a run to start. saved: whether an epoch is saved. The
    properties say which controls work; see `State`."""

    state: str
    detail: str = ""
    percent: int = 0
    ready: bool = True
    saved: bool = False
    label = property(lambda self: STATES[self.state].label)
    can_start = property(lambda self: STATES[self.state].start and self.ready)
    can_stop = property(lambda self: STATES[self.state].stop)
    # a run that failed before its first epoch would only fail again
    can_resume = property(
        lambda self: STATES[self.state].resume and (self.saved or self.state != "failed")
    )
    ticking = property(lambda self: STATES[self.state].ticking)


def view(status: RunSeen | None, readiness: str = "ready", expired: bool = False) -> RunView:
    """The page's text and controls for a run. status: None if the page has no run. readiness: of
    facts and settings: empty, invalid or ready. expired: the page's run was deleted."""
    ready, state = readiness == "ready", "expired" if expired else readiness
    if expired or status is None:
        return RunView(state, IDLE[state], 0, ready)
    state, detail, percent = _position(status)
    return RunView(state, detail, percent, ready, status.saved is not None)


def seen_of(
    worker: Worker, name: str | None, readiness: str
) -> tuple[RunView, Run | None, list[Event]]:
    """The state of the page's run, the run if it can be read, and its events."""
    run = shown_run(worker, name)
    if run is None:
        return view(None, readiness, expired=bool(name)), None, []
    try:
        events, adopted = run.events(), bool(run.config.unlearned)
    except AdaPopError as error:  # a run of another version
        return RunView("failed", public_words(error), ready=readiness == "ready"), None, []
    wait = worker.wait_of(run)
    elsewhere = wait is None and not (events and isinstance(events[-1], RunDone)) and run.locked
    status = RunSeen(tuple(events), run.stop_requested, wait, run.last_epoch, elsewhere, adopted)
    return view(status, readiness), run, events


def _position(status: RunSeen) -> tuple[str, str, int]:
    """(state, text, percent) of an existing run."""
    starts = [event for event in status.events if isinstance(event, RunStarted)]
    last = status.events[-1] if status.events else None
    if status.elsewhere and not isinstance(last, RunDone):
        return _elsewhere(status, starts[-1] if starts and not isinstance(last, ENDED) else None)
    if status.wait and isinstance(last, ENDED):  # resumed, but not begun again
        return ("stopping", "", 0) if status.stop_requested else _waiting(status, status.wait)
    if isinstance(last, RunDone):
        seconds = worked_before(status.events) + last.seconds
        what = "both models measured" if status.adopted else number_of(last.epoch, "epoch")
        return "done", f"{what}, {seconds:.0f} s", 100
    if isinstance(last, RunFailed):
        return "failed", f"{last.message} {last.fix}".strip(), 0
    if isinstance(last, RunStopped):
        why = "Its time on the accelerator was used up. " if last.out_of_time else ""
        return "stopped", why + _saved_words(status, last.epoch, starts), 0
    if status.wait is None:
        saved = _saved_words(status, status.saved or 0, starts)
        did = "measured" if status.adopted else "trained"
        return "interrupted", f"The process that {did} it is gone. {saved}", 0
    if not status.wait.ahead and starts:
        return _working(status, starts[-1])
    if status.stop_requested:
        return "stopping", "as soon as its turn comes", 0
    return _waiting(status, status.wait)


def _waiting(status: RunSeen, wait: Wait) -> tuple[str, str, int]:
    """(state, text, percent) of a run that waits for its turn, or is about to begin."""
    if wait.ahead:
        detail = f"{number_of(wait.ahead, 'run')} before this one"
        if wait.seconds is not None:
            detail += f", {'at least' if wait.at_least else 'about'} {duration(wait.seconds)}"
        return "queued", f"{detail}. {may_close()}", 0
    last = status.events[-1] if status.events else None
    now = f"loading {'both models' if status.adopted else 'the model'}"
    if isinstance(last, Measuring):
        now = f"asking the original model, {last.asked:,} of {max(last.of, last.asked):,} questions"
    elif isinstance(last, Teaching):
        share = f"{100 * last.step // last.steps}% of it"
        now = f"fine-tuning first: epoch {last.epoch} of {last.epochs}, {share}"
    now += f" · {wait.worked:.0f} s" if wait.worked else ""
    return "starting", f"{now}, {wait.left.text}" if wait.left else now, 1


def _working(status: RunSeen, start: RunStarted) -> tuple[str, str, int]:
    """(state, text, percent) of an active run: its position and the expected remaining time."""
    if status.adopted:
        part = _measuring(status.events).removeprefix(FINAL).lstrip(",: ")
        return ("stopping" if status.stop_requested else "measuring"), part, 50
    steps = [event for event in status.events if isinstance(event, StepDone)]
    trained = [(e.epoch - 1) * start.steps + e.step for e in steps if e.time >= start.time]
    total = start.epochs * start.steps
    done = max([start.resumed_from * start.steps, *trained])
    epoch = min(start.epochs, 1 + done // start.steps)
    # up to the last event: between two GPU leases, or before a resumed run begins, nothing runs
    elapsed = worked_before(status.events) + status.events[-1].time - start.time
    percent = max(2, round(95 * done / total))
    if status.stop_requested:
        return "stopping", "after the current step", percent
    saved = next((e.epoch for e in reversed(status.events) if e.kind == "saved"), None)
    measures = status.events[-1].kind in ("measuring", "measured")
    if done == total or (saved and saved * start.steps == done and measures):
        return "measuring", _measuring(status.events), 97
    left = left_of(status.events) or (status.wait and status.wait.left)
    detail = f"{_place(status.events, start, done, epoch)} · {elapsed:.0f} s"
    return "running", f"{detail}, {left.text}" if left else detail, percent


def _place(events: Sequence[Event], start: RunStarted, done: int, epoch: int) -> str:
    """What an active run works on: a step of an epoch, or the questions after it. done: steps."""
    last = events[-1]
    if (
        isinstance(last, Measuring | EpochDone)
        and last.epoch > 0
        and done == last.epoch * start.steps
    ):
        progress = isinstance(last, Measuring) and f", {last.asked:,} of {last.of:,} questions"
        return f"after epoch {last.epoch} of {start.epochs}: asking{progress or ''}"
    return f"epoch {epoch} of {start.epochs}, step {1 + done % start.steps} of {start.steps}"


def _measuring(events: Sequence[Event]) -> str:
    """The part of the final measurements in progress, how far it is, and the time left."""
    full = [event for event in events if isinstance(event, Measured) and event.full]
    counts = [*takewhile(lambda event: isinstance(event, Measuring), reversed(events))]
    first = not full and events[-1 - len(counts)].kind in ("saved", "run_started")
    part = OF_ORIGINAL if first else OF_EPOCH
    if full:
        part = OF_ORACLE if full[-1].epoch else OF_UNLEARNED
    if not counts:
        return part
    last, begun = counts[0], counts[-1]  # pace since the first count
    label = f"{part}, {last.asked:,} of {last.of:,} questions"
    # the first batches may be small, and a small one takes as long as a full one
    if part is OF_EPOCH or last.asked == begun.asked or last.asked < last.of / 2:
        return label
    seconds_each = (last.time - begun.time) / (last.asked - begun.asked)
    return f"{label}, {Left(seconds_each * (last.of * (1 + first) - last.asked), 'all').text}"


def _elsewhere(status: RunSeen, start: RunStarted | None) -> tuple[str, str, int]:
    """(state, text, percent) of a run in another process. start: None before training begins."""
    if start is None:
        return "elsewhere", "Another process is loading the model.", 1
    state, detail, percent = _working(status, start)
    state = "stopping" if state == "stopping" else "elsewhere"
    return state, f"{detail}, in another process", percent


def _saved_words(status: RunSeen, epoch: int, starts: list[RunStarted]) -> str:
    if status.adopted:
        measured = {event.epoch for event in status.events if isinstance(event, Measured)}
        return PAIR_LEFT[len(measured)]
    if not epoch:
        return "No epoch was finished."
    of = f" of {starts[-1].epochs}" if starts else ""
    return f"Epoch {epoch}{of} is kept: probe it, or resume."


def strip_of(now: RunView) -> dict:
    """The values of the run strip."""
    names = ("state", "label", "detail", "percent")
    return html.values({name: getattr(now, name) for name in names})


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
            return [f"Resumed after epoch {event.resumed_from}."]
        facts, steps = number_of(event.forget, "fact"), number_of(event.steps, "step")
        if config.unlearned:
            return [f"Both models are loaded; they are now measured on {facts} to forget."]
        return [f"Began: {facts} to forget, {steps} an epoch."]
    if isinstance(event, Taught):
        return sentences(event.notes)
    if isinstance(event, EpochDone):
        return [_controller_words(event, config)] if event.epoch else []
    if isinstance(event, Measured):
        return [] if event.full else [_recall_words(event)]
    if isinstance(event, RunStopped):
        why = ": its time on the accelerator was used up" if event.out_of_time else ""
        if config.unlearned:
            return [f"Stopped before both models were measured{why}."]
        if event.epoch:
            return [f"Stopped{why}; epoch {event.epoch} is kept."]
        return [f"Stopped before an epoch was finished{why}."]
    if isinstance(event, RunFailed):
        return [f"Failed: {event.message} {event.fix}".strip()]
    if isinstance(event, RunDone):
        return [*sentences(event.notes), f"Done in {before + event.seconds:.1f} s."]
    return []


def _controller_words(event: EpochDone, config: RunConfig) -> str:
    if config.controller == "primal":
        loss = f"loss {event.retain_loss:.3f} nats, its bound is {config.retain_bound:g}"
        return f"Retain set: {loss}; its weight μ is {event.alpha:.3f}."
    suffered = event.drift > config.tolerance
    drift = f"drift {event.drift:.3f} {'>' if suffered else '≤'} {config.tolerance:g}"
    state = "rose beyond" if suffered else "is within"
    loss = f"The loss of the retain set {state} the tolerance"
    if config.controller == "fixed":
        return f"{loss} ({drift}); its weight α stays {event.alpha:.3f}."
    weight = f"{drift}, λ {event.lam:.3f}, α {event.alpha:.3f}"
    return f"{loss}{', so the next epoch protects the set more' * suffered} ({weight})."


def _recall_words(event: Measured) -> str:
    rows = [row for row in event.rows if (row["group"], row["form"]) == ("forget", "direct")]
    direct, recall = {row["tier"]: row["recall"] for row in rows}, event.recall("retain")
    tiers = [f"{percent(value)} of the {tier}" for tier, value in direct.items() if tier != "all"]
    left = f"{', '.join(tiers)} facts" if tiers else f"{percent(direct['all'])} of the facts"
    retained = "" if recall is None else f" and {percent(recall)} of the retain set"
    return f"Asked as trained, the model still answers {left} to forget{retained}."
