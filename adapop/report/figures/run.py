"""Figures of a run: controller, recall by epoch, and the outcome."""

from collections.abc import Sequence

import plotly.graph_objects as go

from adapop.config.run import RunConfig
from adapop.facts.fact import TIERS
from adapop.probes.intervals import Interval
from adapop.report.figures import look
from adapop.report.figures.losses import FORGET_COLOR, TO_FORGET
from adapop.training.events import EpochDone, Measured

CONTROLLER_PIXELS = 230
# controller -> (effect of drift above the tolerance, the retain weight)
CONTROLLER_NAMES = {
    "dual": ("δ above ε: λ rises", "α = α₀ + λ"),
    "fixed": ("δ above ε, α fixed", "α"),
    "primal": ("δ above ε (PDU does not use it)", "μ, PDU's weight"),
}
RECALL_PIXELS = 230
BRACKET = 58  # pixels right of the lines, beyond their names
ONE_WORDING = "in one other wording"
LINES_AND_MARKS = "lines: one other wording; marks: all of them"
ONE, ALL_WORDINGS = ", one other wording", look.ALL_WORDINGS  # suffixes of lines' names
RANGE = "%{customdata[0]:.0%} to %{customdata[1]:.0%}"  # an interval, shown on hover
KEPT = ("retain", "holdout", "neighbours", "utility")
BELOW = {"holdout": "held-out"}  # on the axis


