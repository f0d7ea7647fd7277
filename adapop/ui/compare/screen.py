"""Screen 5, Compare: a race of methods on the same facts, and its results, from run folders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import gradio as gr

from adapop.report.comparison import comparison
from adapop.report.contestants import contestants
from adapop.report.record import Record
from adapop.service.worker import Worker
from adapop.ui.compare import by_epoch, entrants, published, race, recorded, results
from adapop.ui.compare.race import Race
from adapop.ui.compare.results import RaceResults
from adapop.ui.parts import html
from adapop.ui.parts.chart import twin
from adapop.ui.run import mine
from adapop.ui.run.launch import build_check
from adapop.ui.session import Session
from adapop.ui.story.content import side_by_side
from adapop.ui.wiring import EACH, EACH_IN_TURN, LAST_STAYS, QUIET, toast

RACE_ABOUT = (
    "The methods run on the set chosen on Facts, with the model chosen on Run. Keep “AdaPop, "
    "shuffled” among them: only a run with random scores can show that popularity matters."
)


@dataclass(frozen=True)
class CompareScreen:
    """The components of a race. empty: shown before it. fields: of facts, side by side. curves:
    recall by epoch. choice: of recorded results. setting: of the paper's numbers."""

    follower: Race
    progress: gr.HTML
    start: gr.Button
    stop: gr.Button
    empty: gr.Column
    fields: gr.HTML
    curves: by_epoch.Curves
    choice: gr.Radio
    results: RaceResults
    setting: gr.Dropdown

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
        results. first, second: marks of two contestants. my_runs: `MyRuns.entries`, for the names
        of the runs."""
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
            changes[self.fields] = by_epoch.fields_of(now.runs, now.names)
        if (finished, names) != (now.finished, now.names):
            changes |= self.results.updates(now.records, setting, choice, (first, second))
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
        # the shipped examples' fields, under one scrubber
        html.drawn(side_by_side(), "story examples", "example-fields", "exampleFields")
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
    curves = by_epoch.build()
    choice, words = recorded.build()
    compared = results.build(worker, follower.stored, words)
    parts = progress, start, stop, empty, fields, curves, choice, *compared
    screen = CompareScreen(follower, *parts)

    def begun(stored: dict, *values):
        if race.standing(worker, stored).ticking:  # a second press would hide the first
            raise toast("Runs are in progress. Wait until they end, or press Stop all.")
        begin = race.begin if values else race.begin_pictured
        return begin(worker, *values), race.UNSEEN, gr.Timer(active=True)

    before = [follower.stored, session.shown_hash, session.facts, missing, session.anchors]
    inputs, private = [*before, chosen, *raced], dict(api_visibility="private")
    begin = start.click(begun, inputs, follower.restarted, **private)
    session.look_whether_lost(begin)
    duel.click(begun, follower.stored, follower.restarted, **private)
    stop.click(partial(race.end, worker), follower.stored, None, **QUIET)
    _wire_results(worker, screen, my_runs, tab)


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
    worker: Worker, screen: CompareScreen, my_runs: gr.BrowserState, tab: gr.Tab
) -> None:
    """Wires the results of a race. tab: Compare's, which draws them when it is opened."""
    follower, parts = screen.follower, screen.results
    choice, setting = screen.choice, screen.setting
    pair = [parts.first, parts.second]
    inputs = [follower.stored, follower.last_seen, setting, choice, *pair, my_runs]
    looked = dict(fn=partial(screen.show, worker), inputs=inputs, outputs=screen.outputs)
    looked |= {"concurrency_limit": None, **QUIET}
    follower.timer.tick(**looked)
    # not when the page opens: whoever does not look here need not wait for thirty components
    gr.on([tab.select, follower.last_seen.change], trigger_mode="always_last", **looked)

    def removed(stored: dict, event: gr.EventData):  # gradio gives no event to a partial
        return race.removed(stored, getattr(event, "run", None)), race.UNSEEN

    fewer = screen.progress.select(removed, follower.stored, follower.restarted[:2], **QUIET)
    fewer.then(**looked)  # a page that the server forgot has no change of what was seen

    def pictures(records: Sequence[Record], choice: str) -> dict:
        return parts.pictures.updates(comparison(records), choice)

    def differences(records: Sequence[Record], *marks: str) -> dict:
        return results.settings_grid(contestants(records), *marks)

    def redrawn(draw: Callable, stored: dict, my_runs: object, *values: str) -> dict:
        return draw(standing_of(worker, stored, my_runs).records, *values)

    for chosen, draw, places in (
        ([choice], pictures, parts.pictures.all),
        (pair, differences, parts.differences),
        ([setting], published.rows, parts.published),
    ):
        inputs = [follower.stored, my_runs, *chosen]
        changed = [one.input for one in chosen]
        gr.on(changed, partial(redrawn, draw), inputs, places, **LAST_STAYS)
