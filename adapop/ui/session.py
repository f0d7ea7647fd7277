"""What one page holds: components above the tabs, because inside a hidden tab they do not live."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from adapop.beta import POPULAR_ANCHOR, RARE_ANCHOR
from adapop.popularity.base import given
from adapop.sandbox import sandbox_facts


@dataclass(frozen=True)
class Session:
    """The state that screens share.

    facts: the FactSet, None while a file is unusable. anchors: screen 2's two points (score, beta), from which
    `calibration.anchored` makes the map. scorings: a tuple of `Scoring`, the proxies asked so far. known: the original
    model's recall by fact id. task: the look-up at work, or None.
    """

    facts: gr.State
    anchors: gr.State
    scorings: gr.State
    known: gr.State
    task: gr.State


def new_session() -> Session:
    """The components, laid out where they are called."""
    facts = sandbox_facts()
    return Session(
        facts=gr.State(facts),
        # not the BetaMap itself: it can be called, and gradio calls what it can
        anchors=gr.State((RARE_ANCHOR, POPULAR_ANCHOR)),
        scorings=gr.State((given(facts.forget),)),
        known=gr.State({}),
        task=gr.State(None),
    )
