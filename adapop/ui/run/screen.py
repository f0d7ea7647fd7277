"""Screen 2, Run: a real unlearning run, shown live. The page only reads the run's folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import gradio as gr

from adapop.config.methods import METHODS
from adapop.errors import AdaPopError, number_of
from adapop.popularity.beta import SCORELESS
from adapop.probes.prompting import remarks_of
from adapop.remark import Remark, sentences
from adapop.report.record import described, name_of
from adapop.runs.examples import example, example_of
from adapop.runs.result import diverged
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.training.events import Event, Measured, RunStarted, StepDone
from adapop.ui.access import link_to, may_control, shown_run
from adapop.ui.parts import download, field, html
from adapop.ui.run import charts, configuration, outcome, pressure
from adapop.ui.run import settings as run_settings
from adapop.ui.run.launch import (
    UNSEEN,
    build_check,
    config_at,
    look,
    resume_run,
    start_of,
    start_run,
    stop_run,
)
from adapop.ui.run.state import ENDED, log_lines, seen_of, strip_of
from adapop.ui.session import Session
from adapop.ui.wiring import LAST_STAYS, QUIET

NO_RUN = "No run yet."
PAIR_ABOUT = "Both are asked the same questions. Neither is changed."
SHOWN_FIRST = "adapop"  # the example that is shown before the page has a run
# the events that open the page and check its settings both update the strip: one after the other
BY_TURNS = QUIET | {"concurrency_id": "shown run", "concurrency_limit": 1}
# a late answer about the run that the page showed before may stop the timer, which then has
# to be started again
LOOK_AGAIN = """(run, log) =>
  (log?.run ?? '') === (run ?? '')
    ? { __type__: 'update' }
    : { __type__: 'update', active: true }"""


@dataclass(frozen=True)
class Follower:
    """The components that follow the page's run on every tab. They are laid out above the tabs: a
    timer in a hidden tab does not run.

    run_id: the run shown in this browser. another: a copy of run_id whose change event fires only
    for another run; that of run_id fires twice when a page opens. position: (the run shown, number
    of its events shown). phase: (the run shown, its state), which seldom changes. readiness: of
    facts and settings: empty, invalid or ready. settings: their values, stored by the browser.
    loaded: not empty once they are in the fields; until then the fields are not stored. The page
    holds it, so that an event sends it together with the fields. timer: polls while the run is
    active.
    """

    run_id: gr.BrowserState
    another: gr.State
    position: gr.State
    phase: gr.State
    readiness: gr.State
    settings: gr.BrowserState
    loaded: gr.Textbox
    timer: gr.Timer
    strip: gr.HTML
    stop: gr.Button

    @property
    def follows(self) -> list[gr.Component]:
        """The components that `launch.following` updates."""
        return [self.run_id, self.position, self.timer]


@dataclass(frozen=True)
class RunScreen:
    """The components that show the page's run and its settings. watched: names a run that is not
    the visitor's; form: settings and Start, hidden for such a run. card: see `outcome.Card`. over:
    the run that is laid behind the charts. field: where each fact stands; its scrubber also drives
    the cursor of the recall chart, a fact's answers, and the chart of what comes back in which
    form, and follows the newest frame until the visitor moves it back."""

    follower: Follower
    settings: run_settings.RunSettings
    watched: gr.HTML
    form: gr.Column
    start: gr.Button
    resume: gr.Button
    card: outcome.Card
    link: gr.Button
    charts: charts.RunCharts
    over: gr.Dropdown
    field: gr.HTML
    log: gr.HTML

    @property
    def outputs(self) -> list[gr.Component]:
        """The components that `show` may update."""
        follower = self.follower
        above = [follower.strip, follower.stop, follower.position, follower.phase, follower.timer]
        controls = [self.watched, self.form, self.start, self.resume, *self.card.all, self.link]
        return [*above, *controls, *self.charts.all, self.field, self.log]

    def show(
        self,
        worker: Worker,
        name: str | None,
        position: tuple[str | None, int] = UNSEEN,
        readiness: str = "ready",
        over: str | None = "",
    ) -> dict:
        """Updates for new events of a run. position: `Follower.position`. over: see `lay_over`."""
        now, run, events = seen_of(worker, name, readiness)
        owned, last_seen = may_control(worker, name), position[1] if position[0] == name else -1
        watching = run is not None and not owned
        if run is not None and owned:
            worker.note_request(run)
        follower = self.follower
        if run is not None and len(events) == last_seen and now.ticking:
            return {follower.strip: strip_of(now), follower.phase: (name, now.state)}
        broken = run is not None and now.state == "failed" and diverged(run)
        asking = remarks_of(run.prompting) if run is not None else []
        changes = {
            follower.strip: strip_of(now),
            follower.phase: (name, now.state),
            follower.stop: gr.Button(interactive=now.can_stop and owned),
            follower.timer: gr.Timer(active=run is not None and now.ticking),
            self.watched: banner_of(run, watching, asking),
            self.form: gr.Column(visible=not watching),
            self.start: start_of(now, owned and not broken),
            self.resume: gr.Button(visible=now.can_resume and owned and not broken),
            **self.card.updates(run if now.state == "done" or broken else None, owned),
            self.link: gr.Button(visible=run is not None),
        }
        if not name:  # never an empty screen: a recorded run shows what will come
            return changes | self._recorded()
        if run is None and last_seen >= 0:
            return changes
        if last_seen < 0 or any(isinstance(event, RunStarted) for event in events):
            earlier = earlier_of(worker, run, over)
            changes |= self.charts.updates(run, events, last_seen, earlier)
            changes |= field_updates(self.field, run, events, last_seen)
        changes[follower.position] = (name, len(events))
        if run is None:
            return changes | {self.log: log_of([NO_RUN], name)}
        soon = "The run is about to begin."
        soon = "The models are about to be loaded." if run.config.unlearned else soon
        how = sentences(asking)
        lines = log_lines(events, run.config, how) or [*how, soon]
        return changes | {self.log: log_of(lines, name)}

    def lay_over(self, worker: Worker, name: str | None, over: str | None) -> dict:
        """Updates that draw another run's curves behind those of the run shown. over: its id."""
        run = shown_run(worker, name)
        if run is None:
            return {}
        return self.charts.updates(run, run.events(), -1, earlier_of(worker, run, over))

    def _recorded(self) -> dict:
        """Updates that show the shipped example, labelled as such, before the page has a run."""
        run = example(SHOWN_FIRST)
        events = run.events()
        summary = f"{METHODS[run.config.method].title}, {number_of(run.config.epochs, 'epoch')}"
        about = f"Recorded example: {summary} on {run.about.facts}. Press Start for your own."
        changes = {self.watched: html.listed([about], "example"), self.follower.position: UNSEEN}
        changes |= self.charts.updates(run, events, -1) | self.charts.named()
        changes |= field_updates(self.field, run, events, -1)
        return changes | {self.log: log_of([NO_RUN])}


