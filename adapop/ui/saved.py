"""What a reload brings back: the set with its scores, where it came from, and the anchors.

The browser keeps the name of a set of our own by that name, and of any other, or one whose scores were edited, the
unguessable name under which `sets` keeps it beside the runs.
"""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from adapop.facts.catalog import ENTRIES, load_facts
from adapop.facts.fact import SANDBOX, FactSet
from adapop.popularity.base import given
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR
from adapop.service.saved_sets import delete_set, load_set, save_set, set_exists
from adapop.ui import texts
from adapop.ui.parts import html
from adapop.ui.session import Session, anchors_of
from adapop.ui.wiring import IN_TURN

OWN = "own"


def build(root: Path, session: Session, source: gr.Radio, notes: gr.HTML) -> None:
    """Wires it: every change of facts or anchors is kept, and what was kept comes back when the page opens."""

    def keep(lent: bool, *values):
        return (gr.skip(), gr.skip()) if lent else kept(root, *values)

    def opened(remembered: object):
        return restored(root, remembered)

    quiet = {"api_visibility": "private", "show_progress": "hidden"}
    gr.on(
        [session.facts.change, session.anchors.change, session.lent.change],
        keep,
        [session.lent, session.facts, session.anchors, source, session.saved, session.kept],
        [session.kept, session.saved],
        **quiet,
    )
    back = [source, notes, session.facts, session.scorings, session.anchors, session.saved, session.restored]
    session.page.load(opened, session.kept, [*back, session.kept], **quiet, **IN_TURN)


def kept(root: Path, facts: FactSet | None, anchors, source: str, saved: FactSet | None, remembered: object):
    """What the browser is to keep, and the set that this stands for. A set is written only when it changed, or when it
    is gone: another tab of the browser deletes the set that it replaces, and it may be this one's as well."""
    if facts is None:
        return gr.skip(), gr.skip()
    name = remembered.get("set") if isinstance(remembered, dict) else None
    if facts != saved or not set_exists(name, root):
        delete_set(name, root)
        name = None if _is_ours(source, facts) else save_set(facts, root)
    return {"source": source, "set": name, "anchors": anchors}, facts


def restored(root: Path, remembered: object):
    """The page as it was left, as values of what `build` names. What the browser kept may be anything; the name of a
    set that is no more is forgotten."""
    nothing = [gr.skip()] * 8
    source = remembered.get("source") if isinstance(remembered, dict) else None
    if source not in (*ENTRIES, OWN):
        return nothing
    anchors = anchors_of(remembered) or (RARE_ANCHOR, POPULAR_ANCHOR)
    if remembered.get("set") is not None or source == OWN or ENTRIES[source].online:
        facts = load_set(remembered.get("set"), root)
        if facts is None:
            said = html.listed([texts.SET_EXPIRED], "warn")
            left = {"source": SANDBOX, "set": None, "anchors": anchors}
            return gr.skip(), said, gr.skip(), gr.skip(), anchors, gr.skip(), gr.skip(), left
    elif source == SANDBOX:  # as every page begins
        return [*nothing[:4], anchors, *nothing[5:]]
    else:
        facts = load_facts(source)
    return source, gr.skip(), facts, (given(facts.forget),), anchors, facts, (source, facts), gr.skip()


def _is_ours(source: str, facts: FactSet) -> bool:
    """Whether this is a set of that name as we ship it."""
    return source in ENTRIES and not ENTRIES[source].online and facts == load_facts(source)
