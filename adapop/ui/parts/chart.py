"""A chart on the page: its title, the run it shows, a note on how to read it, and its numbers as a
table for screen readers."""

from dataclasses import dataclass

import gradio as gr

from adapop.report import figures
from adapop.ui.parts import html
from adapop.ui.wiring import Components

TWIN, TITLE = html.template("twin"), html.template("chart-title")
CAPTION = "Details"


@dataclass(frozen=True)
class Chart(Components):
    """A plot, its title and its table. name: its title, which says what is drawn. words: how to
    read it."""

    heading: gr.HTML
    plot: gr.Plot
    twin: gr.HTML
    name: str = ""
    words: str = ""

    def updates(
        self, figure: figures.Figure, about: str = "", numbers: figures.Numbers | None = None
    ) -> dict:
        """Updates that show a figure and its numbers, or `numbers` instead. about: which run it
        shows."""
        table = twin_of(numbers or figure, self.words)
        return {self.heading: heading_of(self.name, about), self.plot: figure, self.twin: table}


def chart(
    figure: figures.Figure, elem_id: str, name: str, words: str = "", about: str = ""
) -> Chart:
    """Lays out title, plot and table, one below the other. about: which run it shows."""
    heading = titled(name, about, f"{elem_id}-title")
    plot = gr.Plot(figure, show_label=False, elem_id=elem_id)
    return Chart(heading, plot, twin(figure, f"{elem_id}-twin", words), name, words)


def column(name: str, figure: figures.Figure, elem_id: str, words: str) -> Chart:
    """A chart in a column of its own."""
    with gr.Column(min_width=320, elem_id=f"{elem_id}-column"):
        return chart(figure, elem_id, name, words)


def titled(title: str, about: str = "", elem_id: str | None = None) -> gr.HTML:
    """Lays out the title of a chart. about: which run it shows."""
    return gr.HTML(heading_of(title, about), html_template=TITLE, elem_id=elem_id)


def heading_of(title: str, about: str = "") -> dict:
    """The values of `TITLE`."""
    return html.values({"title": title, "about": about})


def twin(
    picture: figures.Figure | figures.Numbers, elem_id: str, words: str = "", caption: str = CAPTION
) -> gr.HTML:
    """Lays out the table alone, for a chart that is no plotly figure."""
    shape = dict(html_template=TWIN, js_on_load=html.on_load("twin"), elem_id=elem_id)
    return gr.HTML(twin_of(picture, words, caption), **shape)


def twin_of(
    picture: figures.Figure | figures.Numbers, words: str = "", caption: str = CAPTION
) -> dict:
    """The values of `TWIN`. words: what the picture shows. caption: what opens the table."""
    numbers = picture if isinstance(picture, figures.Numbers) else figures.numbers_of(picture)
    left_out = f" The table shows one row in {numbers.every}." if numbers.every > 1 else ""
    content = {"caption": caption, "words": f"{words}{left_out}".strip()}
    return html.values(content | {"columns": numbers.columns, "rows": numbers.rows})