def controller_chart(
    epochs: Sequence[EpochDone],
    config: RunConfig,
    below: tuple[str, Sequence[EpochDone]] = ("", ()),
) -> go.Figure:
    """Drift against the tolerance above, the retain weight alpha = alpha0 + lambda below. below:
    the name and the epochs of an earlier run, whose curves are drawn thin behind."""
    beneath = dict(shared_xaxes=True, vertical_spacing=0.12, row_heights=[0.58, 0.42])
    figure = look.panels(CONTROLLER_PIXELS, rows=2, cols=1, **beneath)
    trained = [row for row in epochs if row.epoch > 0]
    above, weight = CONTROLLER_NAMES[config.controller]
    name, earlier = below
    edge = max([config.epochs, *(row.epoch for row in earlier)]) + 0.6
    _draw_drift(figure, trained, config.tolerance, above, edge)
    _draw_weight(figure, epochs, weight, config.controller == "dual", edge)
    figure.update_xaxes(range=[-0.4, edge], dtick=max(1, config.epochs // 5))
    figure.update_xaxes(title_text="epoch", row=2, col=1)
    figure.update_layout(barmode="overlay", showlegend=False, margin=dict(r=96))
    if earlier:
        _lay_over(figure, name, earlier)
    return figure


def _lay_over(figure: go.Figure, name: str, epochs: Sequence[EpochDone]) -> None:
    """Draws another run's drift, α and λ thin behind a controller chart, named in the legend."""
    drawn = len(figure.data)
    figure.update_traces(showlegend=False)
    trained = [row for row in epochs if row.epoch > 0]
    curves = [("δ", 1, look.ALARM, "solid", [(row.epoch, row.drift) for row in trained])]
    curves.append(("α", 2, look.UNLEARNED, "solid", [(row.epoch, row.alpha) for row in epochs]))
    curves.append(("λ", 2, look.INK, "dash", [(row.epoch, row.lam) for row in epochs]))
    for sign, row, color, dash, points in curves:
        x, y = zip(*points)
        line = dict(color=color, width=1, dash=dash, shape="hv" if row == 2 else "linear")
        named = dict(name=f"{name}: {sign}", mode="lines", legendgroup=name, showlegend=False)
        figure.add_scatter(x=x, y=y, line=line, row=row, col=1, **named)
        axis = figure.layout.yaxis if row == 1 else figure.layout.yaxis2
        axis.range = [axis.range[0], max(axis.range[1], 1.1 * max(y))]
    # one entry for all three, whose panels say what they are: there is little room
    thin = dict(color=look.INK, width=1)
    figure.add_scatter(x=[None], y=[None], mode="lines", line=thin, name=name, row=1, col=1)
    figure.data = (*figure.data[drawn:], *figure.data[:drawn])
    figure.update_layout(showlegend=True, margin_t=34)


def _draw_drift(
    figure: go.Figure, trained: Sequence[EpochDone], tolerance: float, above: str, edge: float
) -> None:
    """Draws the upper panel. above: name of bars above the tolerance. edge: right end, in
    epochs."""
    top, trained_epochs = dict(row=1, col=1), [row.epoch for row in trained]
    for name, color, chosen in (
        ("δ within ε", look.CALM, [row for row in trained if row.drift <= tolerance]),
        (above, look.ALARM, [row for row in trained if row.drift > tolerance]),
    ):
        x, y = [row.epoch for row in chosen], [row.drift for row in chosen]
        figure.add_bar(x=x, y=y, marker_color=color, name=name, **top)
    from_start = [row.drift_from_start for row in trained]
    figure.add_scatter(
        x=trained_epochs,
        y=from_start,
        mode="markers+lines",
        line=dict(color=look.INK, dash="dot", width=1.5),
        marker=dict(symbol="x-thin-open", size=8),
        name="δ from before training",
        **top,
    )
    figure.add_hline(y=tolerance, line=dict(color=look.ALARM, dash="dash", width=1.5), **top)
    ends = [(tolerance, "ε, tolerated"), *((drift, "since the start") for drift in from_start[-1:])]
    highest = max([row.drift for row in trained] + from_start + [tolerance * 2])
    figure.update_yaxes(title_text="drift δ", range=[-0.2 * highest, 1.1 * highest], **top)
    look.end_labels(figure, ends, edge, 2 * highest, **top)
    # below its bar, where no mark crosses a number; few, because a phone has little room
    numbers = [f"{row.drift:.2g}" if row.drift > tolerance else "" for row in trained]
    foot = dict(y=[highest * -0.1] * len(trained), textfont_color=look.ALARM)
    figure.add_scatter(x=trained_epochs, mode="text", text=numbers, **foot, **look.UNLISTED, **top)


def _draw_weight(
    figure: go.Figure, epochs: Sequence[EpochDone], name: str, with_lambda: bool, edge: float
) -> None:
    """Draws the lower panel: α, and λ where the controller has one. edge: right end, in epochs."""
    bottom, numbers = dict(row=2, col=1), [row.epoch for row in epochs]
    lines = [("α", name, look.UNLEARNED, "solid", [row.alpha for row in epochs])]
    if with_lambda:
        lines.append(("λ", "λ", look.INK, "dash", [row.lam for row in epochs]))
    for _, title, color, dash, values in lines:
        line = dict(color=color, width=3, shape="hv", dash=dash)
        named = dict(name=title, cliponaxis=False, **bottom)
        figure.add_scatter(x=numbers, y=values, mode="lines+markers", line=line, **named)
    most = 1.25 * max([0.1, *(value for *_, values in lines for value in values)])
    low = -0.08 * most  # a λ of 0 is not on the axis
    signs = " and ".join(sign for sign, *_ in lines)
    figure.update_yaxes(title_text=signs, range=[low, most], **bottom)
    ends = [(values[-1], f"{sign} {values[-1]:.3g}") for sign, *_, values in lines if values]
    # the panel has about two fifths of the picture, and labels keep their distance in pixels
    look.end_labels(figure, ends, edge, 2.5 * (most - low), **bottom)


def by_epoch(measured: Sequence[Measured], full: bool = False) -> list[Measured]:
    """One measurement per epoch. Where an epoch has two, full=False takes the quick one, with first
    rewordings as in the other epochs, and full=True the full one, which is the result."""
    events = {event.epoch: event for event in sorted(measured, key=lambda one: one.full == full)}
    return [events[epoch] for epoch in sorted(events)]


def wordings_of(event: Measured) -> str:
    """Text that says which rewordings a measurement asked."""
    return "in other words" if event.full else ONE_WORDING


def _tiers(measured: Sequence[Measured]) -> dict[str, str]:
    """Name in a figure -> tier of the facts to forget; a single entry for facts without scores."""
    there = {row["tier"] for event in measured for row in event.rows if row["group"] == "forget"}
    return {tier: tier for tier in TIERS if tier in there} or {TO_FORGET: "all"}


def recall_chart(measured: Sequence[Measured], planned: int) -> go.Figure:
    """Recall of the forget facts by epoch, a line per tier, reworded where measured, with shaded
    intervals. The full measurement, with all rewordings, is drawn as marks at the epoch of the
    result, with a bracket for its gap. Direct recall is only in the table."""
    figure, epochs, ends = look.blank(RECALL_PIXELS), by_epoch(measured), {}
    reworded = any(event.recall("forget", "reworded") is not None for event in epochs)
    drawn_form = "reworded" if reworded else "direct"
    reached = max((event.epoch for event in epochs), default=0)
    full = [event for event in by_epoch(measured, full=True) if event.full]
    result = next((event for event in reversed(full) if event.epoch), None)
    # marks of all rewordings, beside lines of one
    marked = full if result and reworded and not all(event.full for event in epochs) else []
    drawn = [("direct", "", epochs), ("reworded", ONE if marked else ", in other words", epochs)]
    drawn += [("reworded", ALL_WORDINGS, marked)] * bool(marked)
    for name, tier in _tiers(epochs).items():
        for form, suffix, events in drawn:
            shares_by_epoch = [(event.epoch, event.share("forget", form, tier)) for event in events]
            points = [(x, share) for x, share in shares_by_epoch if share is not None]
            mark, color, visible = events is marked, FORGET_COLOR[name], form == drawn_form
            if visible and not mark:
                _band(figure, points, color)
            _draw_recall(figure, points, name + suffix, tier, color, mark, visible)
            if points and visible and points[-1][0] == reached:
                ends[name] = points[-1][1].mean
    # before training all lines are one point
    names = [(share, name) for name, share in ends.items() if reached]
    look.end_labels(figure, names, reached, 1.08)
    ticks = [*range(0, planned + 1, max(1, planned // 5))]
    figure.update_xaxes(title_text="epoch", range=[-0.04 * planned, 1.04 * planned], tickvals=ticks)
    wordings = "as trained" if drawn_form == "direct" else wordings_of(epochs[-1])
    title = "still answered" if marked else f"answered {wordings}"
    figure.update_yaxes(title=dict(text=title, font_size=12), tickformat=".0%")
    figure.update_yaxes(range=[-0.03, 1.05])
    figure.update_layout(showlegend=False, margin=dict(r=BRACKET + 80, t=24 if marked else 12))
    if marked:
        above = dict(xref="paper", yref="paper", x=0, y=1, xanchor="left", yanchor="bottom")
        figure.add_annotation(text=LINES_AND_MARKS, font_size=11, showarrow=False, **above)
    _bracket(figure, [event for event in full if event.epoch and event.gap])
    return figure


def _draw_recall(
    figure: go.Figure,
    points: Sequence[tuple[int, Interval]],
    name: str,
    tier: str,
    color: str,
    marks: bool,
    visible: bool,
) -> None:
    """Draws a tier's (epoch, recall) points as a line or marks. Invisible ones are in the table
    only."""
    shares = [share for _, share in points]
    figure.add_scatter(
        x=[x for x, _ in points],
        y=[share.mean for share in shares],
        error_y=look.error_bars(shares) | {"thickness": 0},  # for the table
        customdata=[(share.low, share.high) for share in shares],
        mode="markers" if marks else "lines+markers",
        name=name,
        hovertemplate=f"{name}: %{{y:.0%}} ({RANGE})<extra></extra>",
        visible=visible,
        line=dict(color=color, width=3),
        marker=look.mark(color, tier, marks),
        cliponaxis=False,
    )


def _bracket(figure: go.Figure, full: Sequence[Measured]) -> None:
    """Marks the gap of the last full measurement, if any, by a bracket from rare to popular."""
    if full:
        ends = [full[-1].recall("forget", "reworded", tier) for tier in ("rare", "popular")]
        edge = dict(xref="paper", xsizemode="pixel", xanchor=1, line=dict(color=look.INK, width=3))
        figure.add_shape(type="line", x0=BRACKET, x1=BRACKET, y0=ends[0], y1=ends[1], **edge)
        text = f"gap {100 * full[-1].gap.mean:+.1f}"
        beside = dict(xref="paper", xanchor="left", xshift=BRACKET + 6, showarrow=False)
        figure.add_annotation(x=1, y=sum(ends) / 2, text=text, font_size=13, **beside)


def _band(figure: go.Figure, points: Sequence[tuple[int, Interval]], color: str) -> None:
    """Shades the intervals around a line: error bars of several lines would overlap."""
    edge = [(x, share.high) for x, share in points]
    edge += [(x, share.low) for x, share in reversed(points)]
    drawn = dict(fill="toself", fillcolor=color, opacity=0.1, mode="none", hoverinfo="skip")
    figure.add_scatter(x=[x for x, _ in edge], y=[y for _, y in edge], **drawn)


def _ranged(event: Measured, group: str, tier: str) -> Interval | None:
    """Recall with its interval: of facts to forget reworded, if measured; of others as trained."""
    reworded = event.share(group, "reworded", tier) if group == "forget" else None
    return reworded or event.share(group, "direct", tier)


def outcome_chart(before: Measured, after: Measured, trained: bool = True) -> go.Figure:
    """Recall before and after: facts to forget by tier, reworded; what is kept, asked directly.
    trained: here, and not elsewhere, on what nobody knows."""
    figure, places = look.blank(RECALL_PIXELS), []
    reworded = after.recall("forget", "reworded") is not None
    form = "<br>asked<br>directly" if reworded else ""
    for name, tier in _tiers([before, after]).items():
        places.append(("forget", tier, f"forget<br>{tier}" if name == tier else name))
    places += [(group, "all", BELOW.get(group, group) + form) for group in KEPT]
    for *where, label in places:
        fell = [_ranged(event, *where) for event in (before, after)]
        if None not in fell:
            line, ends = dict(color=look.FAINT, width=3), [share.mean for share in fell]
            figure.add_scatter(x=[label, label], y=ends, mode="lines", line=line, hoverinfo="skip")
    for name, event, other, color, symbol in (
        ("original", before, after, look.ORIGINAL, "circle-open"),
        ("unlearned", after, before, look.UNLEARNED, "diamond"),
    ):
        points = []
        for *where, label in places:
            share, twin = (_ranged(one, *where) for one in (event, other))
            if share is not None:  # of two equal shares, the original's label is above
                above = not twin or (share.mean, event is before) > (twin.mean, event is after)
                points.append((label, share, above))
        texts = [_marked(share.mean, up) for _, share, up in points]
        texts[-1:] = [_marked(share.mean, up, name) for _, share, up in points[-1:]]
        figure.add_scatter(
            x=[label for label, *_ in points],
            y=[share.mean for _, share, _ in points],
            error_y=look.error_bars([share for _, share, _ in points], look.FAINT),
            mode="markers+text",
            name=name,
            marker=dict(color=color, symbol=symbol, size=13, line=dict(width=2, color=color)),
            text=texts,
            hovertemplate=f"{name}: %{{y:.0%}}<extra></extra>",
            textposition=["top center" if up else "bottom center" for *_, up in points],
            cliponaxis=False,
        )
    figure.update_xaxes(tickangle=0, tickfont_size=11)
    ticks = dict(tickvals=[0, 0.25, 0.5, 0.75, 1], tickformat=".0%")
    title = (
        "still answered" if reworded else "answered as trained" if trained else "answered directly"
    )
    figure.update_yaxes(title_text=title, range=[-0.18, 1.3], **ticks)
    figure.update_layout(showlegend=False)
    return figure


def _marked(share: float, above: bool, *name: str) -> str:
    """A mark's share and, farther from the mark, its model's name, which would overlap beside
    it."""
    lines = [f"{share:.0%}", *name]
    return "<br>".join(reversed(lines) if above else lines)
