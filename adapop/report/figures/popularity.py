"""Figures of popularity: distribution of scores, effect of exponents, disagreement of proxies."""

import math
from collections.abc import Mapping, Sequence
from html import escape

import plotly.graph_objects as go

from adapop.facts.fact import TIERS, Fact
from adapop.facts.tiers import ON_SCALE, Tiers, number
from adapop.popularity.beta import peak
from adapop.report.figures.look import ALARM, INK, TIER_COLOR, TIER_SYMBOL, blank, spaced

BINS_PER_DECADE = 8
NAMES_IN_HOVER = 3
NAME_CHARACTERS, LABEL_CHARACTERS = 60, 18
SMALLEST_P = 0.01
LABELS = 5
MOST_POINTS = 1500
LABEL_PLACES = ("top center", "bottom center", "top right", "bottom left")
LABEL_PLACES += ("top left", "bottom right")
AXIS_CHARACTERS = 44
SURE = "← forgetting · probability p"
APART = 0.17  # least distance between two tiers' names, as a share of the axis


def popularity_strip(facts: Sequence[Fact], tiers: Tiers = ON_SCALE) -> go.Figure:
    """The number of facts by score: bars over log10 of the score by tier, with separate bars for a
    score of zero and for no score, which is not zero, where there are such facts. tiers: of the
    set."""
    figure = blank(210)
    places: dict[tuple[str, float], list[Fact]] = {}
    names: list[tuple[float, int, str]] = []
    logs = [math.log10(fact.score) for fact in facts if fact.score]
    left = math.floor(min(logs, default=0.0))
    zero_at, unknown_at = left - 0.6, left - 1.4
    for fact in facts:
        places.setdefault((fact.tier, _place(fact, zero_at, unknown_at)), []).append(fact)
    for tier, color in {**TIER_COLOR, "unknown": INK}.items():
        bars = {at: members for (kind, at), members in places.items() if kind == tier}
        count = sum(map(len, bars.values()))
        figure.add_bar(
            x=list(bars),
            y=[len(members) for members in bars.values()],
            ids=[_bin(at, zero_at, unknown_at) for at in bars],
            width=0.9 / BINS_PER_DECADE,
            marker=dict(color=color),
            name=f"{tier} ({count:,})",
            text=[_names(members) for members in bars.values()],
            textposition="none",
            hovertemplate=f"{tiers.label(tier)}<br>%{{y:,}} facts<br>%{{text}}<extra></extra>",
        )
        if bars:
            centre = sum(at * len(members) for at, members in bars.items()) / count
            # of names at equal positions, the rarer tier's comes first
            names.append((centre, len(names), f"{tier}<br>{count:,}"))
    right = math.ceil(max(logs, default=1.0))
    bars_at = {at for _, at in places}
    ticks = {at: name for at, name in ((unknown_at, "unknown"), (zero_at, "0")) if at in bars_at}
    first = min([*ticks, left])
    ticks |= {tick: _power(tick) for tick in range(left, right + 1)}
    names.sort()
    margin = 0.15 if first == left else 0.5
    apart = APART * (right + 0.15 + margin - first)
    spots = spaced([at for at, *_ in names], apart, first, right)
    for where, (*_, name) in zip(spots, names):
        note = dict(xanchor="center", yanchor="bottom", font_size=11, showarrow=False)
        figure.add_annotation(x=where, y=1, yref="paper", text=name, **note)
    figure.update_layout(barmode="stack", showlegend=False, margin=dict(t=38))
    figure.update_xaxes(
        title_text="popularity score",
        tickvals=list(ticks),
        ticktext=list(ticks.values()),
        tickangle=0,
        tickfont_size=11,
        range=[first - margin, right + 0.15],
    )
    figure.update_yaxes(title_text="facts", rangemode="tozero", nticks=4)
    return figure