def build(
    worker: Worker,
    session: Session,
    missing: gr.Radio,
    at_once: gr.Button,
    elsewhere: run_settings.Offers,
    follower: Follower,
) -> RunScreen:
    """Lays the screen out inside the current tab and wires it. at_once: starts a run too, from the
    screen of the facts. elsewhere: the offers of that screen."""
    watched = html.lines("watched")
    with gr.Column(elem_id="run-form") as form:
        settings, start, resume = run_settings.build(session.facts, follower.loaded)
        altered, plan = html.lines("altered"), html.lines("preflight")
        small = dict(visible=False, size="sm", min_width=160, elem_id="more-steps")
        more = gr.Button("Give it enough steps", **small)
        title = METHODS[SCORELESS[0]].title
        small |= dict(elem_id="scoreless")
        scoreless = gr.Button(f"Use {title}, which needs no scores", **small)
        run_settings.choose_on_press(settings, scoreless, session.facts, method=SCORELESS[0])
        with gr.Row(elem_classes="offers"):
            offers = run_settings.build_offers("run")
        for one in (offers, elsewhere):
            one.wire(settings, session.facts)
        with gr.Column(elem_classes="advanced-only"):
            costs = html.lines("run-costs")
            build_check(worker, session, [missing, session.anchors, *settings.all], config_at)
    pressure.build(session)
    card = outcome.build()
    with gr.Column(elem_id="run-results"):
        pictures, over, facts = charts.build()
        with gr.Row(elem_id="log-row"):
            column = gr.Column(scale=5, min_width=130)
            with column, gr.Accordion("Log", open=False, elem_id="log-fold"):
                log = html.lines("event-log", log_of([NO_RUN]))
            unseen = dict(visible=False, elem_id="copy-link", scale=0, min_width=120)
            link = gr.Button("Copy link", **unseen)
            with gr.Column(scale=0, min_width=170, elem_id="run-report"):
                download.build(worker, follower.run_id, follower.another, "export")
    parts = settings, watched, form, start, resume, card, link, pictures, over, facts, log
    screen = RunScreen(follower, *parts)
    chosen = [session.facts, missing, session.anchors, *settings.all]
    looked_at = [plan, costs, altered, more, scoreless, follower.readiness, start]
    looked_at += [follower.settings, *offers.all, follower.strip, follower.stop, follower.timer]
    known = [follower.run_id, follower.position, follower.loaded, follower.settings]
    known += [session.known, *chosen]
    when = [one.change for one in (follower.another, follower.loaded, session.known, *chosen)]
    gr.on(when, partial(look, worker), known, looked_at, trigger_mode="always_last", **BY_TURNS)
    restored = session.page.load(configuration.restored, follower.settings, settings.all, **QUIET)
    restored.then(None, None, follower.loaded, js="() => 'loaded'", **QUIET)
    _wire_start(worker, session, screen, chosen, (at_once, more))
    _wire_shown(worker, screen)
    return screen


