"""The three-minute tour: a card above the screens that drives their real controls, and puts everything back at the end.

What its buttons do is in `guide`, what it says in `text`, and from which runs in `runs`.
"""

from dataclasses import dataclass
from functools import partial

import gradio as gr

from adapop.paths import ASSETS
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.facts.screen import FactsScreen
from adapop.ui.parts import html
from adapop.ui.pressure import PressureScreen
from adapop.ui.probe.screen import ProbeScreen
from adapop.ui.run.screen import Follower
from adapop.ui.session import Session
from adapop.ui.tour.guide import Guide
from adapop.ui.wiring import EACH, IN_TURN, QUIET

SCRIPT, END = ((ASSETS / name).read_text("utf-8") for name in ("tour.js", "tour-end.js"))
TICK_SECONDS = 1.0


@dataclass(frozen=True)
class CardControls:
    """The tour's own components. place: index into `STOPS`, -1 outside the tour. own: the visitor's values, in the
    order of `Driven.values`. asked: whether the answers of this stop are on the screen. tab: the id of the open one.
    kept: what the browser remembers, {finished, run}; run is the visitor's own while a tour is under way."""

    opener: gr.Button
    panel: gr.Row
    text: gr.HTML
    guess: gr.Radio
    back: gr.Button
    forward: gr.Button
    skip: gr.Button
    place: gr.State
    own: gr.State
    asked: gr.State
    tab: gr.State
    kept: gr.BrowserState
    timer: gr.Timer


@dataclass(frozen=True)
class Driven:
    """The controls of the screens that the tour moves. tabs: the tabs' container; open: each tab by its id."""

    tabs: gr.Tabs
    open: dict[str, gr.Tab]
    session: Session
    follower: Follower
    facts: FactsScreen
    pressure: PressureScreen
    probe: ProbeScreen

    @property
    def values(self) -> list[gr.Component]:
        """Everything whose value is set aside and put back."""
        session = self.session
        states = [*session.of_the_set, session.anchors, self.follower.run_id]
        inputs = [self.facts.search, self.facts.notes, self.pressure.what_if, self.pressure.confidence]
        return [*states, *inputs, *self.question]

    @property
    def question(self) -> list[gr.Component]:
        """The Probe screen's pickers, what they filled in, and both answers."""
        probe = self.probe
        return [probe.group, probe.fact, probe.form, probe.prompt, probe.gold, probe.answers, probe.filled]


def build(opener: gr.Button, secret: str) -> CardControls:
    """Lays the card out, hidden. opener: the button that shows it. secret: seals what the browser keeps."""
    with gr.Row(visible=False, elem_id="tour") as panel:
        with gr.Column(scale=5, min_width=280):
            text = gr.HTML({}, html_template=html.TOUR, js_on_load=SCRIPT, elem_id="tour-text")
            guess = gr.Radio([], label=texts.TOUR_GUESS, elem_id="tour-guess")
        with gr.Row(elem_id="tour-buttons"):
            back = gr.Button("Back", size="sm", min_width=70, elem_id="tour-back")
            forward = gr.Button("Next", size="sm", variant="primary", min_width=110, elem_id="tour-forward")
            skip = gr.Button("Skip the tour", size="sm", min_width=110, elem_id="tour-skip")
    states = gr.State(-1), gr.State(None), gr.State(False), gr.State("facts")
    kept = gr.BrowserState({}, storage_key="adapop-tour", secret=secret)
    return CardControls(
        opener, panel, text, guess, back, forward, skip, *states, kept, gr.Timer(TICK_SECONDS, active=False)
    )


def own_run(kept: object, name: str) -> str:
    """The run to open the page with: the visitor's own, if a tour was under way, or name. kept may be anything."""
    own = kept.get("run") if isinstance(kept, dict) else None
    return own if isinstance(own, str) else name


def wire(card: CardControls, driven: Driven, worker: Worker) -> None:
    """Makes the card work, once all screens are laid out."""
    guide = Guide(card, driven, worker)
    page = driven.session.page
    for name, tab in driven.open.items():
        tab.select(partial(str, name), None, card.tab, **IN_TURN)
    held = [card.place, card.tab, card.kept, *driven.values]
    moving = [card.place, card.own, card.guess, driven.follower.run_id, card.kept]
    outputs = [
        *(card.opener, card.panel, card.text, card.guess, card.back, card.forward, card.place, card.own, card.asked),
        *(card.kept, card.timer, card.tab, driven.tabs, driven.follower.timer, driven.session.touring),
        *(driven.facts.source, *driven.pressure.anchors, *driven.values),
    ]
    page.load(guide.opened, card.kept, [card.opener, card.kept], **QUIET)
    card.opener.click(guide.enter, held, outputs, **IN_TURN).then(guide.prepare, None, None, **QUIET)
    card.back.click(partial(guide.go, -1), moving, outputs, **IN_TURN)
    leaving = [card.place, card.own, card.kept, driven.session.facts, driven.follower.run_id]
    onward = card.forward.click(guide.forward, [*moving, driven.session.facts], outputs, **IN_TURN)
    skipped = card.skip.click(guide.leave, leaving, outputs, **IN_TURN)
    for left in (onward, skipped):
        left.then(None, None, None, js=END, **QUIET)
    told = [card.place, card.guess, driven.pressure.confidence, card.text, card.asked]
    # in turn as well: a late answer would put the text of the card before on the next one
    card.timer.tick(guide.tick, told, [card.text, card.timer, card.asked, *driven.question], **IN_TURN)
    driven.pressure.confidence.change(guide.dragged, told[:3], card.text, **(EACH | IN_TURN))
    card.guess.input(guide.dragged, told[:3], card.text, **IN_TURN)