def _power(exponent: int) -> str:
    """A power of ten in few characters, for a phone: 0.1, 1,000, 1M."""
    for least, unit in ((9, "bn"), (6, "M")):
        if exponent >= least:
            return f"{10.0 ** (exponent - least):,.10g}{unit}"
    return f"{10.0**exponent:,.10g}"


def _place(fact: Fact, zero_at: float, unknown_at: float) -> float:
    if not fact.score:
        return unknown_at if fact.score is None else zero_at
    return (math.floor(math.log10(fact.score) * BINS_PER_DECADE) + 0.5) / BINS_PER_DECADE


def _bin(at: float, zero_at: float, unknown_at: float) -> str:
    """The range of scores of a bar."""
    if at in (zero_at, unknown_at):
        return "0" if at == zero_at else "unknown"
    half = 0.5 / BINS_PER_DECADE
    return f"{number(10 ** (at - half))} to {number(10 ** (at + half))}"


def _names(facts: Sequence[Fact]) -> str:
    more = ["…"] if len(facts) > NAMES_IN_HOVER else []
    return "<br>".join([*map(_name, facts[:NAMES_IN_HOVER]), *more])


def _name(fact: Fact, characters: int = NAME_CHARACTERS) -> str:
    """A fact's label in a figure, escaped because Plotly interprets some HTML."""
    return escape(fact.title[:characters])


def push_curves(betas: Mapping[str, float], confidence: float) -> go.Figure:
    """p^beta (1 - p), the push on the gold logit, over p: its peak is marked, `confidence` is
    dashed."""
    figure = blank(330)
    ps = [i / 200 for i in range(201)]
    for name, beta, tier, lowest in _curves(betas):
        _curve(figure, name, beta, tier, ps, [p**beta * (1 - p) for p in ps])
        top = peak(beta)
        height = top**beta * (1 - top)
        _name_curve(figure, name, beta, top, height, lowest)
        shape = dict(color=TIER_COLOR[tier], symbol=TIER_SYMBOL[tier], line_color="#fff")
        hover = f"strongest at p = β/(1+β) = {top:.0%}<extra></extra>"
        marker = dict(size=11, line_width=1, **shape)
        figure.add_scatter(x=[top], y=[height], mode="markers", hovertemplate=hover, marker=marker)
    figure.update_yaxes(title_text="training signal, p<sup>β</sup>(1 − p)", range=[0, 1.12])
    return _over_confidence(figure, confidence)


def relative_push(betas: Mapping[str, float], confidence: float) -> go.Figure:
    """p^(beta - 1), the weight relative to WGA's, over p, log y, as in the paper."""
    figure = blank(330)
    ps = [SMALLEST_P ** (1 - i / 100) for i in range(101)]
    for name, beta, tier, lowest in _curves(betas):
        _curve(figure, name, beta, tier, ps, [p ** (beta - 1) for p in ps])
        _name_curve(figure, name, beta, 0.08, (beta - 1) * math.log10(0.08), lowest)
    # on a log axis plotly takes the height of a note as a logarithm
    words = dict(text="equal pressure (WGA)", y=0)
    line, place = dict(color=INK, dash="dot", width=1), "bottom left"
    figure.add_hline(y=1, line=line, annotation=words, annotation_position=place)
    # no ticktext: `numbers_of` takes an axis with tick names for rows
    title, ticks = "times the pressure of WGA, p<sup>β−1</sup>", [0.01, 0.1, 1, 10, 100]
    figure.update_yaxes(title_text=title, type="log", tickvals=ticks)
    return _over_confidence(figure, confidence)


def _over_confidence(figure: go.Figure, confidence: float) -> go.Figure:
    """The figure with its horizontal axis: the model starts at the right, confident."""
    figure.add_vline(x=confidence, line=dict(color=INK, dash="dash", width=1))
    figure.update_xaxes(title_text=SURE, range=[0, 1], tickformat=".0%")
    return figure.update_layout(showlegend=False)


