"""Restores a page after a reload: the set with its scores, its source, and the anchors.

The browser stores the name of a shipped set. For any other set, or one with edited scores, it
stores the unguessable name under which `saved_sets` keeps it beside the runs.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import gradio as gr

from adapop.facts.catalog import ENTRIES, load_facts
from adapop.facts.fact import SANDBOX, FactSet
from adapop.popularity.base import given
from adapop.service.saved_sets import delete_set, load_set, set_exists
from adapop.service.worker import Worker
from adapop.ui.access import refusing
from adapop.ui.parts import html
from adapop.ui.session import Anchors, Scorings, Session, anchors_of, identity
from adapop.ui.wiring import IN_TURN, QUIET

SET_EXPIRED = (
    "The set that you used here last was deleted because it was old. Upload or pick it again."
)

OWN = "own"


@dataclass(frozen=True)
class LeftPage:
    """A page before its reload. source, facts: None for the unedited sandbox. expired: gone."""

    anchors: Anchors | None
    source: str | None = None
    facts: FactSet | None = None
    expired: bool = False

    def updates(self, session: Session, source: gr.Radio, notes: gr.HTML) -> dict:
        """Updates that restore the page, or say that its set is gone, which is then forgotten."""
        changes = {session.anchors: self.anchors}
        if self.expired:
            changes[notes] = html.listed([SET_EXPIRED], "warn")
            changes[session.stored] = {"source": SANDBOX, "set": None, "anchors": self.anchors}
        if self.facts is None:
            return changes
        changes |= session.changed(self.facts) | {source: self.source, session.saved: self.facts}
        changes[session.scorings] = Scorings([given(self.facts.forget)])
        return changes | {session.restored: (self.source, self.facts)}


def build(worker: Worker, session: Session, source: gr.Radio, notes: gr.HTML) -> None:
    """Wires it up: stores every change of facts or anchors, and restores them when a page opens."""

    def keep(shown_identity: str, facts: FactSet | None, *values):
        # a server that forgot the page holds a set that nobody chose
        is_current = facts is not None and identity(facts) == shown_identity
        return to_keep(worker, facts, *values) if is_current else gr.skip()

    def opened(remembered: object):
        left = restored(worker.root, remembered)
        return gr.skip() if left is None else left.updates(session, source, notes)

    changed = [session.facts.change, session.anchors.change]
    inputs = [session.shown_hash, session.facts, session.anchors, source]
    inputs += [session.saved, session.stored]
    gr.on(changed, keep, inputs, [session.stored, session.saved], **QUIET)

    def put_back(shown_identity: str, facts: FactSet | None, remembered: object):
        if identity(facts) == shown_identity:
            return gr.skip()
        left = restored(worker.root, remembered) or LeftPage(None, expired=True)
        if left.facts is None and not left.expired:  # the sandbox, which is not stored
            left = replace(left, source=SANDBOX, facts=load_facts(SANDBOX))
        gone = session.with_facts(None) if left.expired else {}
        return left.updates(session, source, notes) | gone

    again = [session.anchors, session.saved, session.restored]
    back = [source, notes, session.facts, session.shown_hash, session.scorings, *again]
    session.page.load(opened, session.stored, [*back, session.stored], **IN_TURN)
    lost = [session.shown_hash, session.facts, session.stored]
    session.lost.change(put_back, lost, [*back, session.stored, session.known], **IN_TURN)


def to_keep(
    worker: Worker, facts: FactSet, anchors, source: str, saved: FactSet | None, remembered: object
) -> tuple:
    """The value for the browser to store, and the set it stands for. A set is written only if
    changed or gone: a save deletes the browser's previous set, perhaps that of another tab."""
    name = remembered.get("set") if isinstance(remembered, dict) else None
    if facts != saved or not set_exists(name, worker.root):
        delete_set(name, worker.root)
        shipped = source in ENTRIES and not ENTRIES[source].online
        with refusing():
            name = None if shipped and facts == load_facts(source) else worker.save_set(facts)
    return {"source": source, "set": name, "anchors": anchors}, facts


def restored(root: Path, remembered: object) -> LeftPage | None:
    """The page before its reload, from the browser's value; None if that is unusable."""
    source = remembered.get("source") if isinstance(remembered, dict) else None
    if source not in (*ENTRIES, OWN):
        return None
    anchors = anchors_of(remembered)
    if remembered.get("set") is not None or source == OWN or ENTRIES[source].online:
        facts = load_set(remembered.get("set"), root)
        return LeftPage(anchors, source, facts, expired=facts is None)
    return LeftPage(anchors) if source == SANDBOX else LeftPage(anchors, source, load_facts(source))
