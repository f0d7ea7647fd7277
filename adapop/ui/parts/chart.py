"""A picture on the page with its text twin: one sentence, and the numbers as a table for those who cannot see it."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from adapop.report import figures
from adapop.ui.parts import html

TWIN = """
{{#if value.rows}}<details class="twin"><summary>{{{value.caption}}}</summary>
<p>{{{value.words}}}</p><div class="twin-scroll" tabindex="0"><table aria-label="{{{value.words}}}">
<thead><tr>{{#each value.columns}}<th scope="col">{{{this}}}</th>{{/each}}</tr></thead>
<tbody>{{#each value.rows}}<tr>{{#each this}}<td>{{{this}}}</td>{{/each}}</tr>{{/each}}</tbody>
</table></div></details>{{/if}}
"""
# a new value draws the template anew: what was open stays open, and scrolled as far as it was
STAY_OPEN = """
element.addEventListener('toggle', event => { element.dataset.open = event.target.open }, true);
element.addEventListener('scroll', event => { element.dataset.top = event.target.scrollTop }, true);
new MutationObserver(() => {
  const details = element.querySelector('details');
  if (!details || element.dataset.open !== 'true' || details.open) return;
  details.open = true;
  details.querySelector('.twin-scroll').scrollTop = element.dataset.top || 0;
}).observe(element, { childList: true, subtree: true });
"""
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

    def drawn(self, figure: figures.Figure) -> dict:
        """Updates that show another figure and its numbers."""
        return {self.plot: figure, self.twin: twin_of(figure, self.words)}


def chart(figure: figures.Figure, elem_id: str, words: str = "") -> Chart:
    """The plot and its twin, laid out one below the other."""
    plot = gr.Plot(figure, show_label=False, elem_id=elem_id)
    return Chart(plot, twin(figure, f"{elem_id}-twin", words), words)


def twin(picture: figures.Figure | figures.Numbers, elem_id: str, words: str = "") -> gr.HTML:
    """The table alone, for a picture that is no plotly figure."""
    return gr.HTML(twin_of(picture, words), html_template=TWIN, js_on_load=STAY_OPEN, elem_id=elem_id)


def twin_of(picture: figures.Figure | figures.Numbers, words: str = "") -> dict:
    """The values of `TWIN`, of a figure or of numbers. words: what the picture shows, as the table's caption."""
    numbers = picture if isinstance(picture, figures.Numbers) else figures.numbers_of(picture)
    left_out = f" One row in {numbers.every}." if numbers.every > 1 else ""
    content = {"caption": CAPTION, "words": f"{words}{left_out}".strip(), "columns": numbers.columns}
    return html.values(content | {"rows": numbers.rows})
