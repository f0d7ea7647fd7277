"""Style shared by all figures, readable on light and dark pages.

Colours have the same meaning everywhere: three shades of blue for popularity, the more popular the
stronger the contrast to the page, with one marker shape per tier; a greyed violet is the original,
orange the unlearned model, teal the facts to be kept. On a dark page style.css has other blues for
the tiers, the more popular the lighter.

A figure has no title: where it is shown, a plain one stands above it that names what is drawn.
"""

from collections.abc import Sequence
from html import escape
from textwrap import wrap

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from adapop.probes.intervals import Interval

INK, GRID, FAINT = "#808080", "rgba(128,128,128,0.22)", "rgba(128,128,128,0.45)"
TIER_COLOR = {"rare": "#5596d0", "middle": "#235a9e", "popular": "#0e2450"}
TIER_SYMBOL = {"rare": "circle", "middle": "square", "popular": "diamond"}
ORIGINAL, UNLEARNED, ALARM, CALM = "#6d6d90", "#c8641a", "#d64545", "#1f8a7d"
ALL_WORDINGS = ", all other wordings"  # suffix of marks beside lines of one wording
UNLISTED = dict(hoverinfo="skip", showlegend=False)  # of a trace that is a guide to the eye
LABEL_PIXELS, ROUNDS = 15, 60  # least distance of labels; most rounds of moving them apart
# removes all buttons but the one that saves the picture
NO_TOOLBAR = dict(
    remove=["zoom", "pan", "select", "lasso", "zoomin", "zoomout", "autoscale", "resetscale"]
)
STYLE = dict(
    template="none",
    margin=dict(l=62, r=16, t=12, b=54),
    paper_bgcolor="rgba(0,0,0,0)",
    plot_bgcolor="rgba(0,0,0,0)",
    font=dict(color=INK, size=13, family="IBM Plex Sans, ui-sans-serif, system-ui, sans-serif"),
    legend=dict(orientation="h", yanchor="bottom", y=1.02, x=0),
    hovermode="closest",
    dragmode=False,  # a finger that scrolls the page must not zoom
    modebar=NO_TOOLBAR,
)
AXIS = dict(gridcolor=GRID, zerolinecolor=GRID, linecolor=GRID, title_font_size=13)


def empty(text: str, height: int = 330) -> go.Figure:
    """Empty axes with a placeholder text, in the final figure's height in pixels."""
    centred = dict(text=text, showarrow=False, x=0.5, y=0.5, xref="paper", yref="paper")
    axis = AXIS | dict(showticklabels=False, range=[0, 1])
    layout = dict(height=height, xaxis=axis, yaxis=axis, annotations=[centred])
    return go.Figure(layout=STYLE | layout)


def end_labels(
    figure: go.Figure, ends: Sequence[tuple[float, str]], at: float, span: float, **place
) -> None:
    """Labels lines at their right end, moved apart where they overlap. ends: height and name of
    each. at: where the lines end. span: length of the vertical axis. place: row and col, if any."""
    drawn = figure.layout.height - figure.layout.margin.t - figure.layout.margin.b
    heights = sorted(height for height, _ in ends)
    heights = spaced(heights, LABEL_PIXELS * span / drawn, 0.0, max([span * 0.9, *heights]))
    for height, (_, name) in zip(heights, sorted(ends)):
        beside = dict(xanchor="left", yanchor="middle", xshift=8, font_size=12)
        figure.add_annotation(x=at, y=height, text=escape(name), showarrow=False, **beside, **place)


def row_labels(figure: go.Figure, marks: Sequence[tuple[float, str]], row: int = 0) -> None:
    """Labels the marks of a row, with the names above the row. marks: (position on the axis, 0 to
    1; name) of each."""
    for x, (_, name) in zip(spaced([x for x, _ in sorted(marks)], 0.24), sorted(marks)):
        words = dict(text=escape(name), font_size=11, yanchor="middle", xanchor="center")
        place = dict(x=x, y=row - 0.5 - 0.12 * (not row), xref="x", yref="y")
        figure.add_annotation(showarrow=False, **place, **words)
    if not row:
        figure.layout.yaxis.range = [figure.layout.yaxis.range[0], -0.9]


def spaced(
    places: Sequence[float], room: float, low: float = 0.03, high: float = 1.0
) -> list[float]:
    """Ascending places, moved within low and high to be at least about `room` apart."""
    moved = list(places)
    for _ in range(ROUNDS):
        moved = [min(max(place, low), high) for place in moved]
        for at in range(len(moved) - 1):
            short = max(0.0, room - moved[at + 1] + moved[at])
            moved[at], moved[at + 1] = moved[at] - short / 2, moved[at + 1] + short / 2
    return moved


def blank(height: int) -> go.Figure:
    """An empty figure in the style. height: in pixels, fixed, so that the page does not jump."""
    # built in one go: an update takes ten times as long, and the app opens with twenty figures
    return go.Figure(layout=STYLE | dict(height=height, xaxis=AXIS, yaxis=AXIS))


def panels(height: int, **layout) -> go.Figure:
    """Empty panels in the style, with small headings. layout: see `make_subplots`."""
    figure = make_subplots(**layout).update_layout(height=height, **STYLE)
    return figure.update_xaxes(AXIS).update_yaxes(AXIS).update_annotations(font_size=13)


def mark(color: str, tier: str, result: bool = False) -> dict:
    """A tier's marker; larger and with an edge for a result beside a line."""
    marker = dict(color=color, symbol=TIER_SYMBOL.get(tier, "circle"), size=13 if result else 8)
    return marker | (dict(line=dict(width=1.5, color="#fff")) if result else {})


def error_bars(recalls: Sequence[Interval], color: str = "", width: int = 3) -> dict:
    """Plotly's settings of error bars; not visible if no mean has an interval (low < high)."""
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
    """Labels the positions 0, 1, ... of the vertical axes from the top. characters: of a line."""
    labels = ["<br>".join(map(escape, wrap(name, characters))) for name in names]
    figure.update_yaxes(
        tickvals=list(range(len(labels))), ticktext=labels, range=[len(labels) - 0.5, -0.5]
    )


def as_html(figure: go.Figure, library: bool) -> str:
    """The figure as HTML, as wide as its container. library: with plotly.js, once per page.

    Nothing is loaded from elsewhere, and no text of the figure can end the script around it."""
    quiet = {"displayModeBar": False}
    return figure.to_html(full_html=False, include_plotlyjs=library, config=quiet)
