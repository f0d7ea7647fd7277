"""Figure of a run compared with the oracle."""

from collections.abc import Sequence
from html import escape
from math import log10, sqrt

import plotly.graph_objects as go

from adapop.facts.fact import Fact
from adapop.probes.distance import AS_NEVER_LEARNT, OVER, UNDER, Distance
from adapop.report.figures import look

PIXELS = 320
STATE_COLOR = {UNDER: look.ALARM, AS_NEVER_LEARNT: look.CALM, OVER: "#7c5cb8"}
STATE_SYMBOL = {UNDER: "triangle-up", AS_NEVER_LEARNT: "circle", OVER: "triangle-down"}
FURTHEST = 1e4  # largest ratio to "never learnt" on the axis; facts beyond it are drawn at the edge
HOVER = "%{customdata[0]}<br>p %{customdata[1]:.2g}, oracle %{customdata[2]:.2g}<extra></extra>"
BESIDE = 0.02  # share of a score; step by which dots are shifted apart, as scores may be equal


def oracle_chart(distance: Distance, facts: Sequence[Fact], form: str, finding: str) -> go.Figure:
    """A dot per fact to forget with a score above 0: the score, and how likely its answer is
    relative to answers that the oracle never read; the band is the middle 95% of these. Log axes.
    finding: the title."""
    figure = look.blank(PIXELS)
    scores = {fact.id: fact.score for fact in facts if fact.score}
    titles = {fact.id: fact.title for fact in facts}
    rows = [fact for fact in distance.of(form) if fact.id in scores]
    for state, color in STATE_COLOR.items():
        members = [(place, fact) for place, fact in enumerate(rows) if fact.state == state]
        times = [fact.unlearned / sqrt(fact.low * fact.high) for _, fact in members]
        figure.add_scatter(
            x=[scores[fact.id] * (1 + BESIDE * (place % 9 - 4)) for place, fact in members],
            y=[min(FURTHEST, max(1 / FURTHEST, value)) for value in times],
            mode="markers",
            marker=dict(color=color, symbol=STATE_SYMBOL[state], size=7, opacity=0.75),
            name=state.removesuffix("-forgotten"),  # the title has the shares
            customdata=[[escape(titles[one.id]), one.unlearned, one.oracle] for _, one in members],
            hovertemplate=HOVER,
        )
    if rows:
        centre = sqrt(rows[0].low * rows[0].high)
        low, top = rows[0].low / centre, rows[0].high / centre
        figure.add_hrect(y0=low, y1=top, fillcolor=look.GRID, line_width=0, layer="below")
        # On a log axis an annotation's place is a logarithm; `add_hrect` places its own wrongly.
        edge = dict(xref="x domain", xanchor="left", yanchor="bottom", showarrow=False)
        figure.add_annotation(text="never learnt", x=0, y=log10(top), **edge)
    figure.update_xaxes(title_text="popularity score", type="log", dtick=1)
    figure.update_yaxes(title_text="times as likely", type="log", dtick=1)
    return look.titled(figure, finding)
