"""Screen 3, Run: a real unlearning run, watched while it happens. The page only reads the run's folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import gradio as gr

from adapop.config.presets import follows_scores
from adapop.config.run import RunConfig
from adapop.errors import AdaPopError, RunError
from adapop.facts.fact import FactSet
from adapop.paths import ASSETS
from adapop.popularity.calibration import anchored
from adapop.runs.preflight import Preflight, preflight
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.service.zerogpu import cost_of_run
from adapop.training.events import Event, RunDone, RunStarted
from adapop.ui import texts
from adapop.ui.access import link_to, refused, shown_run, steered, steers, told
from adapop.ui.parts import html
from adapop.ui.run import charts
from adapop.ui.run import settings as knobs
from adapop.ui.run.log import log_lines
from adapop.ui.run.state import RunSeen, RunView, view
from adapop.ui.session import Session

COPY_LINK = ASSETS / "link.js"
UNSEEN = ("", -1)
# an answer about another run than the page's may come late, and stop the timer: then it has to look again
LOOK_AGAIN = """(run, log) =>
  (log?.run ?? '') === (run ?? '') ? { __type__: 'update' } : { __type__: 'update', active: true }"""
# the strip stays in sight above them
TO_CHARTS = """() => document.getElementById('charts').scrollIntoView(
  { behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' })"""


@dataclass(frozen=True)
class Follower:
    """What follows the page's run, on whatever tab: it must be laid out above the tabs, in a hidden one it would sleep.

    run_id: the run this browser looks at. seen: the run that is shown, and how many of its events. timer: when to look
    again; it is on whenever the strip shows what will not last.
    readiness: empty, invalid or ready, of facts and settings. settings: the knobs' values, kept by the browser.
    """

    run_id: gr.BrowserState
    seen: gr.State
    readiness: gr.State
    settings: gr.BrowserState
    timer: gr.Timer
    strip: gr.HTML
    stop: gr.Button


@dataclass(frozen=True)
class RunScreen:
    """shown: the components that `show` fills, in order. knobs: the settings."""

    shown: list[gr.Component]
    knobs: knobs.Knobs


def build(worker: Worker, session: Session, missing: gr.Radio, follower: Follower) -> RunScreen:
    """Lays the screen out inside the current tab and wires it."""
    gr.Markdown(texts.RUN_ABOUT)
    settings = knobs.build()
    altered = gr.HTML(html.listed([], "hidden"), html_template=html.LINES, elem_id="altered")
    plan = gr.HTML(html.listed([], "hidden"), html_template=html.LINES, elem_id="preflight")
    with gr.Row():
        start = gr.Button("Start", variant="primary", elem_id="start", scale=4)
        resume = gr.Button("Resume", visible=False, elem_id="resume", scale=1)
        link = gr.Button("Copy read-only link", visible=False, elem_id="copy-link", scale=1)
        address = gr.Textbox(visible=False)  # the link's name, on its way to the clipboard
    pictures = charts.build()
    gr.Markdown("### What happened")
    log = gr.HTML(log_of([texts.NO_RUN]), html_template=html.LINES, elem_id="event-log")

    run_id, seen, timer, stop = follower.run_id, follower.seen, follower.timer, follower.stop
    shown = [follower.strip, stop, start, resume, link, *pictures, log, seen, timer]

    def checked(name: str, facts, missing_score, anchors, *values):
        return look(worker, name, facts, missing_score, anchors, *values)

    def started(*values):
        return begin(worker, *values)

    def tick(name: str, shown_so_far: tuple[str, int], readiness: str):
        return show(worker, name, shown_so_far, readiness)

    quiet = {"api_visibility": "private", "show_progress": "hidden"}
    chosen = [session.facts, missing, session.anchors, *settings.all]
    told = [plan, altered, follower.readiness, start, follower.settings, follower.strip, stop, timer]
    # without triggers it runs when the page opens and whenever one of its inputs changes
    gr.on(None, checked, [run_id, *chosen], told, trigger_mode="always_last", **quiet)
    begun = start.click(started, chosen, [run_id, seen, timer], api_visibility="private")
    begun.success(None, None, None, js=TO_CHARTS, **quiet)
    stop.click(lambda name: end(worker, name), run_id, None, **quiet)
    resume.click(lambda name: again(worker, name), run_id, [seen, timer], api_visibility="private")
    made = link.click(lambda name: link_to(worker, name), run_id, address, **quiet)
    made.success(None, address, link, js=COPY_LINK.read_text("utf-8"), **quiet)
    looked = timer.tick(tick, [run_id, seen, follower.readiness], shown, concurrency_limit=None, **quiet)
    looked.then(None, [run_id, log], timer, js=LOOK_AGAIN, **quiet)
    return RunScreen(shown, settings)


def look(worker: Worker, name: str, facts: FactSet | None, missing, anchors, *values):
    """What Start would do with the page's facts and settings: the plan in words, whether it may, and what to keep."""
    said, readiness = html.listed([texts.NO_FACTS], "warn"), "empty"
    if facts is not None:
        try:
            config = _config(facts, missing, anchors, values)
            found = preflight(facts, config, worker.pace_of(config.model))
            if worker.is_lent:
                found = replace(found, plan=(*found.plan, cost_of_run(config.epochs)))
        except AdaPopError as error:
            found = Preflight(problems=(str(error),))
        said, readiness = _plan(found), found.readiness
    altered = knobs.changed(values)
    now, _, _ = seen_of(worker, name, readiness)
    return (
        said,
        html.listed([f"Changed: {line}" for line in altered], "warn" if altered else "hidden"),
        readiness,
        gr.Button(interactive=now.can_start),
        list(values),
        strip_of(now),
        gr.Button(interactive=now.can_stop and steers(worker, name)),
        gr.Timer(active=True) if now.ticking else gr.skip(),
    )


def begin(worker: Worker, facts: FactSet | None, missing, anchors, *values):
    """Queues a run with the page's settings. Returns its id, how much was seen of it, and the running timer."""
    if facts is None:
        raise gr.Error("There are no usable facts. Mend the upload on tab 1, or pick another set.", duration=None)
    try:
        config = _config(facts, missing, anchors, values)
        if problems := preflight(facts, config).problems:
            raise AdaPopError(problems[0])
        run = worker.submit(config, facts)
    except AdaPopError as error:
        raise refused(error) from error
    return run.id, UNSEEN, gr.Timer(active=True)


def _config(facts: FactSet, missing, anchors, values: Sequence) -> RunConfig:
    """The page's settings as a configuration."""
    return at_anchors(knobs.config_of(values, facts=facts.name, missing_score=missing), anchors)


def at_anchors(config: RunConfig, anchors: Sequence[tuple[float, float]]) -> RunConfig:
    """The configuration with the β of the page's anchors; they count where β comes from the scores."""
    return replace(config, beta=anchored(*anchors)) if follows_scores(config) else config


def end(worker: Worker, name: str) -> None:
    """Asks the page's run to stop."""
    if run := steered(worker, name):
        try:
            run.request_stop()
        except AdaPopError as error:
            raise refused(error) from error


def again(worker: Worker, name: str):
    """Queues the page's run again, to go on after its last saved epoch."""
    if run := steered(worker, name):
        if run.shared:
            raise refused(RunError(f"Run {run.id} is shown to every visitor.", "Start a run of your own."))
        try:
            run.clear_stop()
            worker.enqueue(run)
        except AdaPopError as error:
            raise refused(error) from error
    return UNSEEN, gr.Timer(active=True)


def seen_of(worker: Worker, name: str | None, readiness: str) -> tuple[RunView, Run | None, list[Event]]:
    """The state of the page's run, the run if it is there and reads, and what it has said."""
    run = shown_run(worker, name)
    if run is None:
        return view(None, readiness, expired=bool(name)), None, []
    try:
        events, _ = run.events(), run.config
    except AdaPopError as error:  # a run of another version
        return RunView("failed", told(error), ready=readiness == "ready"), None, []
    wait = worker.wait_of(run)
    ahead, seconds, at_least = (wait.ahead, wait.seconds, wait.at_least) if wait else (None, None, False)
    elsewhere = wait is None and not (events and isinstance(events[-1], RunDone)) and run.locked
    seen = RunSeen(tuple(events), run.stop_requested, ahead, seconds, run.last_epoch, elsewhere, at_least)
    return view(seen, readiness), run, events


def show(worker: Worker, name: str | None, seen: tuple[str | None, int] = UNSEEN, readiness: str = "ready"):
    """Everything that shows a run, or nothing new. seen: see `Follower`."""
    now, run, events = seen_of(worker, name, readiness)
    ours, last_seen = steers(worker, name), seen[1] if seen[0] == name else -1
    buttons = (
        strip_of(now),
        gr.Button(interactive=now.can_stop and ours),
        gr.Button(interactive=now.can_start),
        gr.Button(visible=now.can_resume and ours),
        gr.Button(visible=run is not None),
    )
    if run is None and last_seen < 0:  # nothing of another run may stay
        blank = charts.values(None, [], last_seen)
        return *buttons, *blank, log_of([texts.NO_RUN], name), (name, 0), gr.Timer(active=False)
    if run is None:
        return *buttons, *[gr.skip()] * (charts.COUNT + 2), gr.Timer(active=False)
    if len(events) == last_seen and now.ticking:
        return strip_of(now), *[gr.skip()] * (len(buttons) + charts.COUNT + 2)
    config = run.config
    began = any(isinstance(event, RunStarted) for event in events)
    return (
        *buttons,
        *(charts.values(run, events, last_seen) if began or last_seen < 0 else [gr.skip()] * charts.COUNT),
        log_of(log_lines(events, config) or ["The run is about to begin."], name),
        (name, len(events)),
        gr.Timer(active=now.ticking),
    )


def strip_of(now: RunView) -> dict:
    """The run strip's values."""
    return html.values({"state": now.state, "label": now.label, "detail": now.detail, "percent": now.percent})


def log_of(lines: list[str], name: str | None = "") -> dict:
    """The event log's values. name: the run that it is of, for `LOOK_AGAIN`."""
    return html.listed(lines, "log") | {"run": name}


def _plan(found: Preflight) -> dict:
    kind = "bad" if found.problems else "warn" if found.doubts else "calm"
    return html.listed([*found.problems, *found.doubts, *found.plan], kind)