def _curve(
    figure: go.Figure, name: str, beta: float, tier: str, ps: list[float], values: list[float]
) -> None:
    ids, line = [f"{100 * p:.3g}%" for p in ps], dict(color=TIER_COLOR[tier], width=3)
    title = f"{name}: β {beta:.2f}"
    figure.add_scatter(x=ps, y=values, ids=ids, mode="lines", line=line, name=title)


def _name_curve(figure: go.Figure, name: str, beta: float, x: float, y: float, above: bool) -> None:
    """Writes a curve's name at a point of it. above: for the highest; others have room below."""
    edge = "left" if x < 0.3 else "center" if x < 0.75 else "right"
    beside = dict(yanchor="bottom", yshift=7) if above else dict(yanchor="top", yshift=-7)
    words = dict(text=f"{escape(name)}, β {beta:.2f}", font_size=12, showarrow=False)
    figure.add_annotation(x=x, y=y, xanchor=edge, **words, **beside)


def _curves(betas: Mapping[str, float]) -> list[tuple[str, float, str, bool]]:
    """(name, exponent, tier, whether the exponent is the least) of each curve. Exponents equal to
    two decimals share a curve."""
    curves: dict[float, tuple[str, str]] = {}
    tiers = TIERS if len(betas) == len(TIERS) else (TIERS[0], TIERS[-1])  # two have no middle
    for (name, beta), tier in zip(betas.items(), tiers):
        named = curves.get(round(beta, 2))
        curves[round(beta, 2)] = (f"{named[0]} and {name}" if named else name, tier)
    if len(curves) == 1 and len(betas) > 1:
        curves = {beta: ("all of these", tier) for beta, (_, tier) in curves.items()}
    return [(name, beta, tier, beta == min(curves)) for beta, (name, tier) in curves.items()]


def agreement_scatter(
    facts: Sequence[Fact],
    first: Mapping[str, float | None],
    second: Mapping[str, float | None],
    names: tuple[str, str],
    discordant: Sequence[str],
) -> go.Figure:
    """One proxy against the other, log(1 + s) on both axes; the facts on which they disagree are
    red, the worst of them named. A point per fact, but of more than `MOST_POINTS` on a side only an
    even part and those named."""
    figure = blank(380)
    apart, named = set(discordant), set(discordant[:LABELS])
    both = [one for one in facts if None not in (first.get(one.id), second.get(one.id))]
    crossed = [fact for fact in both if fact.id in apart]
    agreed = [fact for fact in both if fact.id not in apart]
    for label, color, symbol, members in (
        ("same side", TIER_COLOR["middle"], "circle", agreed),
        ("disagree", ALARM, "x", crossed),
    ):
        every = -(-len(members) // MOST_POINTS)
        drawn = [one for at, one in enumerate(members) if at % every == 0 or one.id in named]
        figure.add_scatter(
            x=[first[fact.id] + 1 for fact in drawn],
            y=[second[fact.id] + 1 for fact in drawn],
            mode="markers+text",
            marker=dict(color=color, symbol=symbol, size=8),
            name=f"{label} ({len(members):,})",
            text=[_name(fact, LABEL_CHARACTERS) if fact.id in named else "" for fact in drawn],
            textposition=[LABEL_PLACES[i % len(LABEL_PLACES)] for i in range(len(drawn))],
            customdata=[
                [_name(fact), f"{first[fact.id]:,.10g}", f"{second[fact.id]:,.10g}"]
                for fact in drawn
            ],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]} · %{customdata[2]}<extra></extra>",
        )
    figure.update_xaxes(title=f"1 + {escape(names[0][:AXIS_CHARACTERS])}", type="log", dtick=1)
    figure.update_yaxes(title=f"1 + {escape(names[1][:AXIS_CHARACTERS])}", type="log", dtick=1)
    return figure.update_layout(showlegend=False)
