"""Figures of a comparison: what is left of rare and popular facts in each run, and its cost."""

from collections.abc import Mapping, Sequence
from html import escape

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from adapop.facts.fact import TIERS
from adapop.probes.intervals import Interval
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.report.figures import captions, look
from adapop.report.figures.outcomes import (
    PANELS,
    RECORDED,
    Outcome,
    beats,
    by_gap,
    clearly,
    compared_form,
    contests,
    forgetters,
    no_contest,
    pareto_front,
)
from adapop.report.table import percent

NAME_CHARACTERS = 14
NAME_PLACES = (
    ("left", 0),
    ("right", 0),
    ("left", 13),
    ("left", -13),
    ("right", 13),
    ("right", -13),
)
ROW_PIXELS, PANEL_PIXELS, FRAME_PIXELS = 50, 62, 60
MANY, TIGHT_ROW_PIXELS = 12, 36  # from so many rows on they stand closer
# of the scatter's inside, about, to place names; and what is beside it
SCATTER_PIXELS, MARGIN = (420, 400), 16
LEAST_SPAN = 0.3  # of an axis, so that a difference of a few facts does not fill the picture
# a tier below the other, so that intervals do not overlap
OFFSETS = {"rare": -0.2, "middle": 0.0, "popular": 0.2}
PUBLISHED_PIXELS, AROUND_PIXELS = 27, 110
PUBLISHED_CHARACTERS = 40


def compare_runs(outcomes: Sequence[Outcome], every: bool = True) -> go.Figure:
    """Recall by tier with its interval, a row per contestant and a panel per form. The more a row's
    line leans to the right on its way down, the more of the popular facts is left compared to the
    rare: the gap. every: False for the panel alone in which they are compared."""
    order, compared = by_gap(outcomes), compared_form(outcomes)
    panels = PANELS if every else [compared]
    forms = [form for form in panels if any(one.recall.get(form) for one in order)]
    rows = max(1, len(forms))
    row_pixels = ROW_PIXELS if len(order) <= MANY else TIGHT_ROW_PIXELS
    height = FRAME_PIXELS + rows * (PANEL_PIXELS + row_pixels * len(order))
    figure = make_subplots(
        rows=rows,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=min(0.2, PANEL_PIXELS / height),
        subplot_titles=[PANELS[form] for form in forms],
    )
    look.neutral(figure, height)
    for row, form in enumerate(forms, start=1):
        _tiers(
            figure,
            row,
            [one.recall.get(form, {}) for one in order],
            [one.recorded for one in order],
        )
    look.named_rows(figure, [one.label for one in order], NAME_CHARACTERS)
    figure.update_yaxes(zeroline=False)
    figure.update_xaxes(range=[-0.03, 1.05], tickformat=".0%", showticklabels=True)
    figure.update_xaxes(title_text="facts to forget still answered", row=rows, col=1)
    figure.update_layout(margin=dict(l=104, t=40), showlegend=False)
    figure.update_annotations(font_size=13)
    own = sum(not one.recorded for one in order)
    # its words are no heading of a panel, which `numbers_of` knows by where they are anchored
    if 0 < own < len(order):
        below = dict(
            text=f"{RECORDED} ↓", xanchor="right", yanchor="middle", yshift=-9, font_size=11
        )
        figure.add_hline(
            y=own - 0.5, line=dict(color=look.INK, dash="dash", width=1), annotation=below
        )
    first = next(
        (
            at
            for at, one in enumerate(order)
            if forms and not one.original and one.recall.get(forms[0])
        ),
        None,
    )
    if first is not None:
        marks = [(interval.mean, tier) for tier, interval in order[first].recall[forms[0]].items()]
        look.row_labels(figure, marks, first)
    candidates = [
        one
        for one in order
        if not (one.original or one.collapsed) and one.lead(compared) is not None
    ]
    candidates, where = _who_forgets(
        [one for one in candidates if not one.recorded] or candidates, order
    )
    leads = [(one.name, one.lead(compared)) for one in candidates]
    what = captions.GAP if compared == REWORDED else f"{captions.LEAD}, {PANELS[compared]}"
    return look.titled(figure, captions.widest(leads, where, what))


def _who_forgets(
    own: Sequence[Outcome], outcomes: Sequence[Outcome]
) -> tuple[Sequence[Outcome], str]:
    """Outcomes that a title compares, with its words: runs that forgot nothing are left out."""
    forgot = forgetters(own, outcomes)
    return (forgot, "Where anything was forgotten, ") if 0 < len(forgot) < len(own) else (own, "")


