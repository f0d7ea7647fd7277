"""Screen 3, Run: a real unlearning run, watched while it happens. The page only reads the run's
folder."""

from dataclasses import dataclass, replace
from functools import partial

import gradio as gr

from adapop.config.presets import follows_scores
from adapop.config.run import RunConfig
from adapop.errors import AdaPopError, RunError
from adapop.facts.fact import FactSet
from adapop.paths import ASSETS
from adapop.popularity.calibration import anchored
from adapop.probes.prompting import remarks_of
from adapop.remark import sentences
from adapop.report.record import described
from adapop.runs.amount import hardly_moves
from adapop.runs.examples import example_of
from adapop.runs.preflight import Preflight, preflight
from adapop.runs.run import Run
from adapop.service.leases import cost_of_run
from adapop.service.worker import Worker
from adapop.training.events import RunStarted
from adapop.ui import texts
from adapop.ui.access import link_to, may_control, refusing, run_to_control
from adapop.ui.parts import html
from adapop.ui.run import charts, check, field, outcome
from adapop.ui.run import settings as run_settings
from adapop.ui.run.log import log_lines
from adapop.ui.run.state import RunView, seen_of
from adapop.ui.session import Anchors, Session, check_shown
from adapop.ui.wiring import QUIET

COPY_LINK = ASSETS / "link.js"
UNSEEN = ("", -1)
# what opens the page and what looks at its settings both say what the strip says: one after the
# other
BY_TURNS = QUIET | {"concurrency_id": "shown run", "concurrency_limit": 1}
# an answer about the run that the page showed before may come late and stop the timer, which then
# has to go on
LOOK_AGAIN = """(run, log) =>
  (log?.run ?? '') === (run ?? '')
    ? { __type__: 'update' }
    : { __type__: 'update', active: true }"""


@dataclass(frozen=True)
class Follower:
    """The components that follow the page's run on every tab. They are laid out above the tabs: a
    timer in a hidden tab does not run.

    run_id: the run this browser looks at. another: the same, for events: what a browser keeps
    counts as changed twice when a page opens, this only once it is another run. seen: the run that
    is shown, and how many of its events. readiness: empty, invalid or ready, of facts and settings.
    settings: their values, kept by the browser. timer: when to look again; on while the run is
    under way.
    """

    run_id: gr.BrowserState
    another: gr.State
    seen: gr.State
    readiness: gr.State
    settings: gr.BrowserState
    timer: gr.Timer
    strip: gr.HTML
    stop: gr.Button


@dataclass(frozen=True)
class RunScreen:
    """The components that show the page's run, and its settings. watched: says whose run it is
    where it is not the visitor's own; form: settings and Start, which then are not there. card:
    what a finished run came to. aside: that the results are another set's than the one chosen
    now."""

    follower: Follower
    settings: run_settings.RunSettings
    watched: gr.HTML
    form: gr.Column
    start: gr.Button
    resume: gr.Button
    card: outcome.Card
    link: gr.Button
    charts: charts.RunCharts
    field: field.RunField
    log: gr.HTML

    @property
    def outputs(self) -> list[gr.Component]:
        """What `show` may change."""
        above = [self.follower.strip, self.follower.stop, self.follower.seen, self.follower.timer]
        controls = [self.watched, self.form, self.start, self.resume, *self.card.all, self.link]
        return [*above, *controls, *self.charts.all, self.field.picture, self.log]

    def show(
        self,
        worker: Worker,
        name: str | None,
        position: tuple[str | None, int] = UNSEEN,
        readiness: str = "ready",
    ) -> dict:
        """Updates for what is new of a run. position: `Follower.seen`."""
        now, run, events = seen_of(worker, name, readiness)
        owned, last_seen = may_control(worker, name), position[1] if position[0] == name else -1
        watching = run is not None and not owned
        if run is not None and owned:
            worker.heard_of(run)
        follower = self.follower
        if run is not None and len(events) == last_seen and now.ticking:
            return {follower.strip: strip_of(now)}
        changes = {
            follower.strip: strip_of(now),
            follower.stop: gr.Button(interactive=now.can_stop and owned),
            follower.timer: gr.Timer(active=run is not None and now.ticking),
            self.watched: banner_of(run if watching else None),
            self.form: gr.Column(visible=not watching),
            self.start: start_of(now, owned),
            self.resume: gr.Button(visible=now.can_resume and owned),
            **self.card.drawn(run if now.state == "done" else None, owned),
            self.link: gr.Button(visible=run is not None),
        }
        if run is None:
            # nothing of another run may stay
            blank = {
                **self.charts.drawn(None, [], last_seen),
                **self.field.drawn(None, [], last_seen),
            }
            blank[self.log] = log_of([texts.NO_RUN], name)
            return changes | (blank | {follower.seen: (name, 0)} if last_seen < 0 else {})
        if last_seen < 0 or any(isinstance(event, RunStarted) for event in events):
            changes |= self.charts.drawn(run, events, last_seen) | self.field.drawn(
                run, events, last_seen
            )
        asking = sentences(remarks_of(run.prompting))
        lines = log_lines(events, run.config, asking) or [*asking, "The run is about to begin."]
        return changes | {self.log: log_of(lines, name), follower.seen: (name, len(events))}


