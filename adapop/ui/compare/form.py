"""The form of a race: its contestants, what they share, and its plan in words."""

from functools import partial

import gradio as gr

from adapop.service.worker import Worker
from adapop.ui.compare import entrants, race
from adapop.ui.parts import html
from adapop.ui.parts.chart import twin
from adapop.ui.run import check
from adapop.ui.session import Session
from adapop.ui.wiring import EACH_IN_TURN

RACE_ABOUT = (
    "These run on the set chosen on Facts, with the model chosen on Run. Keep “AdaPop, shuffled” "
    "among them: only a run with random scores can show that popularity matters."
)


def build(
    worker: Worker, session: Session, missing: gr.Radio, settings: list[gr.Component], tab: gr.Tab
) -> tuple[gr.Dropdown, list[gr.Component], gr.Button]:
    """Lays out the form and wires its plan: the contestants, the settings (seeds, epochs, learning
    rate, and Run's) and the button that starts. settings: inputs of Run; the race uses its
    model."""
    gr.Markdown(RACE_ABOUT)
    with gr.Row():
        several = dict(multiselect=True, min_width=300, scale=5, elem_id="contestants")
        several |= dict(value=list(race.STARTERS), label="Methods")
        chosen = gr.Dropdown(entrants.choices(), **several)
        narrow = dict(min_width=150, scale=2, elem_id="race-epochs")
        epochs = gr.Slider(1, 10, value=5, step=1, label="Epochs", **narrow)
        narrow = dict(min_width=210, scale=1, elem_id="race-seeds")
        seeds = gr.Radio([1, 2, 3], value=1, label="Seeds", **narrow)
        # an empty gr.Number is shown as 0
        narrow = dict(placeholder="each its own", min_width=150, elem_id="race-rate")
        rate = gr.Textbox(label="Learning rate", **narrow)
    plan = html.lines("race-plan")
    twin(entrants.who_is_who(), "who-is-who", caption="What the methods do")
    raced = [seeds, epochs, rate, *settings]
    checked = [missing, session.anchors, chosen, *raced]
    check.build(worker, session, checked, entrants.first, "race-check")
    start = gr.Button("Run them", variant="primary", min_width=220, scale=0, elem_id="race")
    components = session.facts, chosen, *raced[:4]  # the fourth is the model
    changed, planned = [one.change for one in components], [session.facts, *checked]
    gr.on([*changed, tab.select], partial(entrants.plan, worker), planned, plan, **EACH_IN_TURN)
    return chosen, raced, start
