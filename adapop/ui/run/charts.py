"""The live pictures of the Run screen: how they are laid out, and what fills them from a run's events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import gradio as gr
import pandas as pd

from adapop.config.presets import make_config
from adapop.report import figures
from adapop.runs.run import Run
from adapop.training.events import EpochDone, Event, Measured, RunStarted, StepDone
from adapop.ui import texts
from adapop.ui.parts.chart import chart, drawn, twin, twin_of

# points without a value: the chart learns its lines from the first frame it gets
LOSSES = pd.DataFrame([{"epoch": 0.0, "nats": float("nan"), "facts": line} for line in figures.LOSS_COLOR])
COUNT = 8
OF_AN_EPOCH = (EpochDone, Measured)


def build() -> list[gr.Component]:
    """Losses, controller, recall, outcome, each with its text twin. Only the losses change at every tick: that chart
    keeps its place in the page, where a plotly figure would be put in anew."""
    with gr.Row(elem_id="charts"):
        with gr.Column(min_width=320):
            gr.Markdown(f"### The controller\n{texts.CONTROLLER_ABOUT}")
            controller = chart(figures.empty(texts.CHART_EMPTY, figures.CONTROLLER_PIXELS), "controller-chart")
        with gr.Column(min_width=320):
            gr.Markdown(f"### Loss by popularity\n{texts.LOSS_ABOUT}")
            losses = gr.LinePlot(
                LOSSES,
                x="epoch",
                y="nats",
                color="facts",
                color_map=figures.LOSS_COLOR,
                height=figures.CONTROLLER_PIXELS,
                x_lim=[0, 5],
                y_lim=[0, None],
                x_title="epoch",
                y_title="loss of the answer, nats",
                show_label=False,
                elem_id="loss-chart",
            )
            losses_twin = twin(figures.empty(""), "loss-chart-twin")
    with gr.Row():
        with gr.Column(min_width=320):
            gr.Markdown(f"### What it can still answer\n{texts.RECALL_ABOUT}")
            recall = chart(figures.empty(texts.CHART_EMPTY), "recall-chart")
        with gr.Column(min_width=320):
            gr.Markdown(f"### Before and after\n{texts.OUTCOME_ABOUT}")
            outcome = chart(figures.empty(texts.OUTCOME_EMPTY), "outcome-chart")
    return [losses, losses_twin, *controller, *recall, *outcome]


def values(run: Run | None, events: Sequence[Event], last_seen: int) -> list:
    """New values for what `build` returned; without a run, what they begin with. The charts of an epoch are drawn
    again only when an epoch ended.

    last_seen: how many of the events the page has shown, negative for none.
    """
    steps = [event for event in events if isinstance(event, StepDone)]
    rows = figures.loss_rows(steps, _steps_per_epoch(events)) if steps else LOSSES
    losses = gr.LinePlot(pd.DataFrame(rows), x_lim=[0, run.config.epochs if run else make_config().epochs])
    numbers = figures.loss_numbers(steps, _steps_per_epoch(events)) if steps else figures.numbers_of(figures.empty(""))
    table = twin_of(numbers, texts.LOSS_TABLE)
    if last_seen >= 0 and not any(isinstance(event, OF_AN_EPOCH) for event in events[last_seen:]):
        return [losses, table, *[gr.skip()] * (COUNT - 2)]
    told = [event.time for event in events if isinstance(event, OF_AN_EPOCH)]
    return [losses, table, *_pictures(run, len(told), max(told, default=0.0))]


@lru_cache(maxsize=32)
def _pictures(run: Run | None, _count: int, _time: float) -> list:
    """The charts of a run's epochs with their twins, drawn once for all who look at it. _count and _time: of its last
    epoch's news, which tell one drawing from the next."""
    events = run.events() if run else []
    epochs = [event for event in events if isinstance(event, EpochDone)]
    measured = [event for event in events if isinstance(event, Measured)]
    full = [event for event in measured if event.full]
    waiting = figures.empty(texts.CHART_EMPTY, figures.CONTROLLER_PIXELS)
    controller = figures.controller_chart(epochs, run.config) if epochs else waiting
    recall = figures.recall_chart(measured, run.config.epochs) if measured else figures.empty(texts.CHART_EMPTY)
    outcome = figures.outcome_chart(full[0], full[-1]) if len(full) > 1 else figures.empty(texts.OUTCOME_EMPTY)
    return [
        *drawn(controller, texts.CONTROLLER_TABLE),
        *drawn(recall, texts.RECALL_TABLE),
        *drawn(outcome, texts.OUTCOME_TABLE),
    ]


def _steps_per_epoch(events: Sequence[Event]) -> int:
    return next(event.steps for event in events if isinstance(event, RunStarted))
