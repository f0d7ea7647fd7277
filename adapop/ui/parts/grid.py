"""A table on the page that scrolls inside itself; its first column stays in sight."""

from __future__ import annotations

import gradio as gr

from adapop.report.table import Table
from adapop.ui.parts import html

GRID = """
{{#if value.caption}}<p class="soft">{{{value.caption}}}</p>{{/if}}
{{#if value.rows}}<div class="grid" tabindex="0" role="region" aria-label="{{{value.label}}}"><table>
<thead><tr>{{#each value.head}}<th scope="col">{{{this}}}</th>{{/each}}</tr></thead>
<tbody>{{#each value.rows}}<tr><th scope="row">{{{this.name}}}</th>
{{#each this.cells}}<td>{{{this.value}}}{{#each this.below}} <small>{{{this}}}</small>{{/each}}</td>{{/each}}
</tr>{{/each}}
</tbody></table></div>{{else}}<p class="soft">{{{value.empty}}}</p>{{/if}}
"""


def grid(elem_id: str, value: dict | None = None) -> gr.HTML:
    """The component, laid out where it is called. value: of `grid_of`."""
    return gr.HTML(value or html.values({"empty": ""}), html_template=GRID, elem_id=elem_id)


def grid_of(table: Table, empty: str = "") -> dict:
    """A table as values of `GRID`, its note above it. empty: the text for no rows."""
    rows = [{"name": name, "cells": [_cell(text) for text in cells]} for name, *cells in table.rows]
    content = {"head": table.head, "rows": rows, "label": table.title, "caption": table.note, "empty": empty}
    return html.values(content)


def _cell(text: str) -> dict:
    """A cell's first line, and what stands below it or, where there is room, beside it."""
    value, *below = text.split("\n")
    return {"value": value, "below": below}
