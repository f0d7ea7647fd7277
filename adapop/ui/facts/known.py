"""Does the model know the facts at all? One cannot see forgetting of what was never known."""

from collections.abc import Mapping

import gradio as gr

from adapop.facts.fact import FactSet
from adapop.probes.verdict import KNOWN_FROM
from adapop.runs.preflight import without_unknown
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import refused
from adapop.ui.parts import html
from adapop.ui.session import Session
from adapop.ui.wiring import IN_TURN, QUIET, failure_of, followed


def build(worker: Worker, session: Session) -> None:
    """Lays out the question to the sandbox model, and what to do with facts it cannot answer."""
    with gr.Row():
        ask = gr.Button("Does the model know them?", min_width=160, elem_id="known")
        drop = gr.Button("Leave out what it does not know", min_width=160, interactive=False, elem_id="drop-unknown")
    said = gr.HTML(html.listed([], "hidden"), html_template=html.LINES, elem_id="known-words")
    found = gr.State({})

    async def asked(facts: FactSet | None):
        if facts is None:
            raise gr.Error("There are no facts to ask about. Pick a set, or mend the upload.", duration=None)
        future, progress = worker.recall(facts.forget)
        async for line in followed(future, progress):
            yield {said: html.listed([line]), found: {}}
        if error := failure_of(future):
            raise refused(error)
        recall = future.result()
        yield {found: {(fact.id, fact.question): recall[fact.id] for fact in facts.forget}}

    ended = ask.click(asked, session.facts, [said, found], **QUIET)
    ended.then(_recall_now, [session.facts, found], session.known, **IN_TURN)

    def dropped(facts: FactSet, recall: Mapping[str, float]) -> dict:
        return session.changed(without_unknown(facts, recall))

    drop.click(dropped, [session.facts, session.known], [session.facts, session.shown], **IN_TURN)
    gr.on([session.facts.change, session.known.change], _said_of, [session.facts, session.known], [said, drop], **QUIET)


def _recall_now(facts: FactSet | None, found: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Recall by id of the facts that are in the set now: it may be another one than was asked about."""
    members = facts.forget if facts else ()
    return {fact.id: found[fact.id, fact.question] for fact in members if (fact.id, fact.question) in found}


def _said_of(facts: FactSet | None, recall: Mapping[str, float]):
    """How many facts the model knows, in words, and the button that drops the others."""
    asked = [fact for fact in facts.forget if fact.id in recall] if facts else []
    if not asked:
        return html.listed([], "hidden"), gr.Button(interactive=False)
    knows = sum(recall[fact.id] >= KNOWN_FROM for fact in asked)
    lines = [f"Asked as trained, the original model answers {knows:,} of {len(asked):,} facts.", texts.KNOWN_ABOUT]
    kind = "calm" if knows == len(asked) else "warn"
    return html.listed(lines, kind), gr.Button(interactive=0 < knows < len(asked))
