"""The state that all screens of a page share. It is above the tabs: in a hidden tab it would
stop."""

import time
from dataclasses import dataclass

import gradio as gr

from adapop.errors import ConfigError
from adapop.facts.fact import FactSet
from adapop.facts.world import sandbox_facts
from adapop.popularity.base import given
from adapop.popularity.beta import BetaMap
from adapop.popularity.calibration import anchored, auto_anchors
from adapop.ui.events import SETS
from adapop.ui.wiring import QUIET, toast

OTHER_SET = (
    "Nothing was done: the server no longer had the set that this page shows. If it was kept, "
    "it is back now. Look at Facts, then try again."
)

Anchors = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Session:
    """The state that screens share.

    page: for events at its opening. facts: the set's id, for which events get the FactSet (see
    `ui.events`), None while a file is unusable. anchors:
    screen 2's two points (score, beta), None for those that suit the set; `curve_of` makes the map.
    scorings: the proxies asked so far, as a tuple. known: the original model's recall by fact id.
    at_work: the `Progress` of an active look-up or download, or None. stored: by the browser,
    {source, set, anchors}; see `restored`. saved: the FactSet that `stored` stands for. restored:
    (source, FactSet) after a reload, or None. shown_hash: hash of the set that the page shows. The
    page holds it, because after a restart, or once it has forgotten the page, the server holds
    another set. It is sent in the same answer as the set: sent later, it could be another set's.
    lost: changes when the two sets were found to differ.
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
        """The components that `with_facts` updates."""
        return [self.facts, self.shown_hash, self.scorings, self.known]

    def with_facts(self, facts: FactSet | None) -> dict:
        """Updates that replace the page's set by another, with the scores from its file."""
        scorings = (given(facts.forget),) if facts else ()
        return {**self.changed(facts), self.scorings: scorings, self.known: {}}

    def look_whether_lost(self, event) -> None:
        """After a failed event, restores the page's set if the server holds another. event: what
        its listener returned."""
        event.failure(lambda: time.time(), None, self.lost, **QUIET)

    def changed(self, facts: FactSet | None) -> dict:
        """Updates for the set after a change of its scores or facts."""
        return {self.facts: facts, self.shown_hash: identity(facts)}


def browser_state(value: object, name: str) -> gr.BrowserState:
    """A value that the browser stores under this name. value: the default. The encryption key is
    fixed and public, since every page contains it; Gradio's default key changes at each start."""
    return gr.BrowserState(value, storage_key=f"adapop-{name}", secret="adapop")


def new_session(page: gr.Blocks) -> Session:
    """Lays out the components."""
    facts = sandbox_facts()
    return Session(
        page=page,
        facts=gr.State(SETS.id_of(facts)),
        # not the BetaMap itself: Gradio calls callable values
        anchors=gr.State(None),
        scorings=gr.State((given(facts.forget),)),
        known=gr.State({}),
        at_work=gr.State(None),
        stored=browser_state({}, "session"),
        saved=gr.State(SETS.id_of(facts)),
        restored=gr.State(None),
        shown_hash=gr.Textbox(identity(facts), visible=False, elem_id="shown-set"),
        lost=gr.State(0.0),
    )


def identity(facts: FactSet | None) -> str:
    """A hash that identifies a set, empty without one."""
    return facts.sha256 if facts else ""


def check_shown(facts: FactSet | None, shown_identity: object) -> FactSet:
    """The server's set for a page. Raises gr.Error: there is none, or the page shows another."""
    if identity(facts) != shown_identity:
        raise toast(OTHER_SET)
    if facts is None:
        raise toast("There are no usable facts. Correct the upload on Facts, or pick another set.")
    return facts


def curve_of(facts: FactSet | None, anchors: Anchors | None) -> BetaMap:
    """The map from score to β through the page's anchors, or through those that suit the set."""
    if anchors:
        return anchored(*anchors)
    return auto_anchors(facts).beta if facts else BetaMap()


def anchors_of(stored: object) -> Anchors | None:
    """The anchors that a browser stored, None unless they define a curve. Validates the value."""
    pairs = stored.get("anchors") if isinstance(stored, dict) else None
    try:
        (rare, rare_beta), (popular, popular_beta) = pairs
        anchors = (float(rare), float(rare_beta)), (float(popular), float(popular_beta))
        anchored(*anchors)
    except (TypeError, ValueError, OverflowError, ConfigError):
        return None
    return anchors