def build(worker: Worker, session: Session, missing: gr.Radio, follower: Follower) -> RunScreen:
    """Lays the screen out inside the current tab and wires it."""
    watched = gr.HTML(banner_of(None), html_template=html.LINES, elem_id="watched")
    with gr.Column(elem_id="run-form") as form:
        settings, start, resume = run_settings.build(session.facts)
        hidden = html.listed([], "hidden")
        altered = gr.HTML(hidden, html_template=html.LINES, elem_id="altered")
        plan = gr.HTML(hidden, html_template=html.LINES, elem_id="preflight")
        more = gr.Button(
            texts.MORE_STEPS, visible=False, size="sm", min_width=160, elem_id="more-steps"
        )
        with gr.Column(elem_classes="advanced-only"):
            costs = gr.HTML(hidden, html_template=html.LINES, elem_id="run-costs")
            check.build(worker, session, [missing, session.anchors, *settings.all], _config)
    card = outcome.build()
    with gr.Column(elem_id="run-results"):
        pictures, facts = charts.build(field.build)
        address = gr.Textbox(visible=False)  # the link's name, on its way to the clipboard
        with gr.Row(elem_id="log-row"):
            with (
                gr.Column(scale=5, min_width=200),
                gr.Accordion(texts.LOG_NAME, open=False, elem_id="log-fold"),
            ):
                log = gr.HTML(log_of([texts.NO_RUN]), html_template=html.LINES, elem_id="event-log")
            link = gr.Button(
                "Copy link", visible=False, elem_id="copy-link", scale=0, min_width=210
            )

    screen = RunScreen(
        follower, settings, watched, form, start, resume, card, link, pictures, facts, log
    )
    run_id, timer, stop = follower.run_id, follower.timer, follower.stop

    chosen = [session.facts, missing, session.anchors, *settings.all]
    looked_at = [
        plan,
        costs,
        altered,
        more,
        follower.readiness,
        start,
        follower.settings,
        follower.strip,
        stop,
        timer,
    ]
    when = [session.page.load, *(one.change for one in (follower.another, *chosen))]
    known = [run_id, follower.seen, *chosen]
    gr.on(when, partial(look, worker), known, looked_at, trigger_mode="always_last", **BY_TURNS)
    inputs, target = [run_id, session.shown_hash, *chosen], [run_id, follower.seen, timer]
    begun = start.click(partial(start_run, worker), inputs, target, api_visibility="private")
    begun.success(None, None, None, js=outcome.TO_CHARTS, **QUIET)
    session.look_whether_lost(begun)
    model, method, preset, rate, epochs, _ = settings.visible
    amount = [epochs, settings.advanced[tuple(run_settings.ADVANCED).index("batch")], rate]
    more.click(
        outcome.enough_steps, [session.facts, model, method, preset, *amount], amount, **QUIET
    )
    card.wire(worker, session, run_id, follower.another, [*target, *amount])
    stop.click(partial(stop_run, worker), run_id, None, **QUIET)
    resume.click(
        partial(resume_run, worker), run_id, [follower.seen, timer], api_visibility="private"
    )
    made = link.click(partial(link_to, worker), run_id, address, **QUIET)
    made.success(None, address, link, js=COPY_LINK.read_text("utf-8"), **QUIET)
    watched = [run_id, follower.seen, follower.readiness]
    looked = timer.tick(
        partial(screen.show, worker), watched, screen.outputs, concurrency_limit=None, **QUIET
    )
    looked.then(None, [run_id, log], timer, js=LOOK_AGAIN, **QUIET)
    return screen


def start_of(now: RunView, owned: bool = True) -> gr.Button:
    """The button Start: the page's main one, unless Resume stands beside it."""
    return gr.Button(
        interactive=now.can_start, variant="secondary" if now.can_resume and owned else "primary"
    )