def _tiers(
    figure: go.Figure, row: int, recalls: Sequence[Mapping[str, Interval]], hollow: Sequence[bool]
) -> None:
    """One panel: a mark per tier, joined by a line."""
    for at, by_tier in enumerate(recalls):
        figure.add_scatter(
            x=[by_tier[tier].mean for tier in TIERS if tier in by_tier],
            y=[at + OFFSETS[tier] for tier in TIERS if tier in by_tier],
            mode="lines",
            line=dict(color=look.INK, width=1.5),
            hoverinfo="skip",
            showlegend=False,
            row=row,
            col=1,
        )
    for tier in TIERS:
        places = [at for at, by_tier in enumerate(recalls) if tier in by_tier]
        marks = [(at + OFFSETS[tier], recalls[at][tier]) for at in places]
        symbols = [look.TIER_SYMBOL[tier] + "-open" * hollow[at] for at in places]
        figure.add_scatter(
            x=[recall.mean for _, recall in marks],
            y=[at for at, _ in marks],
            error_x=look.error_bars([recall for _, recall in marks]),
            mode="markers",
            marker=dict(
                color=look.TIER_COLOR[tier],
                symbol=symbols,
                size=11,
                line_width=[2 * hollow[at] for at in places],
            ),
            name=tier,
            hovertemplate=f"{tier}: %{{x:.0%}}<extra></extra>",
            row=row,
            col=1,
        )


def forget_against_holdout(outcomes: Sequence[Outcome], form: str = PANELS[DIRECT]) -> go.Figure:
    """Recall of what was to be forgotten against recall of what training never saw, with the Pareto
    front: what lies to its right and below is beaten. form: how the former was asked, in words."""
    figure = look.blank(500)
    front = pareto_front(outcomes)
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
    beaten = [one for one in placed if contests(one) and one not in front]
    for name, color, symbol, chosen in (
        ("original", look.ORIGINAL, "circle-open", [one for one in placed if one.original]),
        ("on the front", look.UNLEARNED, "diamond", front),
        ("behind it", look.UNLEARNED, "diamond-open", beaten),
        (
            "collapsed",
            look.ALARM,
            "square-open",
            [one for one in placed if one.collapsed and not one.recorded],
        ),
        (RECORDED, look.CALM, "hexagon2-open", [one for one in placed if one.recorded]),
    ):
        if chosen:
            _points(figure, chosen, name, color, symbol)
    ranged = [one for one in placed if not one.original]
    across, along = (
        _around([getattr(one, name) for one in ranged]) for name in ("forget", "holdout")
    )
    figure.update_xaxes(title_text=f"← better: answered, {form}", range=across)
    figure.update_yaxes(
        title_text="facts never trained on, asked as trained: better →", range=along
    )
    for axis, (low, high) in ((figure.layout.xaxis, across), (figure.layout.yaxis, along)):
        axis.update(tickformat=".0%", tickvals=_ticks(low, high))
    figure.update_layout(showlegend=False)
    within = [one for one in placed if across[0] <= one.forget.mean <= across[1]]
    _name_points(figure, [*front, *(one for one in within if one not in front)], across, along)
    for one in placed:
        if one.original and one not in within:
            text = (
                f"original, outside: {percent(one.forget.mean)} to forget, "
                f"{percent(one.holdout.mean)} held out ○"
            )
            corner = dict(x=1, y=0, xref="paper", yref="paper", xanchor="right", yanchor="bottom")
            figure.add_annotation(text=text, showarrow=False, font=dict(size=12), **corner)
    recorded, where = _who_forgets([one for one in ranged if one.recorded], outcomes)
    extremes = captions.extremes([(one.name, one.forget, one.holdout) for one in recorded], where)
    near = [
        one.name
        for one in beaten
        if not any(beats(other, one) and clearly(other, one) for other in front)
    ]
    if no_contest(outcomes):
        return look.titled(figure, captions.NOTHING_FORGOTTEN)
    # of one alone there is nothing to say
    best = [one.name for one in front] if len(front) + len(beaten) > 1 else []
    return look.titled(figure, captions.bargain(best, near) or extremes)


