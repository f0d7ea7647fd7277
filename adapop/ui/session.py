"""The state that all screens of a page share. It is above the tabs: in a hidden tab it would
stop."""

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import gradio as gr

from adapop.errors import ConfigError
from adapop.facts.fact import FactSet
from adapop.facts.world import sandbox_facts
from adapop.popularity.base import Scoring, given
from adapop.popularity.beta import BetaMap
from adapop.popularity.calibration import anchored, auto_anchors
from adapop.ui.wiring import QUIET, toast

OTHER_SET = (
    "Nothing was done: the server no longer had the set that this page shows. If it was saved, "
    "it has been restored. Look at Facts, then try again."
)

Anchors = tuple[tuple[float, float], tuple[float, float]]

MEGABYTES = 128  # of what the ids of all pages stand for; the least recently used is dropped


class Large:
    """A value that a page's state holds by an id."""


class Scorings(Large, tuple[Scoring, ...]):
    """The scores of a set by the proxies that were asked so far."""


class Recall(Large, dict[str, float]):
    """The original model's recall by fact id, [0, 1]."""


class KeptId(str):
    """The id of a value in a page's state."""


class Kept:
    """The large values of all pages by id, each once, however many pages show it. A set that was
    dropped is restored from what its page's browser stores: see `ui.saved`."""

    def __init__(self) -> None:
        self._values: OrderedDict[KeptId, tuple[Any, int]] = OrderedDict()  # with their bytes
        self._lock = threading.Lock()

    def id_of(self, value: FactSet | Scoring | Large) -> KeptId:
        """The id of a value, which is kept for it."""
        if isinstance(value, FactSet):
            of, size = f"{value.sha256}-{value.name}-{len(value.problems)}", value.memory
        else:
            text = repr(value).encode("utf-8", "replace")
            of, size = sha256(text).hexdigest(), 3 * len(text)
        name = KeptId(f"{type(value).__name__}-{of}")
        with self._lock:
            self._values[name] = value, size
            self._values.move_to_end(name)
            total = sum(size for _, size in self._values.values())
            while total > MEGABYTES * 1e6 and len(self._values) > 1:
                total -= self._values.popitem(last=False)[1][1]
        return name

    def value_of(self, name: KeptId) -> Any:
        """The value of an id; if it was dropped, an empty one, or None."""
        with self._lock:
            if name in self._values:
                self._values.move_to_end(name)
                return self._values[name][0]
        sandbox = sandbox_facts()
        if name.startswith(f"FactSet-{sandbox.sha256}"):
            return sandbox
        return next((one() for one in (Scorings, Recall) if name.startswith(one.__name__)), None)

    def stored(self, value: Any) -> Any:
        """A value for a page's state or outputs: ids in place of what is large."""
        if isinstance(value, (FactSet, Scoring, Large)):
            return self.id_of(value)
        if type(value) in (tuple, list):
            return type(value)(map(self.stored, value))
        return {key: self.stored(one) for key, one in value.items()} if _updates(value) else value

    def loaded(self, value: Any) -> Any:
        """An input's value: what is large in place of ids."""
        if isinstance(value, KeptId):
            return self.value_of(value)
        return tuple(map(self.loaded, value)) if type(value) is tuple else value


KEPT = Kept()


def _updates(value: object) -> bool:
    """Whether an event answers with updates by component."""
    return type(value) is dict and any(not isinstance(key, str) for key in value)


@dataclass(frozen=True)
class Session:
    """The state that screens share: of sets, scorings and recall the ids (see `Kept`), for which
    events get the values.

    page: for events at its opening. facts: the FactSet, None while a file is unusable. anchors:
    screen 2's two points (score, beta), None for those that suit the set; `curve_of` makes the map.
    scorings: `Scorings`. known: `Recall` of the original model.
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
        scorings = Scorings([given(facts.forget)] if facts else ())
        return {**self.changed(facts), self.scorings: scorings, self.known: Recall()}

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
        facts=gr.State(KEPT.id_of(facts)),
        # not the BetaMap itself: Gradio calls callable values
        anchors=gr.State(None),
        scorings=gr.State(KEPT.id_of(Scorings([given(facts.forget)]))),
        known=gr.State(KEPT.id_of(Recall())),
        at_work=gr.State(None),
        stored=browser_state({}, "session"),
        saved=gr.State(KEPT.id_of(facts)),
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
