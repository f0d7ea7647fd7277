"""A look before a run, at the model itself: what it knows of the page's facts, and how long the run would take."""

from collections.abc import Callable

import gradio as gr

from adapop.config.run import RunConfig
from adapop.facts.fact import FactSet
from adapop.service.worker import Worker
from adapop.ui.access import refused, refusing
from adapop.ui.parts import html
from adapop.ui.session import Session
from adapop.ui.wiring import QUIET, failure_of, followed


def build(
    worker: Worker, session: Session, inputs: list, configured: Callable[..., RunConfig], name: str = "check"
) -> None:
    """Lays out the button and what it finds. inputs: what `configured` takes behind the facts. name: on the page."""
    ask = gr.Button("Check", min_width=160, size="sm", elem_id=name)
    said = gr.HTML(html.listed([], "hidden"), html_template=html.LINES, elem_id=f"{name}-words")

    async def looked(facts: FactSet | None, *values):
        if facts is None:
            raise gr.Error("There are no facts to look at. Pick a set, or mend the upload.", duration=None)
        with refusing():
            future, progress = worker.check(configured(facts, *values), facts)
        async for line in followed(future, progress):
            yield html.listed([line])
        if error := failure_of(future):
            raise refused(error)
        found = future.result()
        kind = "warn" if found.waste or found.looked.problems else "calm"
        yield html.listed([*found.facts.notes, *found.lines], kind)

    ask.click(looked, [session.facts, *inputs], said, **QUIET)
    gr.on([session.facts.change], lambda: html.listed([], "hidden"), None, said, **QUIET)
