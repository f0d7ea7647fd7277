"""Adds rewordings to a set that has none: from templates, or written by a language model."""

import os
from dataclasses import dataclass, replace
from functools import partial

import gradio as gr

from adapop.errors import Stopped, number_of
from adapop.facts.fact import FactSet
from adapop.online.cache import Cache
from adapop.popularity.judge import judge_from_environment
from adapop.probes.prompts import NotApplicable
from adapop.probes.wording import from_templates, written
from adapop.progress import Progress, started
from adapop.service.worker import Worker
from adapop.ui.facts.lookup import asked_about
from adapop.ui.parts import html
from adapop.ui.session import Session, check_shown
from adapop.ui.wiring import IN_TURN, QUIET, error_of, followed, offload

NO_REWORDINGS = (
    "**These facts have no rewordings** (column `paraphrases`). A run can then ask only the "
    "questions that it trained on: it reports a gap *as trained*, and cannot tell whether other "
    "wordings bring a fact back."
)

MODEL = "ADAPOP_JUDGE_MODEL"  # the language model that may be asked, see `popularity.judge`
WITHOUT_MODEL = (
    "A language model can write rewordings too: name one in `ADAPOP_JUDGE_MODEL`, or run "
    "`python -m adapop reword`."
)


@dataclass(frozen=True)
class Rewording:
    """The components. box: around all, hidden while any fact has a rewording. templates, model: the
    buttons of the two sources. status: what came of it. result: the set that a language model was
    asked about and what it wrote, see `apply`; None if there is nothing to apply."""

    session: Session
    box: gr.Column
    templates: gr.Button
    model: gr.Button
    status: gr.HTML
    result: gr.State

    def offered(self, facts: FactSet | None) -> dict:
        """Updates for a set: the buttons, where it has no rewordings."""
        if facts is None or reworded(facts):
            return {self.box: gr.Column(visible=False), self.templates: gr.Button(visible=False)}
        made = sum(bool(from_templates(fact)) for fact in facts.forget)
        count = f"{made:,} of {number_of(len(facts.forget), 'fact')}"
        button = gr.Button(f"Add rewordings from templates ({count})", visible=made > 0)
        return {self.box: gr.Column(visible=True), self.templates: button}

    def from_templates(self, identity: str, facts: FactSet | None) -> dict:
        """Updates that give each fact the rewordings that its templates make."""
        facts = check_shown(facts, identity)
        made = {fact.id: from_templates(fact) for fact in facts.forget}
        return self._with(facts, made)

    async def written(self, worker: Worker, identity: str, facts: FactSet | None):
        """Asks the language model for rewordings; yields the progress, then the result."""
        facts = await offload(worker.usage, check_shown, facts, identity)
        made: dict[str, tuple[str, ...]] = {}

        def work(progress: Progress) -> None:
            judge = judge_from_environment(progress, Cache())
            for one in written(facts.forget, judge.ask, judge.name, Cache()):
                if not isinstance(one, NotApplicable):
                    made[one.fact_id] = (*made.get(one.fact_id, ()), one.text)

        future, progress = started(work)
        async for line in followed(future, progress, "Asking the language model …"):
            lines = html.listed([line, f"Facts with rewordings: {len(made):,}."])
            yield {self.status: lines, self.result: None}
        error = error_of(future)
        if error:
            kind = "warn" if isinstance(error, Stopped) else "bad"
            yield {self.status: html.listed([str(error)], kind)}
        if made:
            yield {self.result: (facts, made)}

    def apply(self, facts: FactSet | None, result: tuple[FactSet, dict] | None) -> dict:
        """Updates that give the set the rewordings that were written, unless it has changed."""
        if result is None:
            return gr.skip()
        then, made = result
        if facts is None or not asked_about(then, facts):
            return {self.result: None}
        return {**self._with(facts, made), self.result: None}

    def _with(self, facts: FactSet, made: dict[str, tuple[str, ...]]) -> dict:
        rows = tuple(replace(one, paraphrases=made.get(one.id, ())) for one in facts.forget)
        count = sum(bool(one.paraphrases) for one in rows)
        lines = [f"{count:,} of {number_of(len(rows), 'fact')} now have rewordings."]
        changed = self.session.changed(replace(facts, forget=rows))
        return {self.status: html.listed(lines), **changed}


def reworded(facts: FactSet) -> bool:
    """Whether any fact of the forget set has a rewording, so that a run can measure its gap."""
    return any(fact.paraphrases for fact in facts.forget)


def can_reword(facts: FactSet) -> bool:
    """Whether this screen has a button that adds rewordings to the set."""
    return bool(os.environ.get(MODEL)) or any(map(from_templates, facts.forget))


def build(worker: Worker, session: Session) -> None:
    """Lays out and wires the two ways to add rewordings, hidden for a set that has some."""
    model_name = os.environ.get(MODEL)
    with gr.Column(visible=False, elem_id="rewordings") as box:
        gr.Markdown(NO_REWORDINGS)
        templates = gr.Button("", size="sm", visible=False, elem_id="reword-templates")
        words, visible = f"Have {model_name} write rewordings", bool(model_name)
        model = gr.Button(words, size="sm", visible=visible, elem_id="reword-model")
        if not model_name:
            gr.Markdown(WITHOUT_MODEL)
    status = html.lines("reword-words")
    result = gr.State(None)
    parts = Rewording(session, box, templates, model, status, result)
    session.facts.change(parts.offered, session.facts, [box, templates], **QUIET)
    now = [session.shown_hash, session.facts]
    changed = [status, session.facts, session.shown_hash]
    added = templates.click(parts.from_templates, now, changed, **IN_TURN)
    asking = model.click(partial(parts.written, worker), now, [status, result], **QUIET)
    asking.then(parts.apply, [session.facts, result], [*changed, result], **IN_TURN)
    for event in (added, asking):
        session.look_whether_lost(event)
