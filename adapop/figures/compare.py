"""The pictures of a comparison: what is left of rare and popular facts in each run, and what that cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from adapop.facts import TIERS
from adapop.figures.look import INK, ORIGINAL, TIER_COLOR, TIER_SYMBOL, UNLEARNED, blank, neutral
from adapop.probes.matrix import Interval

NAME_CHARACTERS = 14


@dataclass(frozen=True)
class Outcome:
    """What a run came to, to be drawn beside others.

    mark: stands for the run where there is no room for its name; the original model has none. direct: recall of the
    facts to forget by tier, asked as trained. attacked: the same under the attack that gets most out of a tier; empty
    without probes. forget, holdout: recall of all facts of the group, None where it was not measured.
    """

    mark: str
    name: str
    direct: Mapping[str, float]
    attacked: Mapping[str, Interval]
    forget: float | None
    holdout: float | None


def compare_runs(outcomes: Sequence[Outcome]) -> go.Figure:
    """Recall by tier, a row a run: asked directly above, under the worst attack below. The farther apart a row's
    marks, the wider the gap between rare and popular."""
    titles = ("asked directly", "under the worst attack, with 95 % intervals")
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.16, subplot_titles=titles)
    neutral(figure, 150 + 100 * len(outcomes))
    _dots(figure, 1, [one.direct for one in outcomes])
    attacked = [{tier: recall.mean for tier, recall in one.attacked.items()} for one in outcomes]
    _dots(figure, 2, attacked, [one.attacked for one in outcomes])
    names = ["<br>".join(map(escape, wrap(f"{one.mark} {one.name}", NAME_CHARACTERS))) for one in outcomes]
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names, range=[len(names) - 0.5, -0.5])
    figure.update_xaxes(range=[-0.03, 1.05], showticklabels=True)
    figure.update_xaxes(title="recall of facts to forget", row=2, col=1)
    figure.update_layout(margin=dict(l=104, t=70), legend=dict(yref="container", y=1, yanchor="top"))
    figure.update_annotations(font_size=13)
    return figure


def _dots(
    figure: go.Figure,
    row: int,
    runs: Sequence[Mapping[str, float]],
    intervals: Sequence[Mapping[str, Interval]] = (),
) -> None:
    """One panel: a row a run and a mark a tier, joined by a line or, with intervals, beneath each other."""
    for at, recalls in enumerate(() if intervals else runs):
        ends, line = list(recalls.values()), dict(color=INK, width=1.5)
        figure.add_scatter(
            x=ends, y=[at] * len(ends), mode="lines", line=line, hoverinfo="skip", showlegend=False, row=row, col=1
        )
    for tier, offset in zip(TIERS, (-0.24, 0.0, 0.24) if intervals else (0.0, 0.0, 0.0)):
        found = [(at + offset, recalls[tier]) for at, recalls in enumerate(runs) if tier in recalls]
        ranges = [by_tier[tier] for by_tier in intervals if tier in by_tier]
        figure.add_scatter(
            x=[recall for _, recall in found],
            y=[at for at, _ in found],
            error_x=dict(
                array=[one.high - one.mean for one in ranges],
                arrayminus=[one.mean - one.low for one in ranges],
                thickness=1,
                visible=bool(ranges),
            ),
            mode="markers",
            marker=dict(color=TIER_COLOR[tier], symbol=TIER_SYMBOL[tier], size=11),
            name=tier,
            showlegend=row == 1,
            hovertemplate=f"{tier}: %{{x:.2f}}<extra></extra>",
            row=row,
            col=1,
        )


def forget_against_holdout(outcomes: Sequence[Outcome]) -> go.Figure:
    """Recall of what was to be forgotten against recall of what training never saw: the best place is above left."""
    figure = blank(360)
    placed = [one for one in outcomes if one.forget is not None and one.holdout is not None]
    for name, color, symbol, chosen in (
        ("original", ORIGINAL, "circle-open", [one for one in placed if not one.mark]),
        ("unlearned", UNLEARNED, "diamond", [one for one in placed if one.mark]),
    ):
        figure.add_scatter(
            x=[one.forget for one in chosen],
            y=[one.holdout for one in chosen],
            mode="markers+text",
            marker=dict(color=color, size=13, symbol=symbol, line=dict(width=2, color=color)),
            text=[one.mark for one in chosen],
            textposition="top center",
            customdata=[[escape(one.name)] for one in chosen],
            hovertemplate="%{customdata[0]}: %{x:.2f} to forget, %{y:.2f} held out<extra></extra>",
            cliponaxis=False,
            name=name,
        )
    figure.update_xaxes(title="recall of facts to forget: left is better", range=[-0.03, 1.05])
    figure.update_yaxes(title="recall of held-out facts: up is better", range=[-0.03, 1.1])
    return figure