def look(
    worker: Worker,
    name: str,
    position: tuple[str | None, int],
    facts: FactSet | None,
    missing,
    anchors,
    *values,
):
    """What Start would do with the page's facts and settings: the plan in words, whether it may,
    and what to keep.

    name: the page's run when it asked, which another may have replaced by now. position:
    `Follower.seen`, as it is now."""
    words, costs, readiness, few = html.listed([texts.NO_FACTS], "warn"), (), "empty", False
    if facts is not None:
        try:
            config = _config(facts, missing, anchors, *values)
            plan = preflight(facts, config, worker.pace_of(config.model))
            few = not plan.problems and hardly_moves(len(facts.forget), config)
            if few:
                plan = replace(
                    plan, doubts=(*plan.doubts, outcome.few_steps(len(facts.forget), config))
                )
            if worker.is_lent:
                plan = replace(plan, costs=(*plan.costs, cost_of_run(config.model)))
        except AdaPopError as error:
            plan = Preflight(problems=(str(error),))
        words, readiness = _plan(plan), plan.readiness
        costs = sentences([one for one in plan.costs if one not in plan.terms])
    altered = run_settings.changed(values, len(facts.forget) if facts else 0)
    name = position[0] or name
    now, _, _ = seen_of(worker, name, readiness)
    return (
        words,
        html.listed(costs, "calm" if costs else "hidden"),
        html.listed([f"Changed: {line}" for line in altered], "warn" if altered else "hidden"),
        gr.Button(visible=few),
        readiness,
        start_of(now, may_control(worker, name)),
        list(values),
        strip_of(now),
        gr.Button(interactive=now.can_stop and may_control(worker, name)),
        gr.Timer(active=True) if now.ticking else gr.skip(),
    )


def start_run(
    worker: Worker,
    name: str | None,
    identity: str,
    facts: FactSet | None,
    missing,
    anchors,
    *values,
):
    """Queues a run with the page's settings. name: the page's run so far, which must not be under
    way: a second press would hide it. identity: see `Session`. Returns its id, how much was seen of
    it, and the running timer."""
    facts = check_shown(facts, identity)
    with refusing():
        if may_control(worker, name) and not seen_of(worker, name, "ready")[0].can_start:
            raise RunError("A run of this page is under way.", "Wait for its end, or press Stop.")
        config = _config(facts, missing, anchors, *values)
        preflight(facts, config).check()
        run = worker.submit(config, facts)
    return run.id, UNSEEN, gr.Timer(active=True)


def _config(facts: FactSet, missing, anchors, *values) -> RunConfig:
    """The page's settings as a configuration."""
    return at_anchors(
        run_settings.config_of(values, facts=facts.name, missing_score=missing), anchors
    )


def at_anchors(config: RunConfig, anchors: Anchors | None) -> RunConfig:
    """The configuration with the β of the page's anchors, if chosen and if β follows scores."""
    return (
        replace(config, beta=anchored(*anchors)) if anchors and follows_scores(config) else config
    )


def stop_run(worker: Worker, name: str) -> None:
    """Asks the page's run to stop."""
    if run := run_to_control(worker, name):
        with refusing():
            run.request_stop()


def resume_run(worker: Worker, name: str):
    """Queues the page's run again, to go on after its last saved epoch."""
    if run := run_to_control(worker, name):
        with refusing():
            if run.shared:
                raise RunError(
                    f"Run {run.id} is shown to every visitor.", "Start a run of your own."
                )
            run.clear_stop()
            worker.enqueue(run)
    return UNSEEN, gr.Timer(active=True)


def banner_of(run: Run | None) -> dict:
    """Whose run is watched, and if it is recorded, as values of `LINES`; hidden for one's own."""
    by = ", recorded" if run is not None and example_of(run.id) else ""
    lines = [] if run is None else [f"You are watching {described(run.config)}{by}."]
    return html.listed(lines, "calm" if lines else "hidden")


def strip_of(now: RunView) -> dict:
    """The run strip's values."""
    return html.values(
        {"state": now.state, "label": now.label, "detail": now.detail, "percent": now.percent}
    )


def log_of(lines: list[str], name: str | None = "") -> dict:
    """The event log's values. name: the run that it is of, for `LOOK_AGAIN`."""
    return html.listed(lines, "log") | {"run": name}


def _plan(plan: Preflight) -> dict:
    kind = "bad" if plan.problems else "warn" if plan.doubts else "calm"
    counts = [plan.counts] if plan.counts else []
    return html.listed(sentences((*plan.problems, *plan.doubts, *counts, *plan.terms)), kind)
