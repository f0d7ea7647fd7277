"""What is left epoch by epoch: the shipped examples' fields before a race, each contestant's lines
in it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import gradio as gr

from adapop.facts.fact import TIERS
from adapop.probes.intervals import Interval
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.report import figures
from adapop.report.contestants import by_contestant, lead_of, recall_of
from adapop.report.figures import captions, look
from adapop.report.figures.outcomes import PANELS
from adapop.report.record import title_of, trained
from adapop.runs.run import Run
from adapop.training.events import Measured
from adapop.ui import texts
from adapop.ui.parts import field
from adapop.ui.parts.chart import Chart, chart
from adapop.ui.story.content import side_by_side

ACROSS = 2  # panels: a phone has room for so many


@dataclass(frozen=True)
class Curves:
    """The lines of a race, of which there are none before its first measurement."""

    column: gr.Column
    picture: Chart

    @property
    def all(self) -> list[gr.Component]:
        """What `drawn` changes."""
        return [self.column, *self.picture.parts]

    def drawn(self, runs: Sequence[Run], names: Mapping[str, str]) -> dict:
        """Updates that show the runs of a race, as far as they are. names: see `Fields`."""
        contestants = _by_contestant(runs, names)
        if not contestants:
            return {self.column: gr.Column(visible=False)}
        measured = [
            one for epochs in contestants.values() for seeds in epochs.values() for one in seeds
        ]
        form = (
            REWORDED
            if all(one.recall("forget", REWORDED) is not None for one in measured)
            else DIRECT
        )
        about = f"{trained([run.config for run in runs])}, {PANELS[form]}"
        return {
            self.column: gr.Column(visible=True),
            **self.picture.drawn(_lines(contestants, form), about),
        }


def build() -> Curves:
    """Lays the lines out, hidden until there are some."""
    with gr.Column(visible=False) as column:
        empty = figures.empty(texts.COMPARE_CHART_EMPTY)
        return Curves(column, chart(empty, "race-curves", texts.CURVES_NAME, texts.CURVES_TABLE))


def examples() -> gr.HTML:
    """Lays out the shipped examples' fields, under one scrubber."""
    # no text goes through the template: the script puts it in as text
    template = '<div class="story examples"></div>'
    script = field.script(*field.FIELD, "story/clouds", "examples")
    return gr.HTML(
        side_by_side(), html_template=template, js_on_load=script, elem_id="example-fields"
    )


def _by_contestant(
    runs: Sequence[Run], names: Mapping[str, str] | None = None
) -> dict[str, dict[int, list[Measured]]]:
    """What was measured of every contestant, by its name and by epoch, one of each of its seeds
    that have begun; epochs that one of these did not come to, or did not measure, are left out."""
    contestants: dict[str, dict[int, list[Measured]]] = {}
    titles = Counter()
    for _, seeds in by_contestant(runs):
        measured = [
            [event for event in run.events() if isinstance(event, Measured)] for run in seeds
        ]
        by_epoch = [
            {event.epoch: event for event in figures.by_epoch(events)}
            for events in measured
            if events
        ]
        if by_epoch:
            title = title_of(seeds[0].config.method, seeds[0].config.preset)
            if len(seeds) == 1:
                title = (names or {}).get(seeds[0].id, title)
            titles[title] += 1  # more than one: with other settings
            shared = sorted(set.intersection(*map(set, by_epoch)))
            contestants[f"{title} ({titles[title]})" if titles[title] > 1 else title] = {
                epoch: [events[epoch] for events in by_epoch] for epoch in shared
            }
    return contestants


def _lines(contestants: dict[str, dict[int, list[Measured]]], form: str) -> figures.Figure:
    """A panel per contestant, a line per tier, over facts or over the seeds that came so far."""
    panels = {}
    for title, by_epoch in contestants.items():
        lines: dict[str, list[tuple[float, Interval]]] = {}
        for epoch, seeds in by_epoch.items():
            for tier in TIERS:
                if share := recall_of(seeds, "forget", form, tier):
                    lines.setdefault(tier, []).append((epoch, share))
        panels[title] = lines
    figure = figures.line_panels(panels, "epoch", "still answered", columns=ACROSS).update_yaxes(
        tickformat=".0%"
    )
    latest = max((epoch for by_epoch in contestants.values() for epoch in by_epoch), default=0)
    figure.update_xaxes(range=[-0.3, latest + 0.3], dtick=max(1, latest // 5))
    figure.update_layout(showlegend=False, margin=dict(r=64, t=40))
    ends = {tier: line[-1] for tier, line in lines.items()}
    reached = max((epoch for epoch, _ in ends.values()), default=0)
    # the last panel's lines are named
    row, column = (part + 1 for part in divmod(len(panels) - 1, ACROSS))
    names = [(share.mean, tier) for tier, (_, share) in ends.items() if reached]
    look.end_labels(figure, names, reached, 1.08 * row, row=row, col=column)
    return look.titled(figure, _finding(contestants, form))


def _finding(contestants: dict[str, dict[int, list[Measured]]], form: str) -> str:
    """How far popular facts lead after the last epoch measured of all who have begun to train."""
    ends = {}
    for title, by_epoch in contestants.items():
        leads = {
            epoch: lead
            for epoch, seeds in by_epoch.items()
            if (lead := lead_of(seeds, form)) is not None
        }
        if max(leads, default=0) > 0:
            ends[title] = leads
    epoch = max(set.intersection(*map(set, ends.values())), default=0) if ends else 0
    at_epoch = [(title, leads[epoch]) for title, leads in ends.items()] if epoch else []
    return f"{captions.widest(at_epoch, what=captions.LEAD)}, after epoch {epoch}" if epoch else ""
