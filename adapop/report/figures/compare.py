"""Figures of a comparison: how much of rare and popular facts is left in each run."""

from collections.abc import Mapping, Sequence
from html import escape

import plotly.graph_objects as go

from adapop.facts.fact import TIERS
from adapop.probes.intervals import Interval
from adapop.report.figures import look
from adapop.report.figures import outcomes as contest
from adapop.report.figures.outcomes import PANELS, RECORDED, Outcome

NAME_CHARACTERS = 14
ROW_PIXELS, PANEL_PIXELS, FRAME_PIXELS = 41, 62, 60
MANY, TIGHT_ROW_PIXELS = 12, 36  # from this many rows on, rows stand closer
# Offset of a tier's mark within its row, so that intervals do not overlap.
OFFSETS = {"rare": -0.2, "middle": 0.0, "popular": 0.2}
PUBLISHED_PIXELS, AROUND_PIXELS = 27, 110
PUBLISHED_CHARACTERS = 40


def compare_runs(outcomes: Sequence[Outcome], every: bool = True) -> go.Figure:
    """Recall by tier with its interval, a row per contestant and a panel per form. The farther
    right the lower end of a row's line, the larger the gap: more popular than rare facts are left.
    every: False draws only the panel of the form in which contestants are compared."""
    order, compared = contest.by_gap(outcomes), contest.compared_form(outcomes)
    panels = PANELS if every else [compared]
    forms = [form for form in panels if any(one.recall.get(form) for one in order)]
    rows = max(1, len(forms))
    row_pixels = ROW_PIXELS if len(order) <= MANY else TIGHT_ROW_PIXELS
    height = FRAME_PIXELS + rows * (PANEL_PIXELS + row_pixels * len(order))
    figure = look.panels(
        height,
        rows=rows,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=min(0.2, PANEL_PIXELS / height),
        subplot_titles=[PANELS[form] for form in forms],
    )
    for row, form in enumerate(forms, start=1):
        _tiers(figure, row, [(one, one.recall.get(form, {})) for one in order])
    names = [f"{one.label} (not compared)" if one.apart else one.label for one in order]
    look.named_rows(figure, names, NAME_CHARACTERS)
    figure.update_yaxes(zeroline=False)
    figure.update_xaxes(range=[-0.03, 1.05], tickformat=".0%", showticklabels=True)
    figure.update_xaxes(title_text="forget set: still answered", row=rows, col=1)
    figure.update_layout(margin=dict(l=104, t=40), showlegend=False)
    own = sum(not one.recorded for one in order)
    # Anchored in the middle, because `numbers_of` takes text anchored at the bottom for the heading
    # of a panel.
    if 0 < own < len(order):
        words = dict(text=f"{RECORDED} ↓", font_size=11)
        below = dict(xanchor="right", yanchor="middle", yshift=-9, **words)
        line = dict(color=look.INK, dash="dash", width=1)
        figure.add_hline(y=own - 0.5, line=line, annotation=below)
    for at, one in enumerate(order):
        if forms and not one.original and (recall := one.recall.get(forms[0])):
            marks = [(interval.mean, tier) for tier, interval in recall.items()]
            look.row_labels(figure, marks, at)
            break
    return figure


def _tiers(
    figure: go.Figure, row: int, places: Sequence[tuple[Outcome, Mapping[str, Interval]]]
) -> None:
    """Draws one panel: a mark per tier, joined by a line. places: (outcome, recall by tier)."""
    line, panel = dict(color=look.INK, width=1.5), dict(row=row, col=1)
    for at, (_, recall) in enumerate(places):
        own = [tier for tier in TIERS if tier in recall]
        x, y = [recall[tier].mean for tier in own], [at + OFFSETS[tier] for tier in own]
        figure.add_scatter(x=x, y=y, mode="lines", line=line, **look.UNLISTED, **panel)
    for tier in TIERS:
        marks = [(at, *place) for at, place in enumerate(places) if tier in place[1]]
        recalls = [recall[tier] for *_, recall in marks]
        symbols = [look.TIER_SYMBOL[tier] + "-open" * one.recorded for _, one, _ in marks]
        colors = [look.FAINT if one.apart else look.TIER_COLOR[tier] for _, one, _ in marks]
        edges = [2 * one.recorded for _, one, _ in marks]
        figure.add_scatter(
            x=[recall.mean for recall in recalls],
            y=[at + OFFSETS[tier] for at, *_ in marks],
            error_x=look.error_bars(recalls),
            mode="markers",
            marker=dict(color=colors, symbol=symbols, size=11, line_width=edges),
            name=tier,
            hovertemplate=f"{tier}: %{{x:.0%}}<extra></extra>",
            **panel,
        )


def published_recalls(rows: Sequence[tuple[str, float, float]], about: str) -> go.Figure:
    """Published recalls, a row per method (name, forget recall, retain recall), lowest forget
    recall first.

    about: model and data set, printed in the figure after "published"."""
    ordered = sorted(rows, key=lambda row: row[1])
    figure = look.blank(AROUND_PIXELS + PUBLISHED_PIXELS * len(ordered))
    places = list(range(len(ordered)))
    line = dict(color=look.FAINT, width=2)
    for at, (_, *ends) in enumerate(ordered):
        figure.add_scatter(x=ends, y=[at, at], mode="lines", line=line, **look.UNLISTED)
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
    return figure
