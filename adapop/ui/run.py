"""Screen 3, Run: a real unlearning run, watched while it happens. The page only reads the run's folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

import gradio as gr
import pandas as pd

from adapop import figures
from adapop.calibration import anchored
from adapop.config import PRESETS, SANDBOX_RATES, RunConfig, make_config
from adapop.errors import AdaPopError
from adapop.events import EpochDone, Measured, StepDone
from adapop.facts import FactSet
from adapop.runs import Run
from adapop.ui import cards, copy
from adapop.ui.session import Session
from adapop.ui.view import RunView, log_lines, view
from adapop.worker import Worker

RUN_ID = re.compile(r"[a-z_]+-[0-9a-f]{16}")
EMPTY = RunView("empty", "No run yet", "press Start on tab 3")
# points without a value: the chart learns its lines from the first frame it gets
LOSSES = pd.DataFrame([{"epoch": 0.0, "nats": float("nan"), "facts": line} for line in figures.LOSS_COLOR])


@dataclass(frozen=True)
class Follower:
    """What follows the page's run, on whatever tab: it must be laid out above the tabs, in a hidden one it would sleep.

    run_id: the run this browser looks at. seen: how many of its events are shown. timer: when to look again.
    """

    run_id: gr.BrowserState
    seen: gr.State
    timer: gr.Timer
    strip: gr.HTML
    stop: gr.Button


def build(worker: Worker, session: Session, missing: gr.Radio, follower: Follower) -> list:
    """Lays the screen out inside the current tab and wires it. Returns the components that `show` fills, in order."""
    gr.Markdown(copy.RUN_ABOUT)
    method, preset, rate, *_ = settings = _settings()
    with gr.Row():
        start = gr.Button("Start", variant="primary", elem_id="start", scale=4)
        resume = gr.Button("Resume", visible=False, elem_id="resume", scale=1)
    charts = _charts()
    gr.Markdown("### What happened")
    log = gr.HTML(log_of([copy.NO_RUN]), html_template=cards.LINES, elem_id="event-log")

    run_id, seen, timer, stop = follower.run_id, follower.seen, follower.timer, follower.stop
    shown = [follower.strip, stop, start, resume, *charts, log, seen, timer]

    def started(*values):
        return begin(worker, *values)

    def tick(name: str, last_seen: int):
        return show(worker, name, last_seen)

    quiet = {"api_visibility": "private", "show_progress": "hidden"}
    method.change(_suited, method, [preset, rate], **quiet)
    chosen = [session.facts, missing, session.anchors, *settings]
    start.click(started, chosen, [run_id, seen, timer], api_visibility="private")
    stop.click(lambda name: end(worker, name), run_id, None, **quiet)
    resume.click(lambda name: again(worker, name), run_id, [seen, timer], api_visibility="private")
    timer.tick(tick, [run_id, seen], shown, concurrency_limit=None, **quiet)
    return shown


def _settings() -> tuple:
    """The six knobs: method, preset, learning rate, epochs, seed; the anchors are on the Pressure screen."""
    with gr.Row():
        return (
            gr.Dropdown(copy.METHOD_CHOICES, value="adapop", label="Method", min_width=230, scale=3, elem_id="method"),
            gr.Dropdown(copy.PRESET_CHOICES, value="paper", label="Preset", min_width=200, scale=3),
            gr.Number(
                SANDBOX_RATES["adapop"], label="Learning rate", minimum=1e-6, maximum=0.1, min_width=120, scale=2
            ),
            gr.Slider(1, 10, value=5, step=1, label="Epochs", min_width=170, scale=3),
            gr.Number(0, label="Seed", precision=0, minimum=0, min_width=90, scale=1),
        )


def _charts() -> tuple:
    """Controller, losses, recall, outcome. Only the losses change at every tick: that chart keeps its place in the
    page, where a plotly figure would be put in anew."""
    with gr.Row():
        with gr.Column(min_width=320):
            gr.Markdown(f"### The controller\n{copy.CONTROLLER_ABOUT}")
            controller = gr.Plot(figures.empty(copy.CHART_EMPTY), show_label=False, elem_id="controller-chart")
        with gr.Column(min_width=320):
            gr.Markdown(f"### Loss by popularity\n{copy.LOSS_ABOUT}")
            losses = gr.LinePlot(
                LOSSES,
                x="epoch",
                y="nats",
                color="facts",
                color_map=figures.LOSS_COLOR,
                height=360,
                x_lim=[0, 5],
                y_lim=[0, None],
                x_title="epoch",
                y_title="loss of the answer, nats",
                show_label=False,
                elem_id="loss-chart",
            )
    with gr.Row():
        with gr.Column(min_width=320):
            gr.Markdown(f"### What it can still answer\n{copy.RECALL_ABOUT}")
            recall = gr.Plot(figures.empty(copy.CHART_EMPTY), show_label=False, elem_id="recall-chart")
        with gr.Column(min_width=320):
            gr.Markdown(f"### Before and after\n{copy.OUTCOME_ABOUT}")
            outcome = gr.Plot(figures.empty(copy.OUTCOME_EMPTY), show_label=False, elem_id="outcome-chart")
    return controller, losses, recall, outcome


def _suited(method: str):
    """Preset and rate for a method: the presets change AdaPop, so they rest while another is chosen."""
    return gr.Dropdown(value="paper", interactive=method == "adapop"), SANDBOX_RATES[method]


def begin(worker: Worker, facts: FactSet | None, missing, anchors, method, preset, rate, epochs, seed):
    """Queues a run with the page's settings. Returns its id, how much was seen of it, and the running timer."""
    if facts is None:
        raise gr.Error("There are no usable facts. Mend the upload on tab 1, or pick another set.", duration=None)
    try:
        scored = method == "adapop" and "beta" not in PRESETS[preset]
        settings = {"beta": anchored(*anchors)} if scored else {}
        config = make_config(
            method,
            preset,
            facts=facts.name,
            missing_score=missing,
            learning_rate=rate,
            epochs=int(epochs or 0),
            seed=int(seed or 0),
            **settings,
        )
        run = worker.submit(config, facts)
    except AdaPopError as error:
        raise refused(error) from error
    return run.id, -1, gr.Timer(active=True)