def _wire_start(
    worker: Worker,
    session: Session,
    screen: RunScreen,
    chosen: list[gr.Component],
    buttons: tuple[gr.Button, gr.Button],
) -> None:
    """Wires Start, Stop, Resume, and the buttons that change a run's amount of training. chosen:
    the facts and settings of a run. buttons: starts it from another screen; gives it enough
    steps."""
    at_once, more = buttons
    follower, settings = screen.follower, screen.settings
    run_id, inputs = follower.run_id, [follower.run_id, session.shown_hash, *chosen]
    pressed = dict(api_visibility="private")
    presses = [screen.start.click, at_once.click]
    begun = gr.on(presses, partial(start_run, worker), inputs, follower.follows, **pressed)
    begun.success(None, None, None, js="adapop.toRun", **QUIET)
    session.look_whether_lost(begun)
    chosen = settings.named("model", "method", "preset")
    amount = settings.named("epochs", "batch", "learning_rate")
    more.click(outcome.enough_steps, [session.facts, *chosen, *amount], amount, **QUIET)
    target = [*follower.follows, *amount]
    screen.card.wire(worker, session, [run_id, *chosen], follower.another, target)
    follower.stop.click(partial(stop_run, worker), run_id, None, **QUIET)
    screen.resume.click(partial(resume_run, worker), run_id, follower.follows[1:], **pressed)


