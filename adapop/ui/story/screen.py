"""The Story's tab: one component that plays recorded runs in the browser, and the way out at its end."""

import gradio as gr

from adapop.service.worker import Worker
from adapop.ui.parts import download
from adapop.ui.parts.field import FIELD, script
from adapop.ui.story.content import story

REPORTED = "example-adapop"
# the beta curve of the Pressure screen, as a function of this script
CURVE = f"const drawCurve = (element, props, trigger, watch) => {{\n{script('curve')}\n}};"
STEPS = ("story/guess", "story/fields", "story/push", "story/quiz", "story/page")


def build(worker: Worker) -> None:
    """Lays the Story out inside the current tab."""
    gr.HTML(
        story(),
        html_template='<div class="story"></div>',  # no text goes through the template: the script puts it in as text
        js_on_load=f"{CURVE}\n{script(*FIELD, *STEPS)}",
        elem_id="story",
    )
    with gr.Column(elem_id="story-report"):
        download.build(worker, gr.State(REPORTED), "story-report")
