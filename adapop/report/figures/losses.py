"""A run's losses step by step, by tier: rows, table and figure."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import plotly.graph_objects as go

from adapop.report.figures import look
from adapop.report.figures.numbers import Numbers, thinned
from adapop.training.events import StepDone

TO_FORGET = "forget set"  # name of all facts to forget where none has a tier
TO_KEEP = "retain set"
FORGET_COLOR = {**look.TIER_COLOR, TO_FORGET: look.UNLEARNED}
# Short names, because they stand side by side on a phone.
LOSS_COLOR = {**FORGET_COLOR, TO_KEEP: look.CALM}
RAW = ", raw"  # suffix of a line of single steps, behind the smoothed one
RAW_COLOR = {name + RAW: f"{color}40" for name, color in LOSS_COLOR.items()}  # a quarter opaque
EARLIER = "earlier run"  # behind all of these
EARLIER_COLOR = {EARLIER: f"{look.UNLEARNED}99", f"{EARLIER}, retain set": f"{look.CALM}99"}
SMOOTHED_STEPS = 8  # most steps that a point of a smoothed line averages


def loss_rows(steps: Sequence[StepDone], steps_per_epoch: int) -> list[dict[str, float | str]]:
    """Mean answer nll in each step's batch: of its forget rows by tier (of all of them if no step
    has tiers) and of its retain rows. One dict per point, not smoothed."""
    rows: list[dict[str, float | str]] = []
    scored = any(event.nll_by_tier for event in steps)
    for event in steps:
        at = (event.epoch - 1) + event.step / steps_per_epoch
        forget = event.nll_by_tier if scored else {TO_FORGET: event.nll_forget}
        rows += [{"epoch": at, "nats": nll, "facts": name} for name, nll in forget.items()]
        if event.nll_retain is not None:
            rows.append({"epoch": at, "nats": event.nll_retain, "facts": TO_KEEP})
    return rows


def smoothed_rows(rows: Sequence[dict[str, float | str]]) -> list[dict[str, float | str]]:
    """`loss_rows`, named as raw, then each line's moving mean over the last `SMOOTHED_STEPS`."""
    lines: dict[str, list[dict[str, float | str]]] = {}
    for row in rows:
        lines.setdefault(str(row["facts"]), []).append(row)
    raw = [row | {"facts": f"{row['facts']}{RAW}"} for row in rows]
    smooth = []
    for line in lines.values():
        for place, row in enumerate(line):
            last = line[max(0, place + 1 - SMOOTHED_STEPS) : place + 1]
            smooth.append(row | {"nats": fmean(float(one["nats"]) for one in last)})
    return raw + smooth


def laid_over(steps: Sequence[StepDone], steps_per_epoch: int) -> list[dict[str, float | str]]:
    """An earlier run's smoothed losses as `loss_rows`, named as in `EARLIER_COLOR`: of its whole
    forget set, and of its retain set."""
    plain = loss_rows([replace(step, nll_by_tier={}) for step in steps], steps_per_epoch)
    lines = dict(zip((TO_FORGET, TO_KEEP), EARLIER_COLOR))
    return [row | {"facts": lines[row["facts"]]} for row in smoothed_rows(plain)[len(plain) :]]


def gradient_chart(steps: Sequence[StepDone], steps_per_epoch: int) -> go.Figure:
    """Norm of each step's gradient before it is clipped, by epoch."""
    figure = look.blank(240)
    at = [(step.epoch - 1) + step.step / steps_per_epoch for step in steps]
    norms = [step.gradient_norm for step in steps]
    line = dict(color=look.INK, width=2)
    figure.add_scatter(x=at, y=norms, mode="lines", line=line, name="gradient norm")
    figure.update_xaxes(title_text="epoch")
    figure.update_yaxes(title_text="norm before clipping", rangemode="tozero")
    figure.update_layout(showlegend=False)
    return figure


def loss_numbers(steps: Sequence[StepDone], steps_per_epoch: int) -> Numbers:
    """`loss_rows` as a table, a row per step. Must be cheap: the page draws it at every tick."""
    losses: dict[float, dict[str, float]] = {}
    for row in loss_rows(steps, steps_per_epoch):
        losses.setdefault(row["epoch"], {})[row["facts"]] = row["nats"]
    names = [name for name in LOSS_COLOR if any(name in nats for nats in losses.values())]
    rows = [
        (f"{at:.4g}", *(f"{nats[name]:.4g}" if name in nats else "" for name in names))
        for at, nats in losses.items()
    ]
    return thinned(("epoch", *names), rows)


def loss_chart(steps: Sequence[StepDone], steps_per_epoch: int) -> go.Figure:
    """`loss_rows` as a figure, for use without the page."""
    figure = look.blank(330)
    rows, ends = loss_rows(steps, steps_per_epoch), []
    for name, color in LOSS_COLOR.items():
        points = [row for row in rows if row["facts"] == name]
        x, y = [row["epoch"] for row in points], [row["nats"] for row in points]
        figure.add_scatter(x=x, y=y, mode="lines", line=dict(color=color, width=2), name=name)
        ends += [(y[-1], name)] if points else []
    last, most = (max(row[name] for row in rows) for name in ("epoch", "nats"))
    look.end_labels(figure, ends, last, most)
    figure.update_xaxes(title_text="epoch")
    figure.update_yaxes(title_text="loss of the answer, nats", rangemode="tozero")
    figure.update_layout(showlegend=False, margin=dict(r=76))
    return figure