def _wire_shown(worker: Worker, screen: RunScreen) -> None:
    """Wires what is shown of the run while it goes on, and the link to it."""
    follower = screen.follower
    address = gr.Textbox(visible=False)  # the link's name, on its way to the clipboard
    made = screen.link.click(partial(link_to, worker), follower.run_id, address, **QUIET)
    made.success(None, address, screen.link, js="adapop.copyLink", **QUIET)
    known = [follower.run_id, follower.position, follower.readiness, screen.over]
    show = dict(fn=partial(screen.show, worker), inputs=known, outputs=screen.outputs)
    looked = follower.timer.tick(**show, concurrency_limit=None, **QUIET)
    looked.then(None, [follower.run_id, screen.log], follower.timer, js=LOOK_AGAIN, **QUIET)
    pair = [follower.run_id, screen.over]
    screen.over.input(partial(screen.lay_over, worker), pair, screen.charts.all, **LAST_STAYS)


def earlier_of(worker: Worker, run: Run | None, over: str | None) -> Run | None:
    """The run to lay behind another: the visitor's own or an example, of the same model, that came
    to its end; else None."""
    earlier = shown_run(worker, over) if over else None
    if run is None or earlier is None or earlier.id == run.id:
        return None
    pair = run.config.unlearned or earlier.config.unlearned  # which has no course
    same = earlier.config.model == run.config.model and not pair
    return earlier if same and earlier.state == "done" else None


def banner_of(run: Run | None, watching: bool, asking: Sequence[Remark] = ()) -> dict:
    """Values of `LINES`: which run is shown if it is not one's own, and whether it is recorded; how
    many facts it leaves out; that a pair is one. By its kind `style.css` hides what a pair has not.
    asking: remarks on how its model is asked."""
    by = ", recorded" if run is not None and example_of(run.id) else ""
    lines = [f"You are watching {described(run.config)}{by}."] if watching else []
    if run is None or not run.config.unlearned:
        lines += sentences([one for one in asking if one.kind == "unknown_left_out"])
        return html.listed(lines)
    names = name_of(run.config.unlearned), name_of(run.config.model)
    lines.append("Two models made elsewhere: {} (unlearned) and {} (original).".format(*names))
    return html.listed([*lines, PAIR_ABOUT], "pair")


def log_of(lines: list[str], name: str | None = "") -> dict:
    """The event log's values. name: the run it belongs to, for `LOOK_AGAIN`."""
    return html.listed(lines, "log") | {"run": name}


def field_updates(field: gr.HTML, run: Run | None, events: Sequence[Event], last_seen: int) -> dict:
    """Updates of the field, see `RunScreen`, if the run recorded any new frames. last_seen: how
    many of the events the page has shown, negative for none."""
    if run is None:
        return {field: None}
    try:
        recorded = run.frames()
        if last_seen >= 0:
            steps = sum(isinstance(event, StepDone) for event in events[:last_seen])
            news = any(isinstance(event, (Measured, *ENDED)) for event in events[last_seen:])
            if not news and not any(frame.step >= steps for frame in recorded[-1:]):
                return {}
        # training after the last saved epoch is lost if a run ended early or was killed
        over = bool(events) and (isinstance(events[-1], ENDED) or run.state == "interrupted")
        measured = sum(isinstance(event, Measured) for event in events)
        kept_epoch = run.last_epoch or 0 if over else None
        return {field: value_of_field(run, len(recorded), measured, kept_epoch)}
    except AdaPopError:  # a damaged recording hides nothing else of the run
        return {field: None}


@lru_cache(maxsize=8)
def value_of_field(run: Run, _frames: int, _measured: int, kept_epoch: int | None = None) -> dict:
    """A run's data for the browser, cached for all pages. _frames, _measured: their numbers, which
    only invalidate the cache. kept_epoch: the last epoch that a stopped run has saved."""
    facts, shares = field.dots(run.facts.forget), field.shares(run.events())
    frames = field.frames_of(run, kept_epoch)  # later epochs are shown in the charts only
    motion, held = field.motion_of(run, frames), field.held_out_of(run.facts.holdout, frames)
    return {"run": hash(run), "facts": facts, "motion": motion, "shares": shares, "held": held}
