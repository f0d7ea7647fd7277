"""The look of every figure, readable on light and dark pages.

Colours say the same thing everywhere: one ramp for popularity (light is rare, dark is popular) with a marker shape of
its own per tier; blue is the original, orange the unlearned model.
"""

from collections.abc import Sequence
from html import escape
from textwrap import wrap

import plotly.graph_objects as go

from adapop.probes.intervals import Interval

INK, GRID, FAINT = "#808080", "rgba(128,128,128,0.22)", "rgba(128,128,128,0.45)"
TIER_COLOR = {"rare": "#8fb8de", "middle": "#4a7fc1", "popular": "#7a4fd0"}
TIER_SYMBOL = {"rare": "circle", "middle": "square", "popular": "diamond"}
ORIGINAL, UNLEARNED, ALARM, CALM = "#3b82c4", "#e07a1f", "#d64545", "#2a9d8f"
RETAIN = "#8a8a8a"


def empty(text: str, height: int = 330) -> go.Figure:
    """Axes without data, and a word on what will be there, as high in pixels as that will be."""
    figure = blank(height)
    figure.add_annotation(text=text, showarrow=False, x=0.5, y=0.5, xref="paper", yref="paper")
    figure.update_xaxes(showticklabels=False, range=[0, 1])
    figure.update_yaxes(showticklabels=False, range=[0, 1])
    return figure


def blank(height: int) -> go.Figure:
    """A figure with nothing on it yet."""
    return neutral(go.Figure(), height)


def neutral(figure: go.Figure, height: int) -> go.Figure:
    """Gives a figure the look and a fixed height in pixels, so that the page does not jump."""
    figure.update_layout(
        template="none",
        height=height,
        margin=dict(l=56, r=16, t=12, b=48),
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font=dict(color=INK, size=13, family="IBM Plex Sans, ui-sans-serif, system-ui, sans-serif"),
        legend=dict(orientation="h", yanchor="bottom", y=1.02, x=0),
        hovermode="closest",
    )
    axes = dict(gridcolor=GRID, zerolinecolor=GRID, linecolor=GRID, title_font_size=13)
    figure.update_xaxes(**axes)
    figure.update_yaxes(**axes)
    return figure


def error_bars(recalls: Sequence[Interval], color: str = "", width: int = 3) -> dict:
    """Error bars of some means; numbers without an interval (low = high) get none."""
    return dict(
        type="data",
        array=[one.high - one.mean for one in recalls],
        arrayminus=[one.mean - one.low for one in recalls],
        thickness=1,
        width=width,
        **({"color": color} if color else {}),
        visible=any(one.high > one.low for one in recalls),
    )


def named_rows(figure: go.Figure, names: Sequence[str], characters: int) -> None:
    """Gives each place 0, 1, ... of the vertical axes a name, the first at the top. characters: of a line of a name."""
    labels = ["<br>".join(map(escape, wrap(name, characters))) for name in names]
    figure.update_yaxes(tickvals=list(range(len(labels))), ticktext=labels, range=[len(labels) - 0.5, -0.5])


def as_html(figure: go.Figure, library: bool) -> str:
    """The figure as a piece of a page, as wide as its place. library: with plotly.js itself, which a page needs once.

    Nothing is loaded from elsewhere, and no text of the figure can end the script it stands in.
    """
    still = go.Figure(figure).update_layout(dragmode=False)  # a finger that scrolls the page must not zoom
    return still.to_html(full_html=False, include_plotlyjs=library, config={"displayModeBar": False})