def refused(error: AdaPopError) -> gr.Error:
    """The toast of an error. Toasts read HTML, and a message may quote the user's text."""
    return gr.Error(escape(str(error)), title="Not possible", duration=None, print_exception=False)


def end(worker: Worker, name: str) -> None:
    """Asks the page's run to stop."""
    if run := known_run(worker, name):
        run.request_stop()


def again(worker: Worker, name: str):
    """Queues the page's run again, to go on after its last saved epoch."""
    if run := known_run(worker, name):
        run.clear_stop()
        worker.enqueue(run)
    return -1, gr.Timer(active=True)


def known_run(worker: Worker, name: str | None) -> Run | None:
    """The run of an id that came from a browser, None if it is none of ours."""
    if not isinstance(name, str) or not RUN_ID.fullmatch(name):
        return None
    folder = worker.root / name
    return Run(folder) if (folder / "config.json").exists() else None


def show(worker: Worker, name: str | None, last_seen: int):
    """Everything that shows a run, or nothing new. Charts of an epoch are redrawn only when an epoch ended."""
    run = known_run(worker, name)
    if run is None:
        return strip_of(EMPTY), gr.Button(interactive=False), *[gr.skip()] * 8, gr.Timer(active=False)
    try:
        events, config = run.events(), run.config
    except AdaPopError as error:  # a run of another version
        unreadable = RunView("failed", "Unreadable", str(error))
        return strip_of(unreadable), gr.Button(interactive=False), *[gr.skip()] * 8, gr.Timer(active=False)
    now = view(events, run.stop_requested, worker.ahead_of(run), run.last_epoch is not None)
    if len(events) == last_seen and now.ticking:
        return strip_of(now), *[gr.skip()] * 10
    fresh = events[max(0, last_seen) :]
    charts = [gr.skip()] * 3
    if last_seen < 0 or any(isinstance(event, (EpochDone, Measured)) for event in fresh):
        charts = _epoch_charts(events, config)
    steps = [event for event in events if isinstance(event, StepDone)]
    rows = figures.loss_rows(steps, _steps_per_epoch(events)) if steps else LOSSES
    controller, recall, outcome = charts
    return (
        strip_of(now),
        gr.Button(interactive=now.can_stop),
        gr.Button(interactive=now.can_start),
        gr.Button(visible=now.can_resume),
        controller,
        gr.LinePlot(pd.DataFrame(rows), x_lim=[0, config.epochs]),
        recall,
        outcome,
        log_of(log_lines(events, config) or ["The run is about to begin."]),
        len(events),
        gr.Timer(active=now.ticking),
    )


def strip_of(now: RunView) -> dict:
    """The run strip's values."""
    return cards.values({"state": now.state, "label": now.label, "detail": now.detail, "percent": now.percent})


def log_of(lines: list[str]) -> dict:
    """The event log's values."""
    return cards.listed(lines, "log")


def _epoch_charts(events: list, config: RunConfig) -> list:
    epochs = [event for event in events if isinstance(event, EpochDone)]
    measured = [event for event in events if isinstance(event, Measured)]
    full = [event for event in measured if event.full]
    return [
        figures.controller_chart(epochs, config) if epochs else figures.empty(copy.CHART_EMPTY),
        figures.recall_chart(measured, config.epochs) if measured else figures.empty(copy.CHART_EMPTY),
        figures.outcome_chart(full[0], full[-1]) if len(full) > 1 else figures.empty(copy.OUTCOME_EMPTY),
    ]


def _steps_per_epoch(events: list) -> int:
    return next(event.steps for event in events if event.kind == "run_started")
