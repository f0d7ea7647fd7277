"""Scatter of forgetting against its cost: recall of facts to forget and of held-out facts."""

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from adapop.probes.intervals import Interval
from adapop.probes.prompts import DIRECT
from adapop.report.figures import look
from adapop.report.figures import outcomes as contest
from adapop.report.figures.outcomes import PANELS, RECORDED, Outcome
from adapop.report.table import percent

# Places of a name beside its point: side, and pixels above. The first free one is taken; level with
# the point, its interval runs through the name.
NAME_PLACES = [("left", 13), ("left", -13), ("right", 13), ("right", -13)]
NAME_PLACES += [("left", 0), ("right", 0)]
# About the size of the plot without axes, used to place names; and the margin beside it.
SCATTER_PIXELS, MARGIN = (420, 400), 16
LEAST_SPAN = 0.3  # least length of an axis, so that a difference of a few facts does not fill it


def forget_against_holdout(outcomes: Sequence[Outcome], form: str = PANELS[DIRECT]) -> go.Figure:
    """Recall of facts to forget, less to the right, against recall of held-out facts: better is up
    and right. With the Pareto front: points to its left and below are beaten. form: how the facts
    to forget were asked, in words."""
    figure, front = look.blank(500), contest.pareto_front(outcomes)
    if front:
        figure.add_scatter(
            x=[one.forget.mean for one in front],
            y=[one.holdout.mean for one in front],
            mode="lines",
            line=dict(color=look.INK, width=1.5, dash="dash", shape="hv"),
            name="Pareto front",
            hoverinfo="skip",
        )
    placed = [one for one in outcomes if one.forget is not None and one.holdout is not None]
    beaten = [one for one in placed if contest.contests(one) and one not in front]
    collapsed = [one for one in placed if one.collapsed and not (one.recorded or one.apart)]
    for name, color, symbol, chosen in (
        ("original", look.ORIGINAL, "circle-open", [one for one in placed if one.original]),
        ("on the front", look.UNLEARNED, "diamond", front),
        ("behind it", look.UNLEARNED, "diamond-open", beaten),
        ("collapsed", look.ALARM, "square-open", collapsed),
        ("not compared", look.FAINT, "x", [one for one in placed if one.apart]),
        (RECORDED, look.CALM, "hexagon2-open", [one for one in placed if one.recorded]),
    ):
        if chosen:
            _points(figure, chosen, name, color, symbol)
    ranged = [one for one in placed if not one.original]
    across = _limits([one.forget for one in ranged])
    along = _limits([one.holdout for one in ranged])
    axis_title = "held-out facts answered, asked as trained: better →"
    # less is better: the axis runs from right to left
    figure.update_xaxes(title_text=f"forget set, {form}: better →", range=across[::-1])
    figure.update_yaxes(title_text=axis_title, range=along)
    for axis, (low, high) in ((figure.layout.xaxis, across), (figure.layout.yaxis, along)):
        axis.update(tickformat=".0%", tickvals=_ticks(low, high))
    figure.update_layout(showlegend=False)
    within = [one for one in placed if across[0] <= one.forget.mean <= across[1]]
    _name_points(figure, [*front, *(one for one in within if one not in front)], across, along)
    for one in placed:
        if one.original and one not in within:
            shares = f"forget set {percent(one.forget.mean)}, held-out {percent(one.holdout.mean)}"
            text = f"original, outside: {shares} ○"
            corner = dict(x=0, y=0, xref="paper", yref="paper", xanchor="left", yanchor="bottom")
            figure.add_annotation(text=text, showarrow=False, font=dict(size=12), **corner)
    return figure


def _name_points(
    figure: go.Figure, outcomes: Sequence[Outcome], across: Sequence[float], along: Sequence[float]
) -> None:
    """Labels each point whose label covers no other; the rest show their names on hover."""
    wide = SCATTER_PIXELS[0] / (across[1] - across[0])
    high = SCATTER_PIXELS[1] / (along[1] - along[0])
    places = [(across[1] - one.forget.mean, one.holdout.mean - along[0]) for one in outcomes]
    centres = [(x * wide, y * high) for x, y in places]
    taken = [(x - 8, y - 8, x + 8, y + 8) for x, y in centres]
    for one, (x, y) in zip(outcomes, centres):
        name = one.name_among(outcomes)
        width = 7 * len(name)
        for anchor, level in NAME_PLACES:
            left = x + 11 if anchor == "left" else x - 11 - width
            box = (left, y + level - 7, left + width, y + level + 7)
            free = all(box[2] < a or c < box[0] or box[3] < b or d < box[1] for a, b, c, d in taken)
            if free and left >= 0 and box[2] <= SCATTER_PIXELS[0] + MARGIN:
                taken.append(box)
                shift = 11 if anchor == "left" else -11
                beside = dict(xanchor=anchor, xshift=shift, yanchor="middle", yshift=level)
                place = dict(x=one.forget.mean, y=one.holdout.mean, showarrow=False, font_size=12)
                figure.add_annotation(text=escape(name), **place, **beside)
                break


def _limits(recalls: Sequence[Interval]) -> list[float]:
    """Axis limits that show close contestants apart; the original may lie outside."""
    if not recalls:
        return [-0.05, 1.05]
    low, high = min(one.low for one in recalls), max(one.high for one in recalls)
    room = max(0.03, (LEAST_SPAN - (high - low)) / 2)
    return [max(-0.05, low - room), min(1.05, high + room)]


def _ticks(low: float, high: float) -> list[float]:
    """Axis ticks of shares, within 0% and 100%."""
    step = next(step for step, most in ((0.05, 0.35), (0.1, 0.7), (0.2, 2.0)) if high - low < most)
    ticks = (round(at * step, 2) for at in range(21))
    return [share for share in ticks if max(0.0, low) <= share <= min(1.0, high)]


def _points(
    figure: go.Figure, chosen: Sequence[Outcome], name: str, color: str, symbol: str
) -> None:
    labels = [escape(one.label) + (f", {RECORDED}" if one.recorded else "") for one in chosen]
    figure.add_scatter(
        x=[one.forget.mean for one in chosen],
        y=[one.holdout.mean for one in chosen],
        error_x=look.error_bars([one.forget for one in chosen], color) | {"thickness": 1.5},
        error_y=look.error_bars([one.holdout for one in chosen], color) | {"thickness": 1.5},
        mode="markers",
        marker=dict(color=color, size=13, symbol=symbol, line=dict(width=2, color=color)),
        customdata=[[label] for label in labels],
        hovertemplate="%{customdata[0]}: forget set %{x:.0%}, held-out %{y:.0%}<extra></extra>",
        name=name,
    )
