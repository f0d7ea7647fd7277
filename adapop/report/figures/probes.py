"""Figures of probes: what leaks in which form of the question, the verdicts, and a run compared
with the oracle. No torch."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap

import plotly.graph_objects as go

from adapop.errors import number_of
from adapop.facts.fact import TIERS, Fact
from adapop.probes.distance import AS_NEVER_LEARNT, OVER, UNDER, Distance
from adapop.probes.matrix import Cell, LeakMatrix
from adapop.probes.prompts import EVERY_KIND, named, plain
from adapop.report.figures import look
from adapop.report.table import percent, ranged

# The ramps are opaque and never dark, so that this text is readable on light and dark pages.
TEXT = "#1a1a1a"
RAMPS = {"original": ("#f3f7fb", "#6aa5da"), "unlearned": ("#fdf4ec", "#ee9645")}
BLIND = ("#b4b4b4", "#b4b4b4")
ROW_HEIGHT, BAR_HEIGHT = 27, 44
WORD_CHARACTERS = 12
NOTHING = "no fact of this group was asked"
VERDICT_COLOR = {
    "Not forgotten": "#e0605a",
    "Leaks in other words": "#ec8c52",
    "Leaks in another format": "#f0a356",
    "Leaks under attack": "#f3b85f",
    "Recoverable": "#eddb6e",
    "Next in line": "#d6a3c8",
    "Looks suppressed": "#b79cd8",
    "Collapsed text": "#ba9c88",
    "Not brought back": "#5cc1b2",
    "Retain damaged": "#e88f8f",
    "Retained": "#7fb3e2",
    "Never known": "#a8a8a8",
    "Not measurable": "#d0d0d0",
}
ORACLE_PIXELS = 320
STATE_COLOR = {UNDER: look.ALARM, AS_NEVER_LEARNT: look.CALM, OVER: "#7c5cb8"}
STATE_SYMBOL = {UNDER: "triangle-up", AS_NEVER_LEARNT: "circle", OVER: "triangle-down"}
FURTHEST = 1e4  # largest ratio to "never learnt" on the axis; facts beyond it are drawn at the edge
ORACLE_HOVER = (
    "%{customdata[0]}<br>p %{customdata[1]:.2g}, oracle %{customdata[2]:.2g}<extra></extra>"
)
APART = 0.02  # share of a score; step by which dots are shifted apart, as scores may be equal


def leak_heatmap(matrix: LeakMatrix, group: str) -> go.Figure:
    """Recall of both models, a row per form of the question and a column per tier. Grey: the
    original fails too. Star: recall of only the facts that the original answers in that form."""
    kinds, tiers = _kinds_and_tiers(matrix, group)
    if not kinds:
        return look.empty(NOTHING)
    titles = [f"{side}, %" for side in RAMPS]
    beside = dict(shared_yaxes=True, horizontal_spacing=0.03)
    height = 84 + ROW_HEIGHT * len(kinds)
    figure = look.panels(height, rows=1, cols=2, column_titles=titles, **beside)
    cells = [[matrix.cell(group, tier, kind) for tier in tiers] for kind in kinds]
    for column, (side, ramp) in enumerate(RAMPS.items(), start=1):
        for colors, measurable in ((ramp, True), (BLIND, False)):
            drawn = [
                [cell if cell and cell.measurable == measurable else None for cell in row]
                for row in cells
            ]
            shape = dict(zmin=0, zmax=1, xgap=2, ygap=2, showscale=False, hoverongaps=False)
            figure.add_heatmap(
                x=tiers,
                y=[plain(kind) for kind in kinds],
                z=[[cell and getattr(cell, side).recall.mean for cell in row] for row in drawn],
                text=[[_printed(cell, side) for cell in row] for row in drawn],
                customdata=[[_hover(cell) for cell in row] for row in drawn],
                texttemplate="%{text}",
                textfont=dict(size=11, color=TEXT),
                hovertemplate="%{customdata}<extra></extra>",
                colorscale=colors,
                row=1,
                col=column,
                **shape,
            )
    figure.update_layout(margin=dict(l=94, r=4, t=26, b=52))
    figure.update_xaxes(tickfont_size=11, showgrid=False, ticks="")
    figure.update_yaxes(autorange="reversed", tickfont_size=12, showgrid=False, ticks="")
    return figure


def _kinds_and_tiers(matrix: LeakMatrix, group: str) -> tuple[list[str], list[str]]:
    """The kinds and tiers of a group in which any fact was asked, in the usual order."""
    own = [cell for cell in matrix.cells if cell.group == group]
    kinds, tiers = {cell.kind for cell in own}, {cell.tier for cell in own}
    tiers = [tier for tier in (*TIERS, "all") if tier in tiers]
    return [kind for kind in EVERY_KIND if kind in kinds], tiers


def _printed(cell: Cell | None, side: str) -> str:
    if cell is None:
        return ""
    if side == "unlearned" and not cell.measurable:
        return "–"
    part = "*" if cell.facts < cell.asked else ""
    return f"{100 * getattr(cell, side).recall.mean:.0f}{part}"


def _hover(cell: Cell | None) -> str:
    if cell is None:
        return ""
    before, after = cell.original, cell.unlearned
    title = f"<b>{escape(named(cell.kind))}, {escape(cell.tier)}</b>"
    known = f", those of {cell.asked:,} that the original answers" * (cell.facts < cell.asked)
    lines = [f"{title}: {number_of(cell.facts, 'fact')}{known}"]
    lines += [f"original {ranged(before.recall)}", f"unlearned {ranged(after.recall)}"]
    if after.near is not None:
        lines.append(f"first or second guess: {percent(before.near)} → {percent(after.near)}")
    if after.relation_rank is not None:
        ranks = f"{before.relation_rank:.1f} → {after.relation_rank:.1f}"
        lines.append(f"rank among the relation's answers: {ranks}")
    lines += [f"a blind guess: {percent(cell.chance)}"] if cell.chance else []
    lines += [] if cell.measurable else [f"not measurable: {escape(cell.reason)}"]
    return "<br>".join(lines)


def recall_by_kind(matrix: LeakMatrix, group: str) -> go.Figure:
    """Recall of rare and popular facts in each form, with 95% intervals. The original's marks are
    hollow; where it fails too, only they are drawn."""
    kinds, tiers = _kinds_and_tiers(matrix, group)
    if not kinds:
        return look.empty(NOTHING)
    figure, first = look.blank(72 + 40 * len(kinds)), []
    tiered = {"rare", "popular"} & {*tiers}
    for tier, offset in {"rare": -0.16, "popular": 0.16}.items() if tiered else [("all", 0.0)]:
        rows = [(row, matrix.cell(group, tier, kind)) for row, kind in enumerate(kinds)]
        cells = [(row + offset, cell) for row, cell in rows if cell]
        color, symbol = look.TIER_COLOR.get(tier, look.INK), look.TIER_SYMBOL.get(tier, "circle")
        figure.add_scatter(
            x=[cell.original.recall.mean for _, cell in cells],
            y=[at for at, _ in cells],
            customdata=[_hover(cell) for _, cell in cells],
            mode="markers",
            marker=dict(symbol=f"{symbol}-open", color=color, size=9, line_width=1.5),
            name=f"{tier}, original",
            hovertemplate="%{customdata}<extra></extra>",
        )
        fair = [(at, cell) for at, cell in cells if cell.measurable]
        recalls = [cell.unlearned.recall for _, cell in fair]
        first += [(recalls[0].mean, tier)] if recalls else []
        figure.add_scatter(
            x=[recall.mean for recall in recalls],
            y=[at for at, _ in fair],
            error_x=look.error_bars(recalls) | {"thickness": 1.5, "visible": True},
            customdata=[_hover(cell) for _, cell in fair],
            mode="markers",
            marker=dict(symbol=symbol, color=color, size=9),
            name=tier,
            hovertemplate="%{customdata}<extra></extra>",
        )
    _mark_chance(figure, [matrix.cell(group, "all", kind) for kind in kinds])
    figure.update_layout(margin=dict(l=94, r=12, t=16, b=44), showlegend=False)
    title = "answers that come back (hollow: before)"
    figure.update_xaxes(title_text=title, tickformat=".0%", range=[-0.03, 1.05])
    look.named_rows(figure, [plain(kind) for kind in kinds], WORD_CHARACTERS)
    look.row_labels(figure, first)
    return figure


def control_rows(names: Sequence[str], marks: Mapping[str, Sequence[float | None]]) -> go.Figure:
    """A row per name with a mark of each kind; controls (the chance level) are short lines. None:
    no mark."""
    figure = look.blank(64 + 44 * max(1, len(names)))
    symbols = {
        "before": "circle-open",
        "control": "line-ns-open",
        "a wrong answer": "line-ns-open",
        "asked directly": "circle-open",
        "never known": "x-thin-open",
    }
    for kind, values in marks.items():
        color = look.INK if kind in symbols else look.UNLEARNED
        symbol = symbols.get(kind, "diamond")
        places = [at for at, value in enumerate(values) if value is not None]
        size = 16 if "line" in symbol else 11
        figure.add_scatter(
            x=[values[at] for at in places],
            y=places,
            mode="markers",
            marker=dict(color=color, symbol=symbol, size=size, line_width=2),
            name=kind,
            hovertemplate=f"{kind}: %{{x:.0%}}<extra></extra>",
        )
    look.named_rows(figure, names, WORD_CHARACTERS)
    figure.update_layout(margin=dict(l=78, r=12, t=8, b=44), showlegend=False)
    figure.update_xaxes(title_text="answers found", tickformat=".0%", range=[-0.03, 1.05])
    first = [(values[0], kind) for kind, values in marks.items() if values]
    look.row_labels(figure, [(x, kind) for x, kind in first if x is not None])
    return figure


def _mark_chance(figure: go.Figure, cells: Sequence[Cell | None]) -> None:
    guessed = [(row, cell.chance) for row, cell in enumerate(cells) if cell and cell.chance]
    figure.add_scatter(
        x=[chance for _, chance in guessed],
        y=[row for row, _ in guessed],
        mode="markers",
        marker=dict(symbol="line-ns-open", color=look.INK, size=20, line_width=2),
        hovertemplate="a blind guess: %{x:.0%}<extra></extra>",
        name="a blind guess",
    )
    for row, chance in guessed[:1]:
        note = dict(text="a blind guess", font_size=11, showarrow=False)
        beside = dict(xanchor="left", xshift=6, yanchor="middle")
        figure.add_annotation(x=chance, y=row + 0.36, **note, **beside)


def verdict_bars(counts: Mapping[str, Mapping[str, int]]) -> go.Figure:
    """Shares of verdicts, a bar per tier (or other key of `counts`), the worst verdicts to the
    left. counts: tier -> verdict -> number of facts."""
    rows = [name for name, verdicts in counts.items() if sum(verdicts.values())]
    if not rows:
        return look.empty("no fact has a verdict")
    names = sorted({name for row in rows for name in counts[row]}, key=[*VERDICT_COLOR].index)
    totals = [sum(counts[name].values()) for name in rows]
    below = 44 + 18 * math.ceil(len(names) / 2)
    figure = look.blank(BAR_HEIGHT * len(rows) + below + 8)
    for verdict in names:
        numbers = [counts[row].get(verdict, 0) for row in rows]
        labels = ("<br>".join(wrap(f"{verdict} {count:,}", WORD_CHARACTERS)) for count in numbers)
        hover = f"{verdict}: %{{customdata[0]:,}} of %{{customdata[1]}} (%{{x:.0%}})<extra></extra>"
        figure.add_bar(
            x=[count / total for count, total in zip(numbers, totals)],
            y=[escape(row) for row in rows],
            orientation="h",
            name=verdict,
            marker=dict(color=VERDICT_COLOR[verdict], line=dict(color=look.GRID, width=1)),
            text=[label if count else "" for label, count in zip(labels, numbers)],
            customdata=[[count, number_of(total, "fact")] for count, total in zip(numbers, totals)],
            hovertemplate=hover,
            textposition="inside",
            insidetextanchor="middle",
            insidetextfont=dict(color=TEXT, size=10),
            textangle=0,
        )
    two_columns = dict(entrywidth=0.5, entrywidthmode="fraction", font_size=10)
    figure.update_layout(
        barmode="stack",
        bargap=0.2,
        uniformtext=dict(minsize=9, mode="hide"),
        legend=dict(yref="container", yanchor="bottom", y=0, traceorder="normal", **two_columns),
        margin=dict(l=66, r=14, t=8, b=below),
    )
    figure.update_xaxes(tickformat=".0%", range=[0, 1])
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure


def leak_curve(curves: Mapping[str, Sequence[float]], control: Sequence[float]) -> go.Figure:
    """leak@k by tier. curves: tier -> share of its facts, [0, 1], for k = 1, 2, and so on. control:
    the same for wrong answers of all facts, empty without any."""
    figure = look.blank(300)
    for tier, shares in curves.items():
        color, symbol = look.TIER_COLOR[tier], look.TIER_SYMBOL[tier]
        ks = list(range(1, len(shares) + 1))
        marks = dict(marker=dict(color=color, symbol=symbol, size=7), line=dict(color=color))
        hover = f"{tier}, %{{x}} samples: %{{y:.0%}}<extra></extra>"
        figure.add_scatter(
            x=ks, y=shares, name=tier, mode="lines+markers", hovertemplate=hover, **marks
        )
    if control:
        line = dict(color=look.FAINT, dash="dash")
        ks, name = list(range(1, len(control) + 1)), "a wrong answer"
        figure.add_scatter(x=ks, y=control, name=name, mode="lines", line=line)
    figure.update_xaxes(
        title="samples of each fact (k)", range=[0.5, len(control) + 0.5] if control else None
    )
    figure.update_yaxes(title="facts that leak at least once", range=[0, 1.02], tickformat=".0%")
    figure.update_layout(showlegend=True, legend=dict(orientation="h", y=1.08, x=0))
    return figure


def oracle_chart(distance: Distance, facts: Sequence[Fact], form: str) -> go.Figure:
    """A dot per fact to forget with a score above 0: the score, and how likely its answer is
    relative to answers that the oracle never read; the band is the middle 95% of these. Log
    axes."""
    figure = look.blank(ORACLE_PIXELS)
    scores = {fact.id: fact.score for fact in facts if fact.score}
    titles = {fact.id: fact.title for fact in facts}
    rows = [fact for fact in distance.of(form) if fact.id in scores]
    for state, color in STATE_COLOR.items():
        members = [(place, fact) for place, fact in enumerate(rows) if fact.state == state]
        times = [fact.unlearned / math.sqrt(fact.low * fact.high) for _, fact in members]
        figure.add_scatter(
            x=[scores[fact.id] * (1 + APART * (place % 9 - 4)) for place, fact in members],
            y=[min(FURTHEST, max(1 / FURTHEST, value)) for value in times],
            mode="markers",
            marker=dict(color=color, symbol=STATE_SYMBOL[state], size=7, opacity=0.75),
            name=state.removesuffix("-forgotten"),
            customdata=[[escape(titles[one.id]), one.unlearned, one.oracle] for _, one in members],
            hovertemplate=ORACLE_HOVER,
        )
    if rows:
        centre = math.sqrt(rows[0].low * rows[0].high)
        low, top = rows[0].low / centre, rows[0].high / centre
        figure.add_hrect(y0=low, y1=top, fillcolor=look.GRID, line_width=0, layer="below")
        # On a log axis an annotation's place is a logarithm; `add_hrect` places its own wrongly.
        edge = dict(xref="x domain", xanchor="left", yanchor="bottom", showarrow=False)
        figure.add_annotation(text="never learnt", x=0, y=math.log10(top), **edge)
    figure.update_xaxes(title_text="popularity score", type="log", dtick=1)
    figure.update_yaxes(title_text="times as likely as if never learnt", type="log", dtick=1)
    return figure
