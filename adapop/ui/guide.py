"""What the tour's buttons do to the page.

The visitor's facts, anchors and run are set aside in the page's own state when the tour begins. The browser keeps none
of the tour's in their place (see `Session.lent`), so that a reload in the middle comes back to the visitor's own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import gradio as gr

from adapop.beta import POPULAR_ANCHOR, RARE_ANCHOR
from adapop.catalog import load_facts
from adapop.errors import AdaPopError
from adapop.popularity.base import given
from adapop.ui import cards, copy
from adapop.ui.facts import FactsScreen
from adapop.ui.pressure import PressureScreen
from adapop.ui.probe import ProbeScreen, answers_of, fact_choices, form_choices
from adapop.ui.run import Follower, refused
from adapop.ui.session import Session
from adapop.ui.tour_cards import CARDS, POPULAR, RARE, STOPS, Moment, Stop
from adapop.ui.tour_runs import TourRuns
from adapop.worker import Worker

SETTLED_SECONDS = 2.5  # until the pickers of the Probe screen have answered each other
TOUR_SET = "pair"


@dataclass(frozen=True)
class Card:
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
        session, probe = self.session, self.probe
        states = [session.facts, session.scorings, session.known, session.anchors, self.follower.run_id]
        inputs = [self.facts.search, self.facts.notes, self.pressure.what_if, self.pressure.confidence]
        return [*states, *inputs, probe.group, probe.fact, probe.form, probe.prompt, probe.gold, probe.answers]


class Guide:
    """What each button of the card does: values by component, for those that change."""

    def __init__(self, card: Card, driven: Driven, worker: Worker) -> None:
        self.card, self.driven, self.worker = card, driven, worker
        self.runs = TourRuns(worker)

    def opened(self, kept: object) -> dict:
        """The button's words, and an end to a tour that a reload cut short."""
        finished = _finished(kept)
        return {self.card.opener: gr.Button(_called(finished)), self.card.kept: {"finished": finished, "run": None}}

    def enter(self, tab: str, kept: object, *values) -> dict:
        """Sets the visitor's values aside and shows the first card."""
        card, session, pair = self.card, self.driven.session, load_facts(TOUR_SET)
        own = dict(zip(self.driven.values, values))
        choices = [(fact.title, name) for fact, name in zip(pair.forget, (RARE, POPULAR))]
        run = own[self.driven.follower.run_id]
        return {
            **self._at(0, None, run, run),
            card.panel: gr.Row(visible=True),
            card.opener: gr.Button(interactive=False),
            card.guess: gr.Radio(choices, value=None, visible=True),
            card.own: (tab, *values),
            card.kept: {"finished": _finished(kept), "run": run},
            card.timer: gr.Timer(active=True),
            session.lent: True,
            session.facts: pair,
            session.scorings: (given(pair.forget),),
            session.known: {},
            **self._anchored((RARE_ANCHOR, POPULAR_ANCHOR)),
            self.driven.facts.source: gr.Radio(interactive=False, label=copy.TOUR_SOURCE),
            self.driven.facts.search: "",
            self.driven.pressure.what_if: "given",
        }

    def prepare(self) -> None:
        """Sees to it that the tour's runs are made."""
        try:
            self.runs.start()
        except AdaPopError as error:
            raise refused(error) from error

    def go(self, by: int, place: int, own: tuple, guess: str | None, run: str) -> dict:
        """The card so many places on."""
        to = place + by
        if own is None or not 0 <= to < len(STOPS):
            return gr.skip()
        return self._at(to, guess, run, self._own(own)[self.driven.follower.run_id])

    def forward(self, place: int, own: tuple, guess: str | None, run: str, kept: object, facts) -> dict:
        """The next card; after the last the visitor's own state."""
        if place < len(STOPS) - 1:
            return self.go(1, place, own, guess, run)
        return self.leave(place, own, {"finished": True}, facts, run)

    def leave(self, place: int, own: tuple | None, kept: object, facts, run: str) -> dict:
        """Puts everything back, except for what the visitor has done in the meantime: an upload, a run of their own."""
        if place < 0 or own is None:
            return gr.skip()
        card, session, follower = self.card, self.driven.session, self.driven.follower
        back, finished = self._own(own), _finished(kept)
        if facts is not None and facts.name != TOUR_SET:
            for state in (session.facts, session.scorings, session.known, self.driven.facts.notes):
                del back[state]
        if run not in {ours.id for ours in (self.runs.run("adapop"), self.runs.run("wga")) if ours}:
            del back[follower.run_id]
        else:
            back |= {follower.seen: -1, follower.timer: gr.Timer(active=True)}
        name, probe = back.get(follower.run_id, run), self.driven.probe
        back[probe.form] = form_choices(self.worker, name, back[probe.fact], back[probe.form] or "")
        back[probe.fact] = fact_choices(self.worker, name, back[probe.group], back[probe.fact])
        return back | {
            **self._anchored(back[session.anchors]),
            card.panel: gr.Row(visible=False),
            card.opener: gr.Button(_called(finished), interactive=True),
            card.text: {},
            card.place: -1,
            card.kept: {"finished": finished, "run": None},
            card.timer: gr.Timer(active=False),
            session.lent: False,
            self.driven.facts.source: gr.Radio(interactive=True, label=copy.SOURCE_LABEL),
            self.driven.tabs: gr.Tabs(selected=own[0]),
        }

    def typed_again(self, place: int, own: tuple | None) -> dict:
        """A prompt of the visitor's own, which the pickers have meanwhile replaced by the fact's question."""
        if place >= 0 or own is None:
            return gr.skip()
        probe, back = self.driven.probe, self._own(own)
        if back[probe.form] == back[probe.prompt] or not back[probe.prompt]:
            return {self.card.own: None}
        time.sleep(SETTLED_SECONDS)
        typed = {control: back[control] for control in (probe.form, probe.prompt, probe.gold, probe.answers)}
        return {self.card.own: None, **typed}

    def tick(self, place: int, guess: str | None, confidence: float, shown: object, asked: bool) -> dict:
        """What the tour's runs have brought since."""
        if place < 0:
            return {self.card.timer: gr.Timer(active=False)}
        story, found = self.runs.story(), self.runs.asked()
        told = self._told(place, guess, confidence)
        changes = {} if told == shown else {self.card.text: told}
        if found and not asked and STOPS[place].ask:
            changes |= {self.driven.probe.answers: self._answers(STOPS[place]), self.card.asked: True}
        if (story.complete and found) or story.trouble:
            changes[self.card.timer] = gr.Timer(active=False)
        return changes or gr.skip()

    def dragged(self, place: int, guess: str | None, confidence: float):
        """The card's words for another confidence or guess."""
        return gr.skip() if place < 0 else self._told(place, guess, confidence)

    def _own(self, own: tuple) -> dict:
        return dict(zip(self.driven.values, own[1:]))

    def _anchored(self, anchors) -> dict:
        inputs = zip(self.driven.pressure.anchors, (value for anchor in anchors for value in anchor))
        return {self.driven.session.anchors: anchors, **dict(inputs)}

    def _at(self, place: int, guess: str | None, run: str, own: str) -> dict:
        """The card at a place and what it does to the screens. run: what is followed now; own: the visitor's."""
        stop, card, follower = STOPS[place], self.card, self.driven.follower
        changes = {
            card.place: place,
            card.guess: gr.Radio(visible=place == 0),
            card.back: gr.Button(interactive=place > 0),
            card.forward: gr.Button(stop.forward),
            self.driven.tabs: gr.Tabs(selected=stop.tab),
        }
        if stop.confidence is not None:
            changes[self.driven.pressure.confidence] = stop.confidence
        wanted = own
        if stop.run:
            if self.runs.run("adapop") is None:
                self.prepare()
            wanted = self.runs.run("adapop").id
        if wanted != run:
            changes |= {follower.run_id: wanted, follower.seen: -1, follower.timer: gr.Timer(active=True)}
        if stop.ask:
            changes |= self._asking(stop, wanted)
        return changes | {card.text: self._told(place, guess, stop.confidence or 1.0)}

    def _asking(self, stop: Stop, run: str) -> dict:
        """The Probe screen's pickers on the popular fact, and both answers if they are there."""
        probe, fact, story = self.driven.probe, self.runs.pair.popular, self.runs.story()
        reworded = stop.ask == "reworded" and story.reworded
        prompt, found = story.reworded.question if reworded else fact.question, self.runs.asked()
        return {
            probe.group: "forget",
            probe.fact: fact_choices(self.worker, run, "forget", fact.id),
            probe.form: form_choices(self.worker, run, fact.id, prompt),
            probe.prompt: prompt,
            probe.gold: fact.answer,
            probe.answers: self._answers(stop) if found else cards.values({"empty": copy.TOUR_ASKING}),
            self.card.asked: bool(found),
        }

    def _answers(self, stop: Stop) -> dict:
        found, story = self.runs.asked(), self.runs.story()
        question = story.reworded.question if stop.ask == "reworded" and story.reworded else found[0].prompt
        return answers_of(next(each for each in found if each.prompt == question))

    def _told(self, place: int, guess: str | None, confidence: float) -> dict:
        """The values of the card's template."""
        stop, story = STOPS[place], self.runs.story()
        told = stop.told(Moment(story, guess, confidence))
        content = {
            "place": place,
            "number": stop.card,
            "count": CARDS,
            "ring": stop.ring,
            "title": told.title,
            "first": told.lines[0],
            "more": told.lines[1:],
            "head": told.rows[0] if told.rows else [],
            "rows": told.rows[1:],
            "awaited": (story.trouble or story.awaited) if told.awaiting else "",
            "percent": story.percent,
        }
        return cards.values(content)


def _finished(kept: object) -> bool:
    return isinstance(kept, dict) and kept.get("finished") is True


def _called(finished: bool) -> str:
    return copy.TOUR_AGAIN if finished else copy.TOUR_OPEN
