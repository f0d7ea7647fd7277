"""What the tour's buttons do to the page.

The visitor's facts, anchors and run are set aside in the page's own state when the tour begins. The browser keeps none
of the tour's in their place (see `Session.touring`), so that a reload in the middle comes back to the visitor's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gradio as gr

from adapop.facts.catalog import load_facts
from adapop.facts.fact import FactSet
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import known_run, refusing
from adapop.ui.facts.lookup import asked_about
from adapop.ui.parts import html
from adapop.ui.probe.screen import answers_of, fact_choices, form_choices
from adapop.ui.tour.runs import TourRuns
from adapop.ui.tour.text import CARDS, POPULAR, RARE, RETRY, STOPS, Moment, Stop

if TYPE_CHECKING:
    from adapop.probes.ask import Asked
    from adapop.ui.tour.card import CardControls, Driven

TOUR_SET = "pair"


class Guide:
    """The updates of each button of the card."""

    def __init__(self, card: CardControls, driven: Driven, worker: Worker) -> None:
        self.card, self.driven, self.worker = card, driven, worker
        self.runs = TourRuns(worker)

    def opened(self, kept: object) -> dict:
        """The button's words, and an end to a tour that a reload cut short."""
        finished = _finished(kept)
        return {self.card.opener: gr.Button(_opener_label(finished)), self.card.kept: _remembered(kept, None)}

    def enter(self, place: int, tab: str, kept: object, *values) -> dict:
        """Sets the visitor's values aside and shows the first card."""
        if place >= 0:  # pressed twice: these values are the tour's
            return gr.skip()
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
            card.kept: _remembered(kept, run),
            session.touring: True,
            **session.with_facts(pair),
            **self._anchored((RARE_ANCHOR, POPULAR_ANCHOR)),
            self.driven.facts.source: gr.Radio(interactive=False, label=texts.TOUR_SOURCE),
            self.driven.facts.search: "",
            self.driven.pressure.what_if: "given",
        }

    def prepare(self) -> None:
        """Sees to it that the tour's runs are made."""
        with refusing():
            self.runs.start()

    def go(self, by: int, place: int, own: tuple, guess: str | None, run: str, kept: object) -> dict:
        """The card so many places on."""
        to = place + by
        if place < 0 or not 0 <= to < len(STOPS):
            return gr.skip()
        mine = self._mine(own, run)
        name = mine[self.driven.follower.run_id]
        remembered = {self.card.own: (own[0], *mine.values()), self.card.kept: _remembered(kept, name)}
        return remembered | self._at(to, guess, run, name)

    def forward(self, place: int, own: tuple, guess: str | None, run: str, kept: object, facts) -> dict:
        """The next card; after the last the visitor's own state."""
        if place < len(STOPS) - 1:
            return self.go(1, place, own, guess, run, kept)
        return self.leave(place, own, {"finished": True}, facts, run)

    def leave(self, place: int, own: tuple | None, kept: object, facts, run: str) -> dict:
        """Puts everything back, except for what the visitor has done in the meantime: an upload, a run of their own."""
        if place < 0:
            return gr.skip()
        card, session, probe = self.card, self.driven.session, self.driven.probe
        back, finished = self._mine(own, run), _finished(kept)
        name, fact, form = back[self.driven.follower.run_id], back[probe.fact], back[probe.form] or ""
        back[probe.form] = form_choices(self.worker, name, fact, form, back[probe.filled])
        back[probe.fact] = fact_choices(self.worker, name, back[probe.group], fact)
        anchored = self._anchored(back[session.anchors])
        if not _is_tours(facts):
            for state in (*session.of_the_set, self.driven.facts.notes):
                del back[state]
        return back | {
            **anchored,
            card.panel: gr.Row(visible=False),
            card.opener: gr.Button(_opener_label(finished), interactive=True),
            card.text: {},
            card.place: -1,
            card.own: None,
            card.kept: _remembered(kept, None),
            card.timer: gr.Timer(active=False),
            self.driven.follower.timer: gr.Timer(active=True),
            session.touring: False,
            self.driven.facts.source: gr.Radio(interactive=True, label=texts.SOURCE_LABEL),
            self.driven.tabs: gr.Tabs(selected=own[0]),
            card.tab: own[0],  # known at once: the page tells it only after it has turned there
        }

    def tick(self, place: int, guess: str | None, confidence: float, shown: object, asked: bool) -> dict:
        """What the tour's runs have brought since."""
        if place < 0:
            return {self.card.timer: gr.Timer(active=False)}
        stop, told = STOPS[place], self._told(place, guess, confidence)
        changes = {} if told == shown else {self.card.text: told}
        if stop.ask and not asked and self._answered(stop):
            changes |= self._asking(stop, self.runs.run("adapop").id)
        if not changes and self.runs.story().complete and self.runs.asked():
            return {self.card.timer: gr.Timer(active=False)}
        return changes or gr.skip()  # one round more: this one may have been asked from the card before

    def dragged(self, place: int, guess: str | None, confidence: float):
        """The card's words for another confidence or guess."""
        return gr.skip() if place < 0 else self._told(place, guess, confidence)

    def _mine(self, own: tuple, run: str) -> dict:
        """The visitor's values by component, with the run that they have started in the meantime. run: on the page."""
        mine, followed = dict(zip(self.driven.values, own[1:])), known_run(self.worker, run)
        if followed and not followed.shared:
            mine[self.driven.follower.run_id] = run
        return mine

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
            card.timer: gr.Timer(active=True),
            self.driven.tabs: gr.Tabs(selected=stop.tab),
        }
        if stop.confidence is not None:
            changes[self.driven.pressure.confidence] = stop.confidence
        wanted = own
        if stop.run:
            if self.runs.run("adapop") is None or self.runs.story().trouble:
                self.prepare()
            wanted = self.runs.run("adapop").id
        if wanted != run:
            changes |= {follower.run_id: wanted, follower.timer: gr.Timer(active=True)}
        if stop.ask:
            changes |= self._asking(stop, wanted)
        return changes | {card.text: self._told(place, guess, stop.confidence or 1.0)}

    def _asking(self, stop: Stop, run: str) -> dict:
        """The Probe screen's pickers on the popular fact, and both answers if they are there."""
        fact, answered = self.runs.pair.popular, self._answered(stop)
        prompt = answered.prompt if answered else fact.question
        filled = run, fact.id, prompt
        values = (
            "forget",
            fact_choices(self.worker, run, "forget", fact.id),
            form_choices(self.worker, run, fact.id, prompt, filled),
            prompt,
            fact.answer,
            answers_of(answered) if answered else html.values({"empty": texts.TOUR_ASKING}),
            filled,
        )
        return {**dict(zip(self.driven.question, values)), self.card.asked: answered is not None}

    def _answered(self, stop: Stop) -> Asked | None:
        """What both models said to the stop's question, None so far. Which rewording it is, only the story knows."""
        found, told = self.runs.asked(), self.runs.story().reworded
        if stop.ask == "direct":
            return found[0] if found else None
        return next((each for each in found if told and each.prompt == told.question), None)

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
            "awaited": (f"{story.trouble} {RETRY}" if story.trouble else story.awaited) if told.awaiting else "",
            "percent": story.percent,
        }
        return html.values(content)


def _finished(kept: object) -> bool:
    return isinstance(kept, dict) and kept.get("finished") is True


def _remembered(kept: object, run: str | None) -> dict:
    """What the browser is to keep of the tour. run: the visitor's own, None outside the tour."""
    return {"finished": _finished(kept), "run": run}


def _is_tours(facts: FactSet | None) -> bool:
    """Whether these are the tour's facts, as they were or changed by hand: not a set that the visitor uploaded."""
    pair = load_facts(TOUR_SET)
    return facts is None or (facts.retain == pair.retain and asked_about(pair, facts))


def _opener_label(finished: bool) -> str:
    return texts.TOUR_AGAIN if finished else texts.TOUR_OPEN
