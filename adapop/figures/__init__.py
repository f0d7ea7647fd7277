"""Numbers as plotly figures. No torch, no gradio; read `look` first."""

from adapop.figures.look import empty
from adapop.figures.popularity import agreement_scatter, popularity_strip, push_curves, relative_push
from adapop.figures.run import LOSS_COLOR, controller_chart, loss_rows, outcome_chart, recall_chart

__all__ = [
    "LOSS_COLOR",
    "agreement_scatter",
    "controller_chart",
    "empty",
    "loss_rows",
    "outcome_chart",
    "popularity_strip",
    "push_curves",
    "recall_chart",
    "relative_push",
]
