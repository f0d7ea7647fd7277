"""A check before a run, on the model itself: which facts it knows, and the run's duration."""

from collections.abc import Callable

import gradio as gr

from adapop.config.run import RunConfig
from adapop.facts.fact import FactSet
from adapop.remark import sentences
from adapop.service.worker import Worker
from adapop.ui.access import refused, refusing
from adapop.ui.parts import html
from adapop.ui.session import Session, check_shown
from adapop.ui.wiring import QUIET, error_of, followed, offload


def build(
    worker: Worker,
    session: Session,
    inputs: list,
    configured: Callable[..., RunConfig],
    name: str = "check",
) -> None:
    """Lays out button and results. configured: called with the facts and the values of inputs.
    name: element id."""
    ask = gr.Button("Check", min_width=160, size="sm", elem_id=name)
    words = html.lines(f"{name}-words")

    def begun(identity: str, facts: FactSet | None, *values):
        with refusing():
            facts = check_shown(facts, identity)
            return worker.check(configured(facts, *values), facts)

    async def looked(identity: str, facts: FactSet | None, *values):
        future, progress = await offload(worker.usage, begun, identity, facts, *values)
        async for line in followed(future, progress):
            yield html.listed([line])
        if error := error_of(future):
            raise refused(error)
        checked = future.result()
        kind = "warn" if checked.waste or checked.preflight.problems else "calm"
        yield html.listed([*sentences(checked.facts.notes), *checked.lines_for("page")], kind)

    given = [session.shown_hash, session.facts, *inputs]
    session.look_whether_lost(question := ask.click(looked, given, words, **QUIET))
    session.facts.change(lambda: html.listed([]), None, words, cancels=[question], **QUIET)
