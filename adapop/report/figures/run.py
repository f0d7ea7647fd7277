"""The pictures of a run: controller, losses, recall by epoch, and what came of it."""

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from adapop.config.run import RunConfig
from adapop.facts.fact import TIERS
from adapop.report.figures import look
from adapop.report.figures.numbers import Numbers, thinned
from adapop.training.events import EpochDone, Measured, StepDone

CONTROLLER_PIXELS = 400
# what drift above the tolerance does under each controller, and what the retain weight is
CONTROLLER_NAMES = {
    "dual": ("δ above ε: λ rises", "α = α₀ + λ"),
    "fixed": ("δ above ε, α fixed", "α"),
    "primal": ("δ above ε, PDU does not look", "μ, PDU's weight"),
}


def controller_chart(epochs: Sequence[EpochDone], config: RunConfig) -> go.Figure:
    """Drift against the tolerance above, the retain weight alpha = alpha0 + lambda below, on one x-axis."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.12, row_heights=[0.58, 0.42])
    look.neutral(figure, CONTROLLER_PIXELS)
    figure.update_layout(barmode="overlay")
    trained = [row for row in epochs if row.epoch > 0]
    tolerance, planned = config.tolerance, config.epochs
    above, weight = CONTROLLER_NAMES[config.controller]
    for name, color, chosen in (
        ("δ within ε", look.CALM, [row for row in trained if row.drift <= tolerance]),
        (above, look.ALARM, [row for row in trained if row.drift > tolerance]),
    ):
        figure.add_bar(
            x=[row.epoch for row in chosen],
            y=[row.drift for row in chosen],
            marker=dict(color=color),
            name=name,
            row=1,
            col=1,
        )
    figure.add_scatter(
        x=[row.epoch for row in trained],
        y=[row.drift_from_start for row in trained],
        mode="markers+lines",
        line=dict(color=look.INK, dash="dot", width=1.5),
        marker=dict(symbol="x-thin-open", size=8),
        name="δ from before training",
        row=1,
        col=1,
    )
    figure.add_hline(y=tolerance, line=dict(color=look.ALARM, dash="dash", width=1.5), row=1, col=1)
    alpha0 = epochs[0].alpha if epochs else 0.5
    figure.add_scatter(
        x=[row.epoch for row in epochs],
        y=[row.alpha for row in epochs],
        mode="lines+markers+text",
        line=dict(color=look.UNLEARNED, width=3, shape="hv"),
        text=_lambda_labels(epochs) if config.controller == "dual" else [],
        textposition="top center",
        cliponaxis=False,
        name=weight,
        row=2,
        col=1,
    )
    highest = max([row.drift for row in trained] + [row.drift_from_start for row in trained] + [tolerance * 2])
    figure.update_yaxes(title_text="drift δ", range=[0, highest * 1.25], row=1, col=1)
    figure.add_scatter(  # above everything that is drawn, where no mark can cross a number
        x=[row.epoch for row in trained],
        y=[highest * 1.16] * len(trained),
        mode="text",
        text=[f"{row.drift:.2f}" for row in trained],
        hoverinfo="skip",
        showlegend=False,
        row=1,
        col=1,
    )
    top = max([row.alpha for row in epochs] + [alpha0 + 0.1])
    figure.update_yaxes(title_text="α", range=[max(0, alpha0 - 0.1), top + 0.35 * (top - alpha0 + 0.1)], row=2, col=1)
    figure.update_xaxes(range=[-0.4, planned + 0.6], dtick=1, row=1, col=1)
    figure.update_xaxes(range=[-0.4, planned + 0.6], dtick=1, title_text="epoch", row=2, col=1)
    return figure


def _lambda_labels(epochs: Sequence[EpochDone]) -> list[str]:
    """lambda where it first moves and at the end; a label an epoch would not fit a phone."""
    first = next((i for i, row in enumerate(epochs) if row.lam > 0), None)
    marked = {first, len(epochs) - 1}
    return [f"λ {row.lam:.3f}" if i in marked else "" for i, row in enumerate(epochs)]


def loss_rows(steps: Sequence[StepDone], steps_per_epoch: int) -> list[dict[str, float | str]]:
    """Mean answer nll of each step's batch, by tier, and of its retain rows; one dict a point. Raw, not smoothed."""
    rows: list[dict[str, float | str]] = []
    for event in steps:
        at = (event.epoch - 1) + event.step / steps_per_epoch
        rows += [{"epoch": at, "nats": nll, "facts": tier} for tier, nll in event.nll_by_tier.items()]
        if event.nll_retain is not None:
            rows.append({"epoch": at, "nats": event.nll_retain, "facts": "retained"})
    return rows


