"""The live charts of the Run screen: their layout, and their updates from a run's events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import gradio as gr
import pandas as pd

from adapop.config.presets import make_config
from adapop.facts.fact import TIERS
from adapop.report import figures
from adapop.report.distance import distance_chart, distance_sentence
from adapop.report.figures import TO_FORGET
from adapop.report.record import described, title_of
from adapop.runs.run import Run
from adapop.training.events import (
    ComparedToOracle,
    EpochDone,
    Event,
    Measured,
    RunStarted,
    StepDone,
)
from adapop.ui.parts import html
from adapop.ui.parts.chart import Chart, chart, column, heading_of, titled, twin, twin_of
from adapop.ui.wiring import Components

CONTROLLER_TABLE = (
    "A red bar means that the retain set is being damaged, so the next epoch protects it more. In "
    "symbols: a drift δ of the retain loss above the tolerance ε raises λ, and with it the retain "
    "weight α of the next epoch. (PDU does not use drift.) Epoch 1 is the reference, so its drift "
    "is 0; epoch 0 is before training."
)
LOSS_TABLE = (
    "The loss of each batch's answers, in nats. It should rise for the forget set and stay low for "
    "the retain set. Strong lines are means over the last eight batches; the thin lines behind are "
    "single batches. For an earlier run, orange is the forget set and green the retain set."
)
RECALL_TABLE = (
    "Share of the facts to forget that the model still answers, by epoch and popularity; the table "
    "has the trained question too. Lines show one other wording of each fact; the marks, and the "
    "gap between them, are measured with all other wordings. Shaded: 95% intervals over facts."
)
OUTCOME_TABLE = (
    "Share of questions that each model answers at the end. The forget set is asked in other "
    "words, where there are rewordings; all others directly. The model was trained to keep the "
    "retain set. Held-out facts were never trained on: they show what unlearning cost."
)
PAIR_TABLE = (
    "Share of questions that each of the two models answers. The forget set is asked in other "
    "words, where there are rewordings. All others are asked directly: what is lost there is the "
    "cost of unlearning."
)
CHART_EMPTY = "appears while the run goes on"
LOSS_NAME = "Loss by popularity"
ORACLE_FOLD = "As if never learnt?"
ORACLE_NAME = "Compared with a model that never learnt the facts"
ORACLE_TABLE = (
    "Each fact to forget, asked in other words. The grey band is where facts lie that the model "
    "never learnt. Below it the model avoids the answer, which reveals that it once knew the fact; "
    "above the grey it still knows it."
)
OUTCOME_EMPTY = "appears when the run is done"
PAIR_EMPTY = "appears when both models are measured"

TRAINING = "Training, step by step"
LEGEND = html.template("lines-legend")
RESULT_PIXELS, STEP_PIXELS = 260, 240  # both pictures of the result, beside the dots
# the earlier run behind single steps, their moving means before them
LOSS_LINES = figures.EARLIER_COLOR | figures.RAW_COLOR | figures.LOSS_COLOR
NOTHING = ("Show another run behind", "")  # of the choice of a run to lay behind
OF_AN_EPOCH = (EpochDone, Measured, ComparedToOracle)


@dataclass(frozen=True)
class StepChart:
    """A chart of every step, in the fold under Advanced, drawn anew after each epoch. element: its
    id on the page. about: words at its table. draw: of the steps, and how many an epoch has."""

    title: str
    element: str
    about: str
    draw: Callable[[Sequence[StepDone], int], figures.Figure]


# all of them: to add one, add it here
STEP_CHARTS = (
    StepChart(
        "Gradient norm",
        "gradient-chart",
        "Length of each step's gradient before it is clipped. A jump says that training is about "
        "to break.",
        figures.gradient_chart,
    ),
)


@dataclass(frozen=True)
class RunCharts(Components):
    """The live charts. losses: the only one that changes at every step; a `LinePlot` takes new data
    in place, where a plotly figure would be inserted anew. Only its data may change: for anything
    else it draws itself anew, and loses the data that come meanwhile. steering, losing: columns
    around the charts of controller and losses, which some runs lack, as some lack the fold
    `distance` around the chart of the oracle. by_step: those of `STEP_CHARTS`, in the fold
    `training`, under Advanced."""

    losses_title: gr.HTML
    losses_legend: gr.HTML
    losses: gr.LinePlot
    losses_twin: gr.HTML
    losing: gr.Column
    training: gr.Accordion
    steering: gr.Column
    controller: Chart
    recall: Chart
    outcome: Chart
    distance: gr.Accordion
    oracle: Chart
    by_step: tuple[Chart, ...]

    def updates(
        self, run: Run | None, events: Sequence[Event], last_seen: int, earlier: Run | None = None
    ) -> dict:
        """Updates that show a run, or empty charts; charts by epoch only after new events of an
        epoch. last_seen: how many of the events the page has shown, negative for none. earlier: a
        finished run whose losses, drift, α and λ are drawn behind."""
        steps = [event for event in events if isinstance(event, StepDone)]
        rows, numbers = [], figures.numbers_of(figures.empty(""))
        if steps:
            steps_per_epoch = _steps_per_epoch(events)
            rows = figures.smoothed_rows(figures.loss_rows(steps, steps_per_epoch))
            numbers = figures.loss_numbers(steps, steps_per_epoch)
        behind, (name, _) = _behind(earlier)
        configs = [one.config for one in (run, earlier) if one] or [make_config()]
        losses = _points([*behind, *rows], max(config.epochs for config in configs))
        changes = {self.losses: losses, self.losses_twin: twin_of(numbers, LOSS_TABLE)}
        if last_seen < 0 or any(isinstance(event, RunStarted) for event in events[last_seen:]):
            changes[self.losses_legend] = _legend(run, name)
        fresh = any(isinstance(event, OF_AN_EPOCH) for event in events[last_seen:])
        if last_seen >= 0 and not fresh:
            return changes
        news = [event.time for event in events if isinstance(event, OF_AN_EPOCH)]
        return changes | _epoch_charts(self, run, len(news), max(news, default=0.0), earlier)

    def named(self) -> dict:
        """Updates of the titles: what is drawn, in place of what it shows."""
        named = self.controller, self.recall, self.outcome
        titles = {one.heading: one.name for one in named} | {self.losses_title: LOSS_NAME}
        return {heading: heading_of(title) for heading, title in titles.items()}


def build() -> tuple[RunCharts, gr.Dropdown, gr.HTML]:
    """Lays the charts out, in sight below the field of facts; the oracle and single steps are
    folded. Returns the charts, the choice of a run that is laid behind them, and the field."""
    with gr.Column(elem_id="charts"):
        field = html.drawn(None, "run-field", "fact-field", "runField")
        named = dict(label="A run to show behind this one", show_label=False, elem_id="lay-over")
        over = gr.Dropdown([NOTHING], value="", visible=False, **named)
        # on a phone one row to swipe, elsewhere places of the grid of `#charts`: see style.css
        with gr.Row(elem_classes="swipe", elem_id="run-charts"):
            empty = figures.empty(CHART_EMPTY, figures.RECALL_PIXELS)
            recall = column("Still answered", empty, "recall-chart", RECALL_TABLE)
            with gr.Column(min_width=320, elem_id="steering") as steering:
                waiting = figures.empty(CHART_EMPTY, figures.CONTROLLER_PIXELS)
                words = "Controller", CONTROLLER_TABLE
                controller = chart(waiting, "controller-chart", *words)
            with gr.Column(min_width=320, elem_id="losing") as losing:
                losses = _losses()
            empty = figures.empty(OUTCOME_EMPTY, RESULT_PIXELS)
            outcome = column("Before and after", empty, "outcome-chart", OUTCOME_TABLE)
    with gr.Accordion(ORACLE_FOLD, open=False, visible=False, elem_id="distance") as distance:
        oracle = chart(figures.empty(""), "oracle-chart", ORACLE_NAME, ORACLE_TABLE)
    options = dict(open=False, elem_id="training", elem_classes="advanced-only")
    with gr.Accordion(TRAINING, **options) as training:
        empty = figures.empty(CHART_EMPTY, STEP_PIXELS)
        by_step = tuple(chart(empty, one.element, one.title, one.about) for one in STEP_CHARTS)
    by_epoch = steering, controller, recall, outcome, distance, oracle
    return RunCharts(*losses, losing, training, *by_epoch, by_step), over, field


def _losses() -> tuple[gr.HTML, gr.HTML, gr.LinePlot, gr.HTML]:
    """Lays out the chart of the losses: its title, its legend, the lines, and its table."""
    title = titled(LOSS_NAME)
    legend = gr.HTML(_legend(None, ""), html_template=LEGEND, elem_id="loss-legend")
    axes = dict(x="epoch", y="nats", x_title="epoch", y_title="loss of the answer")
    axes |= dict(y_lim=[0, None], show_label=False, x_axis_format="~g")  # 1 and 1.5, not 1.0
    # an empty list draws no legend: it would name the lines that a run lacks too
    lines = dict(color="facts", color_map=LOSS_LINES, colors_in_legend=[])
    high = dict(height=figures.CONTROLLER_PIXELS, elem_id="loss-chart")
    plot = gr.LinePlot(_points([], make_config().epochs), **axes, **lines, **high)
    return title, legend, plot, twin(figures.empty(""), "loss-chart-twin")


def _points(rows: Sequence[dict], epochs: int) -> pd.DataFrame:
    """The data of the chart of the losses. Empty points come first: every line has one, as the plot
    gives its colours to the lines of the data that it is drawn with, and the last epoch has one, so
    that the axis reaches it."""
    empty = [{"epoch": 0.0, "nats": float("nan"), "facts": line} for line in LOSS_LINES]
    return pd.DataFrame([*empty, empty[-1] | {"epoch": float(epochs)}, *rows])


def _legend(run: Run | None, earlier: str) -> dict:
    """The values of `LEGEND`: the lines that a run has, by the words of `LOSS_COLOR`. earlier: name
    of the run behind, empty for none."""
    scored = run is None or any(fact.tier for fact in run.facts.forget)
    unused = TIERS if not scored else (TO_FORGET,)
    lines = [{"name": name, "css": name} for name in figures.LOSS_COLOR if name not in unused]
    if earlier:
        lines.append({"name": earlier, "css": "earlier"})
    return html.values({"lines": lines})


@lru_cache(maxsize=8)
def _behind(earlier: Run | None) -> tuple[list[dict], tuple]:
    """What is drawn behind: rows of the losses, and the name and the epochs of the run, for
    `controller_chart`."""
    if earlier is None:
        return [], ("", ())
    name = f"earlier: {title_of(earlier.config.method, earlier.config.preset)}"
    events = earlier.events()
    steps = [event for event in events if isinstance(event, StepDone)]
    epochs = [event for event in events if isinstance(event, EpochDone)]
    return figures.laid_over(steps, _steps_per_epoch(events)), (name, epochs)


@lru_cache(maxsize=32)
def _epoch_charts(
    charts: RunCharts, run: Run | None, _count: int, _time: float, earlier: Run | None
) -> dict:
    """Updates of the charts by epoch, cached for all pages. _count, _time: the number of epoch
    events and the time of the last; they only invalidate the cache."""
    events = run.events() if run else []
    epochs = [event for event in events if isinstance(event, EpochDone)]
    measured = [event for event in events if isinstance(event, Measured)]
    full = [event for event in measured if event.full]
    distances = [event.distance for event in events if isinstance(event, ComparedToOracle)]
    pair = run is not None and bool(run.config.unlearned)
    drawings = {
        charts.controller: figures.empty(CHART_EMPTY, figures.CONTROLLER_PIXELS),
        charts.recall: figures.empty(CHART_EMPTY, figures.RECALL_PIXELS),
        charts.outcome: figures.empty(PAIR_EMPTY if pair else OUTCOME_EMPTY),
        charts.oracle: figures.empty(""),
    }
    drawings |= dict.fromkeys(charts.by_step, figures.empty(CHART_EMPTY, STEP_PIXELS))
    if epochs:
        drawings[charts.controller] = figures.controller_chart(
            epochs, run.config, _behind(earlier)[1]
        )
    if measured:
        drawings[charts.recall] = figures.recall_chart(measured, run.config.epochs)
    if len(full) > 1:
        drawings[charts.outcome] = figures.outcome_chart(full[0], full[-1], trained=not pair)
    if distances:
        drawings[charts.oracle] = distance_chart(distances[-1], run.facts.forget)
    if steps := [event for event in events if isinstance(event, StepDone)]:
        for picture, one in zip(charts.by_step, STEP_CHARTS, strict=True):
            drawings[picture] = one.draw(steps, _steps_per_epoch(events))
    for picture in (charts.outcome, charts.oracle):
        drawings[picture].update_layout(height=RESULT_PIXELS)
    about = described(run.config) if run else ""
    tiers = f" Tiers by score: {run.facts.tiers.text}." if run else ""
    # which run it is, on one chart only; of a pair the recall by epoch is hidden: see style.css
    below = {charts.outcome if pair else charts.recall: about}
    if distances:
        below[charts.oracle] = distance_sentence(distances[-1])
    changes = {}
    for picture, figure in drawings.items():
        words = replace(picture, words=picture.words + tiers)
        if pair and picture is charts.outcome:
            words = replace(picture, name="Both models", words=PAIR_TABLE + tiers)
        changes |= words.updates(figure, below.get(picture, ""))
    changes[charts.losses_title] = heading_of(LOSS_NAME, about if steps else "")
    changes[charts.distance] = gr.Accordion(visible=bool(distances))
    changes |= {place: gr.update(visible=not pair) for place in (charts.losing, charts.training)}
    changes[charts.steering] = gr.Column(visible=run is None or run.config.controller != "fixed")
    return changes


def _steps_per_epoch(events: Sequence[Event]) -> int:
    return next(event.steps for event in events if isinstance(event, RunStarted))
