"""The controls that the tour has, and those of the screens that it moves."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from adapop.ui.facts.screen import FactsScreen
from adapop.ui.pressure import PressureScreen
from adapop.ui.probe.screen import ProbeScreen
from adapop.ui.run.screen import Follower
from adapop.ui.session import Session


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
        states = [session.facts, session.scorings, session.known, session.anchors, self.follower.run_id]
        inputs = [self.facts.search, self.facts.notes, self.pressure.what_if, self.pressure.confidence]
        return [*states, *inputs, *self.question]

    @property
    def question(self) -> list[gr.Component]:
        """The Probe screen's pickers, what they filled in, and both answers."""
        probe = self.probe
        return [probe.group, probe.fact, probe.form, probe.prompt, probe.gold, probe.answers, probe.filled]