LOSS_COLOR = {**look.TIER_COLOR, "retained": look.RETAIN}  # in few words: a phone has room for all four side by side


def loss_numbers(steps: Sequence[StepDone], steps_per_epoch: int) -> Numbers:
    """`loss_rows` as a table, a row a step: what is drawn at every tick must cost little."""
    found: dict[float, dict[str, float]] = {}
    for row in loss_rows(steps, steps_per_epoch):
        found.setdefault(row["epoch"], {})[row["facts"]] = row["nats"]
    names = [name for name in LOSS_COLOR if any(name in nats for nats in found.values())]
    rows = [
        (f"{at:.4g}", *(f"{nats[name]:.4g}" if name in nats else "" for name in names)) for at, nats in found.items()
    ]
    return thinned(("epoch", *names), rows)


def loss_chart(steps: Sequence[StepDone], steps_per_epoch: int) -> go.Figure:
    """`loss_rows` as a figure, for where there is no page to draw them."""
    figure = look.blank(330)
    rows = loss_rows(steps, steps_per_epoch)
    for name, color in LOSS_COLOR.items():
        points = [row for row in rows if row["facts"] == name]
        figure.add_scatter(
            x=[row["epoch"] for row in points],
            y=[row["nats"] for row in points],
            mode="lines",
            line=dict(color=color, width=2),
            name=name,
            showlegend=bool(points),
        )
    figure.update_xaxes(title_text="epoch")
    figure.update_yaxes(title_text="loss of the answer, nats", rangemode="tozero")
    return figure


def recall_chart(measured: Sequence[Measured], planned: int) -> go.Figure:
    """Recall of the forget facts by epoch and tier: asked directly (solid) and reworded (dotted)."""
    figure = look.blank(330)
    quick = [event for event in measured if not event.full]
    for tier in TIERS:
        for form, dash in (("direct", "solid"), ("reworded", "dot")):
            found = [(event.epoch, event.recall("forget", form, tier)) for event in quick]
            points = [(x, y) for x, y in found if y is not None]
            figure.add_scatter(
                x=[x for x, _ in points],
                y=[y for _, y in points],
                mode="lines+markers",
                name=tier if form == "direct" else f"{tier}, reworded",
                legendgroup=tier,
                showlegend=form == "direct",
                line=dict(color=look.TIER_COLOR[tier], width=3 if form == "direct" else 2, dash=dash),
                marker=dict(symbol=look.TIER_SYMBOL[tier] + ("" if form == "direct" else "-open"), size=8),
            )
    figure.update_xaxes(title_text="epoch", range=[-0.2, planned + 0.2], dtick=1)
    figure.update_yaxes(title_text="recall of facts to forget", range=[-0.03, 1.05])
    return figure


def outcome_chart(before: Measured, after: Measured) -> go.Figure:
    """Recall before and after for forget by tier, retain and holdout, reworded: the gap and its cost in one picture."""
    figure = look.blank(330)
    places = [("forget", tier, f"forget<br>{tier}") for tier in TIERS]
    places += [(group, "all", group) for group in ("retain", "holdout", "utility")]
    for name, event, color, symbol in (
        ("original", before, look.ORIGINAL, "circle-open"),
        ("unlearned", after, look.UNLEARNED, "diamond"),
    ):
        points = [(label, _recall(event, group, tier)) for group, tier, label in places]
        points = [(label, value) for label, value in points if value is not None]
        figure.add_scatter(
            x=[label for label, _ in points],
            y=[value for _, value in points],
            mode="markers+text",
            name=name,
            marker=dict(color=color, symbol=symbol, size=13, line=dict(width=2, color=color)),
            text=[f"{value:.2f}" for _, value in points],
            textposition="top center" if name == "original" else "bottom center",
            cliponaxis=False,
        )
    figure.update_xaxes(tickangle=0, tickfont_size=11)
    figure.update_yaxes(title_text="recall", range=[-0.12, 1.14], tickvals=[0, 0.25, 0.5, 0.75, 1])
    return figure


def _recall(event: Measured, group: str, tier: str) -> float | None:
    """Reworded recall where there are rewordings, else direct."""
    reworded = event.recall(group, "reworded", tier)
    return event.recall(group, "direct", tier) if reworded is None else reworded
