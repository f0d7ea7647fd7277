"""A picture on the page with its text twin: one sentence, and the numbers as a table for those who cannot see it."""

from dataclasses import dataclass

import gradio as gr

from adapop.paths import ASSETS
from adapop.report import figures
from adapop.ui.parts import html

TWIN = html.template("twin")
STAY_OPEN = (ASSETS / "twin.js").read_text("utf-8")
CAPTION = "As a table"


@dataclass(frozen=True)
class Chart:
    """A plot and its text twin. words: what the picture shows, as the table's caption."""

    plot: gr.Plot
    twin: gr.HTML
    words: str = ""

    @property
    def both(self) -> list[gr.Component]:
        """What `drawn` changes."""
        return [self.plot, self.twin]

    def drawn(self, figure: figures.Figure, numbers: figures.Numbers | None = None) -> dict:
        """Updates that show another figure and its numbers, or those given."""
        return {self.plot: figure, self.twin: twin_of(numbers or figure, self.words)}


def chart(figure: figures.Figure, elem_id: str, words: str = "") -> Chart:
    """The plot and its twin, laid out one below the other."""
    plot = gr.Plot(figure, show_label=False, elem_id=elem_id)
    return Chart(plot, twin(figure, f"{elem_id}-twin", words), words)


def column(heading: str, figure: figures.Figure, elem_id: str, words: str) -> Chart:
    """A chart below its heading (Markdown), in a column of its own."""
    with gr.Column(min_width=320):
        gr.Markdown(heading)
        return chart(figure, elem_id, words)


def twin(picture: figures.Figure | figures.Numbers, elem_id: str, words: str = "") -> gr.HTML:
    """The table alone, for a picture that is no plotly figure."""
    return gr.HTML(twin_of(picture, words), html_template=TWIN, js_on_load=STAY_OPEN, elem_id=elem_id)


def twin_of(picture: figures.Figure | figures.Numbers, words: str = "") -> dict:
    """The values of `TWIN`, of a figure or of numbers. words: what the picture shows, as the table's caption."""
    numbers = picture if isinstance(picture, figures.Numbers) else figures.numbers_of(picture)
    left_out = f" One row in {numbers.every}." if numbers.every > 1 else ""
    content = {"caption": CAPTION, "words": f"{words}{left_out}".strip(), "columns": numbers.columns}
    return html.values(content | {"rows": numbers.rows})
