"""Screen 5, Compare: a race of methods on the same facts, and its results, from run folders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import gradio as gr

from adapop.errors import AdaPopError
from adapop.report.comparison import comparison
from adapop.report.contestants import by_contestant, comparable, contestants
from adapop.report.record import Record, title_of
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.ui.compare import by_epoch, entrants, published, race, recorded, results
from adapop.ui.compare.race import Race
from adapop.ui.compare.results import RaceResults, settings_grid
from adapop.ui.parts import field, html
from adapop.ui.parts.chart import twin
from adapop.ui.run import mine
from adapop.ui.run.launch import build_check
from adapop.ui.session import Session
from adapop.ui.wiring import EACH, EACH_IN_TURN, LAST_STAYS, QUIET, toast

MOST_FIELDS = 4  # fields beside each other
RACE_ABOUT = (
    "The methods run on the set chosen on Facts, with the model chosen on Run. Keep “AdaPop, "
    "shuffled” among them: only a run with random scores can show that popularity matters."
)


@dataclass(frozen=True)
class CompareScreen:
    """The components of a race. empty: shown before it. fields: of facts, side by side. curves:
    recall by epoch."""

    follower: Race
    progress: gr.HTML
    start: gr.Button
    stop: gr.Button
    empty: gr.Column
    fields: gr.HTML
    curves: by_epoch.Curves
    results: RaceResults

    @property
    def outputs(self) -> list[gr.Component]:
        """The components that `show` may update."""
        controls = [self.progress, self.start, self.stop, self.empty, self.fields]
        results = [*self.curves.all, *self.results.all]
        return [*controls, *results, self.follower.last_seen, self.follower.timer]

    def show(
        self,
        worker: Worker,
        stored: dict | None,
        last_seen: tuple,
        setting: str,
        choice: str,
        first: str | None = None,
        second: str | None = None,
        my_runs: object = None,
    ) -> dict:
        """Updates for a race's state: curves after a measurement, results after another run is
        done. last_seen: see `race.Race`. setting: of the paper's numbers. choice: of recorded
        results. first, second: see `differing`. my_runs: `MyRuns.entries`, for the names of the
        runs."""
        now = standing_of(worker, stored, my_runs)
        changes = {
            self.progress: now.shown,
            self.start: gr.Button(interactive=not now.ticking),
            self.stop: gr.Button(visible=now.ticking),
            self.empty: gr.Column(visible=not now.shown["shown"]),
            self.follower.timer: gr.Timer(active=now.ticking),
        }
        progress = now.finished, now.measured, now.names
        if last_seen == progress:
            return changes
        changes[self.follower.last_seen] = progress
        finished, measured, names = last_seen
        if (measured, names) != progress[1:]:
            changes |= self.curves.updates(now.runs, now.names)
            changes[self.fields] = field_panels(now.runs, now.names)
        if (finished, names) != (now.finished, now.names):
            pair = first, second
            changes |= self.results.updates(_records(now), setting, choice, pair)
        return changes


def build(
    worker: Worker,
    session: Session,
    missing: gr.Radio,
    follower: Race,
    settings: list[gr.Component],
    my_runs: gr.BrowserState,
    tab: gr.Tab,
) -> None:
    """Lays out the screen. settings: inputs of Run. my_runs: see `MyRuns.entries`."""
    with gr.Column(elem_id="race-empty") as empty:
        by_epoch.examples()
        duel = gr.Button(race.pictured(), elem_id="duel")
    with gr.Accordion("Other methods", open=False, elem_id="race-form"):
        chosen, raced, start = _form(worker, session, missing, settings, tab)
    _wire_joining(worker, follower, my_runs, tab)
    stop = gr.Button("Stop all", visible=False, elem_id="stop-race")
    hidden = html.values({"shown": False})
    shape = dict(html_template=race.PROGRESS, js_on_load=race.REMOVE, elem_id="race-progress")
    progress = gr.HTML(hidden, **shape)
    # the contestants' fields, each fact a dot, all under one scrubber; empty before a race
    fields = html.drawn([], "race-fields story", "race-fields", "raceFields")
    drawn = fields, by_epoch.build()
    choice, words = recorded.build()
    compared = results.build(worker, follower.stored, words)
    screen = CompareScreen(follower, progress, start, stop, empty, *drawn, compared)

    def begun(stored: dict, *values):
        if race.standing(worker, stored).ticking:  # a second press would hide the first
            raise toast("Runs are in progress. Wait until they end, or press Stop all.")
        begin = race.begin if values else race.begin_pictured
        return begin(worker, *values), race.UNSEEN, gr.Timer(active=True)

    def removed(stored: dict, event: gr.EventData):  # gradio gives no event to a partial
        return race.removed(stored, getattr(event, "run", None)), race.UNSEEN

    before = [follower.stored, session.shown_hash, session.facts, missing, session.anchors]
    inputs, private = [*before, chosen, *raced], dict(api_visibility="private")
    begin = start.click(begun, inputs, follower.restarted, **private)
    session.look_whether_lost(begin)
    duel.click(begun, follower.stored, follower.restarted, **private)
    progress.select(removed, follower.stored, follower.restarted[:2], **QUIET)
    stop.click(partial(race.end, worker), follower.stored, None, **QUIET)
    _wire_results(worker, screen, choice, my_runs)


def _form(
    worker: Worker, session: Session, missing: gr.Radio, settings: list[gr.Component], tab: gr.Tab
) -> tuple[gr.Dropdown, list[gr.Component], gr.Button]:
    """Lays out the form and wires its plan: the contestants, the settings (seeds, epochs, learning
    rate, and Run's) and the button that starts. settings: inputs of Run; the race uses its
    model."""
    gr.Markdown(RACE_ABOUT)
    with gr.Row():
        several = dict(multiselect=True, min_width=300, scale=5, elem_id="contestants")
        several |= dict(value=list(race.STARTERS), label="Methods")
        chosen = gr.Dropdown(entrants.choices(), **several)
        narrow = dict(min_width=150, scale=2, elem_id="race-epochs")
        epochs = gr.Slider(1, 10, value=5, step=1, label="Epochs", **narrow)
        narrow = dict(min_width=210, scale=1, elem_id="race-seeds")
        seeds = gr.Radio([1, 2, 3], value=1, label="Seeds", **narrow)
        # an empty gr.Number is shown as 0
        narrow = dict(placeholder="each method's own", min_width=150, elem_id="race-rate")
        rate = gr.Textbox(label="Learning rate", **narrow)
    plan = html.lines("race-plan")
    twin(entrants.who_is_who(), "who-is-who", caption="What the methods do")
    raced = [seeds, epochs, rate, *settings]
    checked = [missing, session.anchors, chosen, *raced]
    build_check(worker, session, checked, entrants.first, "race-check")
    start = gr.Button("Run them", variant="primary", min_width=220, scale=0, elem_id="race")
    components = session.facts, chosen, *raced[:4]  # the fourth is the model
    changed, planned = [one.change for one in components], [session.facts, *checked]
    gr.on([*changed, tab.select], partial(entrants.plan, worker), planned, plan, **EACH_IN_TURN)
    return chosen, raced, start


def field_panels(runs: Sequence[Run], names: Mapping[str, str]) -> list[dict]:
    """The value of the contestants' fields: the recorded frames of the first seed of each
    contestant whose numbers compare. names: run id -> name, for contestants of a single run."""
    every, compared = [], {run.id for run in comparable(runs)}
    for mark, (_, seeds) in enumerate(by_contestant(runs), start=1):
        run = seeds[0]
        if run.id not in compared:
            continue
        title = f"{mark} {title_of(run.config.method, run.config.preset)}"
        title = names.get(run.id, title) if len(seeds) == 1 else title
        try:
            dots, motion = field.dots(run.facts.forget), field.motion_of(run, field.frames_of(run))
            shares = field.shares(run.events())
        except AdaPopError:  # a damaged recording hides no other
            continue
        if motion["epoch"]:
            every.append(dict(title=title, facts=dots, motion=motion, shares=shares))
        if len(every) == MOST_FIELDS:
            break
    return every


def _wire_joining(worker: Worker, follower: Race, my_runs: gr.BrowserState, tab: gr.Tab) -> None:
    """Lays out and wires the picker that adds the visitor's runs to the race."""
    with gr.Row(elem_classes=["beside", "advanced-only"], elem_id="join-row") as own_row:
        # Gradio would refuse a value sent before its choices changed
        own = dict(multiselect=True, allow_custom_value=True, min_width=260, elem_id="my-racers")
        chosen = gr.Dropdown([], label="My runs", scale=4, **own)
        join = gr.Button("Add", min_width=100, scale=0, elem_id="join-race", elem_classes="tall")

    def joined(stored: dict, names: list[str] | None):
        if not names:
            raise toast("Pick at least one of your runs.")
        for name in names:
            stored = race.joined(worker, stored, name)
        return stored, race.UNSEEN, gr.Timer(active=True), []

    join.click(joined, [follower.stored, chosen], [*follower.restarted, chosen], **QUIET)
    looked = [tab.select, my_runs.change]
    gr.on(looked, partial(_picker, worker), my_runs, [chosen, own_row], **EACH)


def _picker(worker: Worker, stored: object) -> tuple[gr.Dropdown, gr.Row]:
    """The picker of runs, and its row, which is hidden from visitors without runs."""
    own = mine.choices(worker, stored, examples=False)
    row = gr.Row(elem_classes=["beside"] if own else ["beside", "advanced-only"])
    return gr.Dropdown(mine.choices(worker, stored), value=[]), row


def standing_of(worker: Worker, stored: dict | None, my_runs: object) -> race.Standing:
    """The state of the race, with the names from My runs. my_runs: see `MyRuns.entries`."""
    names = {entry["id"]: entry["name"] for entry in mine.entries_of(worker, my_runs)}
    return race.standing(worker, stored, names)


def _wire_results(
    worker: Worker, screen: CompareScreen, choice: gr.Radio, my_runs: gr.BrowserState
) -> None:
    """Wires the results of a race. choice: of recorded results."""
    follower, parts = screen.follower, screen.results
    pair, setting = [parts.differences.first, parts.differences.second], parts.setting

    def layered(stored: dict, layer: str, my_runs: object) -> dict:
        records = _records(standing_of(worker, stored, my_runs))
        return parts.visible(comparison(records), layer)

    def beside_paper(stored: dict, name: str, my_runs: object) -> dict:
        return published.rows(_records(standing_of(worker, stored, my_runs)), name)

    inputs = [follower.stored, follower.last_seen, setting, choice, *pair, my_runs]
    looked = dict(fn=partial(screen.show, worker), inputs=inputs, outputs=screen.outputs)
    looked |= {"concurrency_limit": None, **QUIET}
    follower.timer.tick(**looked)
    # without triggers it runs when the page opens and whenever one of its inputs changes
    gr.on(None, trigger_mode="always_last", **looked)
    drawn = [parts.column, *parts.pictures.all]
    choice.input(layered, [follower.stored, choice, my_runs], drawn, **LAST_STAYS)
    changed, compared = [mark.input for mark in pair], [follower.stored, *pair, my_runs]
    gr.on(changed, partial(differing, worker), compared, parts.differences.table, **LAST_STAYS)
    beside = [follower.stored, setting, my_runs]
    setting.change(beside_paper, beside, parts.published, **EACH)


def differing(
    worker: Worker, stored: dict, first: str, second: str, my_runs: object = None
) -> dict:
    """The settings in which two contestants, named by their marks, differ. my_runs: see `show`."""
    every = contestants(_records(standing_of(worker, stored, my_runs)))
    return settings_grid([one for one in every if one.mark in (first, second)])


def _records(now: race.Standing) -> list[Record]:
    """The records of the race's runs; empty until the first run is done; stopped and failed ones do
    not count."""
    return [record for _, record in race.readable(now.runs, now.names)] if now.finished else []
