"""The fields of a race's contestants side by side: each fact a dot, all under one scrubber."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import gradio as gr

from adapop.errors import AdaPopError
from adapop.report.contestants import by_contestant
from adapop.report.record import title_of
from adapop.runs.run import Run
from adapop.ui.parts import field

MOST = 4  # fields beside each other


@dataclass(frozen=True)
class Fields:
    """The component; it shows each contestant's first seed."""

    picture: gr.HTML

    def updates(self, runs: Sequence[Run], names: Mapping[str, str]) -> dict:
        """Updates that show a race's frames. names: run id -> name, for single runs."""
        panels = []
        for mark, (_, seeds) in enumerate(by_contestant(runs), start=1):
            run = seeds[0]
            title = f"{mark} {title_of(run.config.method, run.config.preset)}"
            title = names.get(run.id, title) if len(seeds) == 1 else title
            try:
                dots, motion = field.dots(run.facts.forget), field.motion_of(run)
                shares = field.shares(run.events())
            except AdaPopError:  # a damaged recording hides no other
                continue
            if motion["epoch"]:
                panels.append(dict(title=title, facts=dots, motion=motion, shares=shares))
            if len(panels) == MOST:
                break
        return {self.picture: panels}


def build() -> Fields:
    """Lays out the component, empty before a race."""
    # no text goes through the template: the script puts it in as text
    template = '<div class="race-fields story"></div>'
    script = field.script(*field.FIELD, "race-fields")
    return Fields(gr.HTML([], html_template=template, js_on_load=script, elem_id="race-fields"))
