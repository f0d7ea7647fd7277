"""Does the model know the facts at all? One cannot see forgetting of what was never known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import gradio as gr

from adapop.errors import AdaPopError
from adapop.facts import FactSet
from adapop.probes.verdict import KNOWN_FROM
from adapop.ui import cards, copy
from adapop.ui.session import Session
from adapop.worker import Worker

POLL_SECONDS = 0.4


def build(worker: Worker, session: Session) -> None:
    """Lays out the question to the original model, and what to do with facts it cannot answer."""
    with gr.Row():
        ask = gr.Button("Does the model know them?", min_width=160, elem_id="known")
        drop = gr.Button("Leave out what it does not know", min_width=160, interactive=False, elem_id="drop-unknown")
    said = gr.HTML(cards.values({"kind": "hidden", "lines": []}), html_template=cards.LINES, elem_id="known-words")
    quiet = {"api_visibility": "private", "show_progress": "hidden"}

    def asked(facts: FactSet | None):
        yield from _asked(worker, facts)

    ask.click(asked, session.facts, [said, session.known, drop], **quiet)
    drop.click(_dropped, [session.facts, session.known], session.facts, **quiet)
    session.facts.change(_said_of, [session.facts, session.known], [said, drop], **quiet)


def _asked(worker: Worker, facts: FactSet | None):
    """Asks the sandbox model every trained question, when its turn comes, and tells how many it can answer."""
    if facts is None:
        raise gr.Error("There are no facts to ask about. Pick a set, or mend the upload.", duration=None)
    future, progress = worker.recall(facts.forget)
    try:
        while not future.done():
            text = progress.text or "Waiting for the model …"
            yield cards.values({"kind": "calm", "lines": [text]}), gr.skip(), gr.Button(interactive=False)
            progress.wait(POLL_SECONDS)
    finally:
        progress.stop()
    try:
        recall = future.result()
    except AdaPopError as error:
        yield cards.values({"kind": "bad", "lines": [str(error)]}), gr.skip(), gr.skip()
        return
    said, button = _said_of(facts, recall)
    yield said, recall, button


def _said_of(facts: FactSet | None, recall: Mapping[str, float]):
    """The count in words, and the button that drops the rest."""
    asked = [fact for fact in facts.forget if fact.id in recall] if facts else []
    if not asked:
        return cards.values({"kind": "hidden", "lines": []}), gr.Button(interactive=False)
    knows = sum(recall[fact.id] >= KNOWN_FROM for fact in asked)
    lines = [f"Asked as trained, the original model answers {knows:,} of {len(asked):,} facts.", copy.KNOWN_ABOUT]
    kind = "calm" if knows == len(asked) else "warn"
    return cards.values({"kind": kind, "lines": lines}), gr.Button(interactive=0 < knows < len(asked))


def _dropped(facts: FactSet, recall: Mapping[str, float]) -> FactSet:
    kept = tuple(fact for fact in facts.forget if recall.get(fact.id, 0.0) >= KNOWN_FROM)
    left = len(facts.forget) - len(kept)
    note = f"{left:,} facts that the original model cannot answer were left out."
    return replace(facts, forget=kept, notes=(*facts.notes, note))
