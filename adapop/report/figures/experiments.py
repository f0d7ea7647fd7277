"""Figures of experiments: panels of lines, differences with intervals, marks, fronts."""

import math
from collections.abc import Collection, Mapping, Sequence
from html import escape

import plotly.graph_objects as go

from adapop.probes.distance import AS_NEVER_LEARNT, OVER, UNDER
from adapop.probes.intervals import Interval
from adapop.report.figures import look
from adapop.report.figures.outcomes import Outcome, pareto_front
from adapop.report.figures.probes import STATE_COLOR

Curve = Sequence[tuple[float, Interval]]
PANEL_PIXELS, TITLE_PIXELS, FRAME_PIXELS, ROW_PIXELS = 190, 60, 110, 26
NAME_CHARACTERS = 34
LINE_COLORS = (look.UNLEARNED, look.ORIGINAL, look.CALM, look.ALARM, look.CALM)
MARK_OFFSET = 0.22  # between marks of a row, so that their intervals do not overlap
DASHED = "cosine"  # lines of a measure other than recall, dashed as in the paper
MOST_TICKS = 5  # of a logarithmic axis: each value drawn is named if there are no more
LINE_SYMBOLS = ("circle", "square", "diamond", "x", "triangle-up")


def line_panels(
    panels: Mapping[str, Mapping[str, Curve]],
    x_title: str,
    y_title: str,
    log_x: bool = False,
    columns: int = 4,
) -> go.Figure:
    """A panel per name, each with the same lines of points (x, interval), on shared axes.

    A line named after a tier has the tier's colour and marker. Lines of a cosine are dashed."""
    across = min(columns, max(1, len(panels)))
    down = max(1, math.ceil(len(panels) / across))
    height = FRAME_PIXELS + down * (PANEL_PIXELS + TITLE_PIXELS)
    figure = look.panels(
        height,
        rows=down,
        cols=across,
        shared_xaxes="all",
        shared_yaxes="all",
        vertical_spacing=TITLE_PIXELS / (height - FRAME_PIXELS),
        horizontal_spacing=0.03,
        subplot_titles=[escape(name) for name in panels],
    )
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    for place, lines in enumerate(panels.values()):
        for name, line in lines.items():
            _line(figure, name, names.index(name), line, place // across + 1, place % across + 1)
    figure.update_xaxes(showticklabels=True, type="log" if log_x else "linear")
    places = sorted({x for lines in panels.values() for line in lines.values() for x, _ in line})
    if log_x and len(places) <= MOST_TICKS:
        names_of = [f"{x:.1e}".replace(".0e", "e").replace("e-0", "e-") for x in places]
        figure.update_xaxes(tickvals=places, ticktext=names_of, tickfont_size=10)
    figure.update_xaxes(title=x_title, row=down)
    figure.update_yaxes(title=y_title, col=1)
    figure.update_yaxes(range=[-0.03, 1.05])
    legend = dict(yref="container", y=1, yanchor="top")
    return figure.update_layout(margin=dict(t=64), legend=legend)


def _line(figure: go.Figure, name: str, order: int, line: Curve, row: int, column: int) -> None:
    tier = name.removesuffix(look.ALL_WORDINGS)
    other = look.CALM if name.startswith("retain") else LINE_COLORS[order % len(LINE_COLORS)]
    color = look.TIER_COLOR.get(tier) or other
    marker = look.mark(color, tier, result=tier != name)
    if tier not in look.TIER_COLOR:
        marker["symbol"] = LINE_SYMBOLS[order % len(LINE_SYMBOLS)]
    figure.add_scatter(
        x=[x for x, _ in line],
        y=[value.mean for _, value in line],
        error_y=look.error_bars([value for _, value in line], width=2),
        mode="lines+markers",
        line=dict(color=color, width=2, dash="dash" if name.endswith(DASHED) else "solid"),
        marker=marker,
        name=name,
        legendgroup=name,
        showlegend=all(trace.name != name for trace in figure.data),
        hovertemplate=f"{escape(name)}: %{{y:.0%}}<extra></extra>",
        row=row,
        col=column,
    )


def difference_panels(panels: Mapping[str, Sequence[tuple[str, Interval]]], base: str) -> go.Figure:
    """Differences of each arm to a base, the zero line: a row per arm, a panel per measure."""
    names = list(dict.fromkeys(name for rows in panels.values() for name, _ in rows))
    figure = _row_panels(panels, names)
    for place, (title, rows) in enumerate(panels.items(), start=1):
        marker = dict(color=look.UNLEARNED, symbol="diamond", size=8)
        hover = "%{x:+.2f}<extra></extra>"
        drawn = dict(name=title, marker=marker, showlegend=False, hovertemplate=hover)
        _marks(figure, place, rows, names, **drawn)
    zero = dict(zeroline=True, zerolinecolor=look.INK, zerolinewidth=2)
    figure.update_xaxes(title=f"minus {escape(base)}", **zero)
    return figure.update_layout(margin_t=40)


def _marks(
    figure: go.Figure,
    place: int,
    rows: Sequence[tuple[str, Interval]],
    names: list[str],
    apart: float = 0.0,
    **drawn,
) -> None:
    """Draws marks with intervals in a panel, each in its name's row. place: the panel's, from 1.
    apart: how far below the middle of the row, in rows."""
    figure.add_scatter(
        x=[value.mean for _, value in rows],
        y=[names.index(name) + apart for name, _ in rows],
        error_x=look.error_bars([value for _, value in rows], width=2),
        mode="markers",
        row=1,
        col=place,
        **drawn,
    )


def mark_panels(panels: Mapping[str, Mapping[str, Sequence[tuple[str, Interval]]]]) -> go.Figure:
    """A panel per measure with its own axis, a row per arm, a mark per name."""
    every = [rows for marks in panels.values() for rows in marks.values()]
    names = list(dict.fromkeys(name for rows in every for name, _ in rows))
    figure = _row_panels(panels, names)
    for place, marks in enumerate(panels.values(), start=1):
        for order, (mark, rows) in enumerate(marks.items()):
            color = look.TIER_COLOR.get(mark, LINE_COLORS[order])
            symbol = look.TIER_SYMBOL.get(mark, LINE_SYMBOLS[order])
            marker = dict(color=color, symbol=symbol, size=8)
            apart = MARK_OFFSET * (order - (len(marks) - 1) / 2)
            legend = dict(name=mark, legendgroup=mark, showlegend=place == 1)
            hover = f"{escape(mark)}: %{{x:.3g}}<extra></extra>"
            _marks(figure, place, rows, names, apart, marker=marker, hovertemplate=hover, **legend)
    return figure


def state_panels(panels: Mapping[str, Mapping[str, Mapping[str, float]]]) -> go.Figure:
    """Stacked shares of the states against the oracle: a panel per tier, a row per arm."""
    names = list(next(iter(panels.values())))
    figure = _row_panels(panels, names)
    for place, arms in enumerate(panels.values(), start=1):
        for state in (AS_NEVER_LEARNT, UNDER, OVER):
            figure.add_bar(
                x=[shares.get(state) for shares in arms.values()],
                y=list(range(len(names))),
                orientation="h",
                marker=dict(color=STATE_COLOR[state], line=dict(color="white", width=1)),
                name=state,
                legendgroup=state,
                showlegend=place == 1,
                hovertemplate=f"{state}: %{{x:.0%}}<extra></extra>",
                row=1,
                col=place,
            )
    figure.update_xaxes(range=[0, 1], tickformat=".0%")
    return figure.update_layout(barmode="stack", margin_r=30)


def _row_panels(titles: Collection[str], names: Sequence[str]) -> go.Figure:
    """An empty figure: panels side by side, a row per name in each, the legend above."""
    panels = dict(rows=1, cols=max(1, len(titles)), subplot_titles=[*map(escape, titles)])
    height = FRAME_PIXELS + ROW_PIXELS * max(1, len(names))
    figure = look.panels(height, shared_yaxes=True, **panels)
    look.named_rows(figure, names, NAME_CHARACTERS)
    legend = dict(yref="container", y=1, yanchor="top")
    return figure.update_layout(margin=dict(l=230, t=64), legend=legend)


def front_panels(panels: Mapping[str, Sequence[Outcome]], x_title: str, y_title: str) -> go.Figure:
    """How much is left to forget against how much is kept, a panel per place with its own axes;
    better is towards the upper left. A line joins the arms on the Pareto front, which are named;
    the others show their names on hover."""
    titles = [escape(title) for title in panels]
    beside = dict(rows=1, cols=max(1, len(panels)), subplot_titles=titles)
    figure = look.panels(2 * PANEL_PIXELS, **beside)
    for place, points in enumerate(panels.values(), start=1):
        front = pareto_front(points)
        x, y = [one.forget.mean for one in front], [one.holdout.mean for one in front]
        line, panel = dict(color=look.CALM, width=1, dash="dot", shape="hv"), dict(row=1, col=place)
        figure.add_scatter(x=x, y=y, mode="lines", line=line, **look.UNLISTED, **panel)
        names = {one.name for one in front}
        colors = [look.UNLEARNED if one.name in names else look.CALM for one in points]
        figure.add_scatter(
            x=[one.forget.mean for one in points],
            y=[one.holdout.mean for one in points],
            error_x=look.error_bars([one.forget for one in points], color=look.GRID, width=0),
            error_y=look.error_bars([one.holdout for one in points], color=look.GRID, width=0),
            mode="markers+text",
            text=[escape(one.name) if one.name in names else "" for one in points],
            textposition=[_label_side(one, front) for one in points],
            textfont=dict(size=11),
            marker=dict(color=colors, size=8),
            customdata=[escape(one.name) for one in points],
            hovertemplate="%{customdata}: %{x:.0%} of the forget set answered, "
            "%{y:.0%} of the held-out facts<extra></extra>",
            showlegend=False,
            row=1,
            col=place,
        )
    figure.update_xaxes(title=x_title, tickformat=".0%")
    figure.update_yaxes(tickformat=".0%")
    figure.update_yaxes(title=y_title, col=1)
    return figure.update_layout(margin=dict(t=40))


def _label_side(one: Outcome, front: Sequence[Outcome]) -> str:
    """Position of a point's label: alternately below and above the front, inside the panel."""
    if one.forget.mean > 0.8:
        return "bottom left"
    above = one.forget.mean > 0.25 and one in front and front.index(one) % 2
    return "top left" if above else "bottom right"
