"""The live pictures of the Run screen: how they are laid out, and what fills them from a run's events."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import gradio as gr
import pandas as pd

from adapop.config.presets import make_config
from adapop.report import figures
from adapop.runs.run import Run
from adapop.training.events import EpochDone, Event, Measured, RunStarted, StepDone
from adapop.ui import texts
from adapop.ui.parts.chart import Chart, column, twin, twin_of

# points without a value: the chart learns its lines from the first frame it gets
LOSSES = pd.DataFrame([{"epoch": 0.0, "nats": float("nan"), "facts": line} for line in figures.LOSS_COLOR])
OF_AN_EPOCH = (EpochDone, Measured)


@dataclass(frozen=True)
class RunCharts:
    """The live pictures. losses: the only one that changes at every step; a `LinePlot` keeps its place in the page,
    where a plotly figure would be put in anew."""

    losses: gr.LinePlot
    losses_twin: gr.HTML
    controller: Chart
    recall: Chart
    outcome: Chart

    @property
    def all(self) -> list[gr.Component]:
        """What `drawn` changes."""
        pictures = (self.controller, self.recall, self.outcome)
        return [self.losses, self.losses_twin, *(part for picture in pictures for part in picture.both)]

    def drawn(self, run: Run | None, events: Sequence[Event], last_seen: int) -> dict:
        """Updates that show a run, or what the charts begin with if there is none; the charts of an epoch only when
        one ended. last_seen: how many of the events the page has shown, negative for none."""
        steps = [event for event in events if isinstance(event, StepDone)]
        rows = figures.loss_rows(steps, _steps_per_epoch(events)) if steps else LOSSES
        losses = gr.LinePlot(pd.DataFrame(rows), x_lim=[0, run.config.epochs if run else make_config().epochs])
        none = figures.numbers_of(figures.empty(""))
        numbers = figures.loss_numbers(steps, _steps_per_epoch(events)) if steps else none
        changes = {self.losses: losses, self.losses_twin: twin_of(numbers, texts.LOSS_TABLE)}
        if last_seen >= 0 and not any(isinstance(event, OF_AN_EPOCH) for event in events[last_seen:]):
            return changes
        news = [event.time for event in events if isinstance(event, OF_AN_EPOCH)]
        return changes | _epoch_charts(self, run, len(news), max(news, default=0.0))


def build() -> RunCharts:
    """Lays the charts out."""
    with gr.Row(elem_id="charts"):
        heading = f"### The controller\n{texts.CONTROLLER_ABOUT}"
        waiting = figures.empty(texts.CHART_EMPTY, figures.CONTROLLER_PIXELS)
        controller = column(heading, waiting, "controller-chart", texts.CONTROLLER_TABLE)
        with gr.Column(min_width=320):
            gr.Markdown(f"### Loss by popularity\n{texts.LOSS_ABOUT}")
            axes = dict(x="epoch", y="nats", x_title="epoch", y_title="loss of the answer, nats")
            lines = dict(color="facts", color_map=figures.LOSS_COLOR, height=figures.CONTROLLER_PIXELS)
            ranges = dict(x_lim=[0, 5], y_lim=[0, None])
            losses = gr.LinePlot(LOSSES, **axes, **ranges, **lines, show_label=False, elem_id="loss-chart")
            losses_twin = twin(figures.empty(""), "loss-chart-twin")
    with gr.Row():
        heading = f"### What it can still answer\n{texts.RECALL_ABOUT}"
        recall = column(heading, figures.empty(texts.CHART_EMPTY), "recall-chart", texts.RECALL_TABLE)
        heading = f"### Before and after\n{texts.OUTCOME_ABOUT}"
        outcome = column(heading, figures.empty(texts.OUTCOME_EMPTY), "outcome-chart", texts.OUTCOME_TABLE)
    return RunCharts(losses, losses_twin, controller, recall, outcome)


@lru_cache(maxsize=32)
def _epoch_charts(charts: RunCharts, run: Run | None, _count: int, _time: float) -> dict:
    """Updates of the charts of a run's epochs, drawn once for all pages that show it. _count: of the events of epochs;
    _time: of the last one: a new one needs a new drawing."""
    events = run.events() if run else []
    epochs = [event for event in events if isinstance(event, EpochDone)]
    measured = [event for event in events if isinstance(event, Measured)]
    full = [event for event in measured if event.full]
    waiting = figures.empty(texts.CHART_EMPTY, figures.CONTROLLER_PIXELS)
    controller = figures.controller_chart(epochs, run.config) if epochs else waiting
    recall = figures.recall_chart(measured, run.config.epochs) if measured else figures.empty(texts.CHART_EMPTY)
    outcome = figures.outcome_chart(full[0], full[-1]) if len(full) > 1 else figures.empty(texts.OUTCOME_EMPTY)
    return {**charts.controller.drawn(controller), **charts.recall.drawn(recall), **charts.outcome.drawn(outcome)}


def _steps_per_epoch(events: Sequence[Event]) -> int:
    return next(event.steps for event in events if isinstance(event, RunStarted))
