"""The state that the screens of a page share: components above the tabs, for in a hidden tab they
do not work."""

import time
from dataclasses import dataclass

import gradio as gr

from adapop.errors import ConfigError
from adapop.facts.fact import FactSet
from adapop.facts.world import sandbox_facts
from adapop.popularity.base import given
from adapop.popularity.beta import BetaMap
from adapop.popularity.calibration import anchored, auto_anchors
from adapop.ui import texts
from adapop.ui.wiring import QUIET, TOAST

Anchors = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Session:
    """The state that screens share.

    page: for what happens when it opens. facts: the FactSet, None while a file is unusable.
    anchors: screen 2's two points (score, beta), None for those that suit the set; `curve_of` makes
    the map. scorings: the proxies asked so far, as a tuple. known: the original model's recall by
    fact id. at_work: the `Progress` of the look-up or download under way, or None. stored: what the
    browser remembers, {source, set, anchors}; see `restored`. saved: the FactSet that `stored`
    stands for. restored: (source, FactSet) as a reload brought it back, or None. shown_hash: of the
    set that the page shows, kept by the page itself: a server that started again, or forgot the
    page, holds another. It is sent with every set, in the same answer: asked for later, it would be
    the other set's. lost: changes when that was noticed.
    """

    page: gr.Blocks
    facts: gr.State
    anchors: gr.State
    scorings: gr.State
    known: gr.State
    at_work: gr.State
    stored: gr.BrowserState
    saved: gr.State
    restored: gr.State
    shown_hash: gr.Textbox
    lost: gr.State

    @property
    def of_the_set(self) -> list[gr.Component]:
        """What `with_facts` changes."""
        return [self.facts, self.shown_hash, self.scorings, self.known]

    def with_facts(self, facts: FactSet | None) -> dict:
        """Updates that put another set in the place of the page's, with the scores that it came
        with."""
        scorings = (given(facts.forget),) if facts else ()
        return {**self.changed(facts), self.scorings: scorings, self.known: {}}

    def look_whether_lost(self, event: gr.events.Dependency) -> None:
        """Puts the page's set back after an event that was refused because the server holds another
        one."""
        event.failure(time.time, None, self.lost, **QUIET)

    def changed(self, facts: FactSet | None) -> dict:
        """Updates for the set after a change of its scores or its members."""
        return {self.facts: facts, self.shown_hash: identity(facts)}


def browser_state(value: object, name: str) -> gr.BrowserState:
    """What the browser keeps of a page under this name. value: before there is any. Gradio's key to
    it is no secret, as each page brings it along; left out, it would be another after each
    start."""
    return gr.BrowserState(value, storage_key=f"adapop-{name}", secret="adapop")


def new_session(page: gr.Blocks) -> Session:
    """The components, laid out where they are called."""
    facts = sandbox_facts()
    return Session(
        page=page,
        facts=gr.State(facts),
        # not the BetaMap itself: it can be called, and gradio calls what it can
        anchors=gr.State(None),
        scorings=gr.State((given(facts.forget),)),
        known=gr.State({}),
        at_work=gr.State(None),
        stored=browser_state({}, "session"),
        saved=gr.State(facts),
        restored=gr.State(None),
        shown_hash=gr.Textbox(identity(facts), visible=False, elem_id="shown-set"),
        lost=gr.State(0.0),
    )


def identity(facts: FactSet | None) -> str:
    """What tells a set from all others, empty without one."""
    return facts.sha256 if facts else ""


def check_shown(facts: FactSet | None, shown_identity: object) -> FactSet:
    """The server's set of a page. Raises gr.Error if there is none, or the page shows another."""
    if identity(facts) != shown_identity:
        raise gr.Error(texts.OTHER_SET, duration=TOAST)
    if facts is None:
        raise gr.Error(
            "There are no usable facts. Mend the upload on tab 1, or pick another set.",
            duration=TOAST,
        )
    return facts


def curve_of(facts: FactSet | None, anchors: Anchors | None) -> BetaMap:
    """The map through the page's anchors, or through those that suit the set."""
    if anchors:
        return anchored(*anchors)
    return auto_anchors(facts).beta if facts else BetaMap()


def anchors_of(stored: object) -> Anchors | None:
    """The anchors that a browser kept, None if it kept none that fix a curve. It may hold
    anything."""
    pairs = stored.get("anchors") if isinstance(stored, dict) else None
    try:
        (rare, rare_beta), (popular, popular_beta) = pairs
        anchors = (float(rare), float(rare_beta)), (float(popular), float(popular_beta))
        anchored(*anchors)
    except (TypeError, ValueError, ConfigError):
        return None
    return anchors
