"""A table on the page that scrolls inside itself; its first column stays in sight."""

import gradio as gr

from adapop.report.table import Table
from adapop.ui.parts import html

GRID = html.template("grid")


def grid(elem_id: str, value: dict | None = None) -> gr.HTML:
    """Lays out the component. value: of `grid_of`."""
    return gr.HTML(value or html.values({"empty": ""}), html_template=GRID, elem_id=elem_id)


def grid_of(table: Table, empty: str = "") -> dict:
    """A table as values of `GRID`, its note above it. empty: the text for no rows."""
    rows = [{"name": name, "cells": [_cell(text) for text in cells]} for name, *cells in table.rows]
    about = {"label": table.title, "caption": table.note, "empty": empty}
    return html.values({"head": table.head, "rows": rows, **about})


def _cell(text: str) -> dict:
    """A cell's first line, and the rest, shown below it or, where there is room, beside it."""
    value, *below = text.split("\n")
    return {"value": value, "below": below}
