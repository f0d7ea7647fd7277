"""The fields of a race's contestants side by side: each fact a dot, all under one scrubber."""

from collections.abc import Mapping, Sequence

import gradio as gr

from adapop.errors import AdaPopError
from adapop.report.contestants import by_contestant, comparable
from adapop.report.record import title_of
from adapop.runs.run import Run
from adapop.ui.parts import field, html

MOST = 4  # fields beside each other


def build() -> gr.HTML:
    """Lays out the component, empty before a race."""
    return html.drawn([], "race-fields story", "race-fields", "raceFields")


def panels(runs: Sequence[Run], names: Mapping[str, str]) -> list[dict]:
    """The value of the component: the recorded frames of the first seed of each contestant whose
    numbers compare. names: run id -> name, for contestants of a single run."""
    every, compared = [], {run.id for run in comparable(runs)}
    for mark, (_, seeds) in enumerate(by_contestant(runs), start=1):
        run = seeds[0]
        if run.id not in compared:
            continue
        title = f"{mark} {title_of(run.config.method, run.config.preset)}"
        title = names.get(run.id, title) if len(seeds) == 1 else title
        try:
            dots, motion = field.dots(run.facts.forget), field.motion_of(run)
            shares = field.shares(run.events())
        except AdaPopError:  # a damaged recording hides no other
            continue
        if motion["epoch"]:
            every.append(dict(title=title, facts=dots, motion=motion, shares=shares))
        if len(every) == MOST:
            break
    return every
