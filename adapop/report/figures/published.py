"""The paper's own numbers as a picture, apart from ours."""

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from adapop.report.figures import look
from adapop.report.figures.look import FAINT, RETAIN, UNLEARNED, blank, named_rows

ROW_PIXELS, FRAME_PIXELS = 27, 110
NAME_CHARACTERS = 40


def published_recalls(rows: Sequence[tuple[str, float, float]], about: str) -> go.Figure:
    """A row a method (name, forget recall, retain recall), least forget recall first.

    about: model and data set, printed into the picture with the word published.
    """
    ordered = sorted(rows, key=lambda row: row[1])
    figure = blank(FRAME_PIXELS + ROW_PIXELS * len(ordered))
    places = list(range(len(ordered)))
    for _, forget, retain in ordered:
        at = len(figure.data)
        figure.add_scatter(
            x=[forget, retain], y=[at, at], mode="lines", line=dict(color=FAINT, width=2), hoverinfo="skip",
            showlegend=False,
        )  # fmt: skip
    for name, column, color, symbol in (
        ("forget (less is better)", 1, UNLEARNED, "diamond"),
        ("retain (more is better)", 2, RETAIN, "square-open"),
    ):
        figure.add_scatter(
            x=[row[column] for row in ordered],
            y=places,
            mode="markers",
            marker=dict(color=color, symbol=symbol, size=10, line=dict(width=2, color=color)),
            name=name,
            hovertemplate="%{x:.1%}<extra></extra>",
        )
    named_rows(figure, [name for name, *_ in ordered], NAME_CHARACTERS)
    look.row_labels(figure, list(zip(ordered[0][1:] if ordered else (), ("forget", "retain"))))
    figure.update_yaxes(zeroline=False)
    title = f"published, not measured here:<br>{escape(about)}"
    figure.update_xaxes(title_text=title, range=[-0.03, 1.05], tickformat=".0%")
    figure.update_layout(margin=dict(l=104, b=64), showlegend=False)
    return look.titled(figure, f"Published: {ordered[0][0]} forgets most" if ordered else "")