def _name_points(
    figure: go.Figure, outcomes: Sequence[Outcome], across: Sequence[float], along: Sequence[float]
) -> None:
    """Labels points where no label covers another; the rest show their name on hover."""
    wide, high = (
        SCATTER_PIXELS[0] / (across[1] - across[0]),
        SCATTER_PIXELS[1] / (along[1] - along[0]),
    )
    centres = [
        ((one.forget.mean - across[0]) * wide, (one.holdout.mean - along[0]) * high)
        for one in outcomes
    ]
    taken = [(x - 8, y - 8, x + 8, y + 8) for x, y in centres]
    for one, (x, y) in zip(outcomes, centres):
        width = 7 * len(one.name)
        for anchor, level in NAME_PLACES:
            left = x + 11 if anchor == "left" else x - 11 - width
            box = (left, y + level - 7, left + width, y + level + 7)
            free = all(box[2] < a or c < box[0] or box[3] < b or d < box[1] for a, b, c, d in taken)
            if free and left >= 0 and box[2] <= SCATTER_PIXELS[0] + MARGIN:
                taken.append(box)
                beside = dict(
                    xanchor=anchor,
                    xshift=11 if anchor == "left" else -11,
                    yanchor="middle",
                    yshift=level,
                )
                place = dict(x=one.forget.mean, y=one.holdout.mean, showarrow=False, font_size=12)
                figure.add_annotation(text=escape(one.name), **place, **beside)
                break


def _around(recalls: Sequence[Interval]) -> list[float]:
    """Axis limits that separate close contestants; the original may be outside."""
    if not recalls:
        return [-0.05, 1.05]
    low, high = min(one.low for one in recalls), max(one.high for one in recalls)
    room = max(0.03, (LEAST_SPAN - (high - low)) / 2)
    return [max(-0.05, low - room), min(1.05, high + room)]


def _ticks(low: float, high: float) -> list[float]:
    """Axis ticks of shares, within 0 % and 100 %."""
    step = next(step for step, most in ((0.05, 0.35), (0.1, 0.7), (0.2, 2.0)) if high - low < most)
    return [
        share
        for share in (round(at * step, 2) for at in range(21))
        if max(0.0, low) <= share <= min(1.0, high)
    ]


def _points(
    figure: go.Figure, chosen: Sequence[Outcome], name: str, color: str, symbol: str
) -> None:
    figure.add_scatter(
        x=[one.forget.mean for one in chosen],
        y=[one.holdout.mean for one in chosen],
        error_x=look.error_bars([one.forget for one in chosen], look.FAINT),
        error_y=look.error_bars([one.holdout for one in chosen], look.FAINT),
        mode="markers",
        marker=dict(color=color, size=13, symbol=symbol, line=dict(width=2, color=color)),
        customdata=[
            [escape(one.label) + (f", {RECORDED}" if one.recorded else "")] for one in chosen
        ],
        hovertemplate="%{customdata[0]}: %{x:.0%} to forget, %{y:.0%} held out<extra></extra>",
        name=name,
    )


def published_recalls(rows: Sequence[tuple[str, float, float]], about: str) -> go.Figure:
    """A row a method (name, forget recall, retain recall), least forget recall first.

    about: model and data set, printed into the picture with the word published.
    """
    ordered = sorted(rows, key=lambda row: row[1])
    figure = look.blank(AROUND_PIXELS + PUBLISHED_PIXELS * len(ordered))
    places = list(range(len(ordered)))
    for _, forget, retain in ordered:
        at = len(figure.data)
        figure.add_scatter(
            x=[forget, retain], y=[at, at], mode="lines", line=dict(color=look.FAINT, width=2),
            hoverinfo="skip", showlegend=False,
        )  # fmt: skip
    for name, column, color, symbol in (
        ("forget (less is better)", 1, look.UNLEARNED, "diamond"),
        ("retain (more is better)", 2, look.CALM, "square-open"),
    ):
        figure.add_scatter(
            x=[row[column] for row in ordered],
            y=places,
            mode="markers",
            marker=dict(color=color, symbol=symbol, size=10, line=dict(width=2, color=color)),
            name=name,
            hovertemplate="%{x:.1%}<extra></extra>",
        )
    look.named_rows(figure, [name for name, *_ in ordered], PUBLISHED_CHARACTERS)
    look.row_labels(figure, list(zip(ordered[0][1:] if ordered else (), ("forget", "retain"))))
    figure.update_yaxes(zeroline=False)
    title = f"published, not measured here:<br>{escape(about)}"
    figure.update_xaxes(title_text=title, range=[-0.03, 1.05], tickformat=".0%")
    figure.update_layout(margin=dict(l=104, b=64), showlegend=False)
    return look.titled(figure, f"Published: {ordered[0][0]} forgets most" if ordered else "")
