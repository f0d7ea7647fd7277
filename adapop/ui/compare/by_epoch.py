"""Recall by epoch: the contestants' fields, and a chart."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import gradio as gr

from adapop.errors import AdaPopError
from adapop.facts.fact import TIERS
from adapop.probes.intervals import Interval
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.report import figures
from adapop.report.contestants import by_contestant, comparable, recall_of
from adapop.report.figures import look
from adapop.report.figures.outcomes import PANELS
from adapop.report.record import title_of, trained
from adapop.runs.run import Run
from adapop.training.events import Measured
from adapop.ui import texts
from adapop.ui.parts import field
from adapop.ui.parts.chart import Chart, chart
from adapop.ui.wiring import Components

CURVES_NAME = "Epoch by epoch"
CURVES_TABLE = (
    "Share of the forget set that each run or method still answers, by epoch and popularity. Lines "
    "use one other wording of each fact, if there is one; the marks at the end use all. "
    "Ranges: for one run the 95% interval over facts, for several seeds from the lowest to the "
    "highest, around their mean."
)

MOST_FIELDS = 4  # beside each other
ACROSS = 2  # panels in a row: as many as fit on a phone


@dataclass(frozen=True)
class Curves(Components):
    """The chart of recall by epoch, hidden before the race's first measurement."""

    column: gr.Column
    picture: Chart

    def updates(self, runs: Sequence[Run], names: Mapping[str, str]) -> dict:
        """Updates that show a race's measurements so far. names: see `fields_of`."""
        contestants, results = _by_contestant(comparable(runs), names)
        if not contestants:
            return {self.column: gr.Column(visible=False)}
        by_epoch = [seeds for epochs in contestants.values() for seeds in epochs.values()]
        measured = [one for seeds in by_epoch for one in seeds]
        reworded = all(one.recall("forget", REWORDED) is not None for one in measured)
        form = REWORDED if reworded else DIRECT
        quick = form == REWORDED and not all(one.full for one in measured)
        wordings = figures.LINES_AND_MARKS if quick and results else PANELS[form]
        about = f"{trained([run.config for run in runs])}, {wordings}"
        picture = _lines(contestants, results, form)
        return {self.column: gr.Column(visible=True), **self.picture.updates(picture, about)}


def build() -> Curves:
    """Lays out the chart, hidden until there are measurements."""
    folded = dict(open=False, elem_id="curves-fold")
    with gr.Column(visible=False) as column, gr.Accordion(CURVES_NAME, **folded):
        empty = figures.empty(texts.COMPARE_CHART_EMPTY)
        return Curves(column, chart(empty, "race-curves", CURVES_NAME, CURVES_TABLE))


def fields_of(runs: Sequence[Run], names: Mapping[str, str]) -> list[dict]:
    """The value of the contestants' fields: the recorded frames of the first seed of each
    contestant whose numbers compare. names: run id -> name, for contestants of a single run."""
    every, compared = [], {run.id for run in comparable(runs)}
    for mark, (_, seeds) in enumerate(by_contestant(runs), start=1):
        run = seeds[0]
        if run.id not in compared:
            continue
        title = _title(seeds, names, f"{mark} ")
        try:
            dots, motion = field.dots(run.facts.forget), field.motion_of(run, field.frames_of(run))
            shares = field.shares(run.events())
        except AdaPopError:  # a damaged recording hides no other
            continue
        if motion["epoch"]:
            every.append(dict(title=title, facts=dots, motion=motion, shares=shares))
        if len(every) == MOST_FIELDS:
            break
    return every


def _title(seeds: Sequence[Run], names: Mapping[str, str], mark: str = "") -> str:
    """The name given to a contestant's only run, else its number, its method and its preset."""
    title = f"{mark}{title_of(seeds[0].config.method, seeds[0].config.preset)}"
    return names.get(seeds[0].id, title) if len(seeds) == 1 else title


Epochs = dict[int, list[Measured]]  # epoch -> measurements of a contestant's seeds
Results = dict[str, list[Measured]]  # contestant -> full measurements


def _by_contestant(
    runs: Sequence[Run], names: Mapping[str, str]
) -> tuple[dict[str, Epochs], Results]:
    """Contestant -> epoch -> its seeds' measurements, and contestant -> full measurements. Only
    seeds with measurements count, and only epochs that all of these measured. A contestant has full
    measurements once all its seeds have ended."""
    contestants, results, titles = {}, {}, Counter()
    for _, seeds in by_contestant(runs):
        logs = [[one for one in run.events() if isinstance(one, Measured)] for run in seeds]
        by_epoch = [{one.epoch: one for one in figures.by_epoch(log)} for log in logs if log]
        if by_epoch:
            title = _title(seeds, names)
            titles[title] += 1  # the same title with other settings
            title = f"{title} ({titles[title]})" if titles[title] > 1 else title
            shared = sorted(set.intersection(*map(set, by_epoch)))
            contestants[title] = {epoch: [events[epoch] for events in by_epoch] for epoch in shared}
            ends = [run.measured() for run in seeds]
            if None not in ends:
                results[title] = ends
    return contestants, results


def _lines(contestants: dict[str, Epochs], results: Results, form: str) -> figures.Figure:
    """A panel per contestant, a line per tier: means over facts, or over the seeds so far. A
    separate mark shows the full measurement of the result."""
    panels = {}
    for title, by_epoch in contestants.items():
        lines: dict[str, list[tuple[float, Interval]]] = {}
        for epoch, seeds in by_epoch.items():
            for tier in TIERS:
                if share := recall_of(seeds, "forget", form, tier):
                    lines.setdefault(tier, []).append((epoch, share))
        seeds = results.get(title, [])
        for tier in [*lines] if seeds and seeds[0] not in by_epoch.get(seeds[0].epoch, ()) else ():
            at, share = max(event.epoch for event in seeds), recall_of(seeds, "forget", form, tier)
            lines[f"{tier}{look.ALL_WORDINGS}"] = [(at, share)]
        panels[title] = lines
    figure = figures.line_panels(panels, "epoch", "still answered", columns=ACROSS)
    figure.update_yaxes(tickformat=".0%")
    latest = max((epoch for by_epoch in contestants.values() for epoch in by_epoch), default=0)
    figure.update_xaxes(range=[-0.3, latest + 0.3], dtick=max(1, latest // 5))
    figure.update_layout(showlegend=False, margin=dict(r=64, t=40))
    reached = max((line[-1][0] for line in lines.values()), default=0)
    ends = {name.split(",")[0]: at[-1][1] for name, at in lines.items() if at[-1][0] == reached}
    # the last panel's lines are named
    row, column = (part + 1 for part in divmod(len(panels) - 1, ACROSS))
    names = [(share.mean, tier) for tier, share in ends.items() if reached]
    look.end_labels(figure, names, reached, 1.08 * row, row=row, col=column)
    return figure
