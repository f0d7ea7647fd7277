"""A picture on the page with its text twin: one sentence, and the numbers as a real table for who cannot see it."""

from __future__ import annotations

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


def chart(figure: figures.Figure, elem_id: str, words: str = "") -> tuple[gr.Plot, gr.HTML]:
    """The plot and its twin, laid out one below the other. Whoever fills the plot fills the twin: see `drawn`."""
    plot = gr.Plot(figure, show_label=False, elem_id=elem_id)
    return plot, twin(figure, f"{elem_id}-twin", words)


def twin(picture: figures.Figure | figures.Numbers, elem_id: str, words: str = "") -> gr.HTML:
    """The table alone, for a picture that is no plotly figure."""
    return gr.HTML(twin_of(picture, words), html_template=TWIN, js_on_load=STAY_OPEN, elem_id=elem_id)


def drawn(figure: figures.Figure, words: str = "") -> tuple[figures.Figure, dict]:
    """New values for both components of a `chart`."""
    return figure, twin_of(figure, words)


def twin_of(picture: figures.Figure | figures.Numbers, words: str = "") -> dict:
    """The values of `TWIN`, of a figure or of numbers. words: what the picture shows, as the table's caption."""
    numbers = picture if isinstance(picture, figures.Numbers) else figures.numbers_of(picture)
    left_out = f" One row in {numbers.every}." if numbers.every > 1 else ""
    content = {"caption": CAPTION, "words": f"{words}{left_out}".strip(), "columns": numbers.columns}
    return html.values(content | {"rows": numbers.rows})
