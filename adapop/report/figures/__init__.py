"""Numbers as plotly figures. No torch, no gradio; read `look` first."""

from plotly.graph_objects import Figure

from adapop.report.figures.compare import compare_runs, forget_against_holdout, published_recalls
from adapop.report.figures.distance import oracle_chart
from adapop.report.figures.experiments import line_panels
from adapop.report.figures.look import as_html, empty, finding_of
from adapop.report.figures.numbers import MOST_ROWS, Numbers, numbers_of
from adapop.report.figures.outcomes import Outcome, pareto_front
from adapop.report.figures.popularity import (
    agreement_scatter,
    popularity_strip,
    push_curves,
    relative_push,
)
from adapop.report.figures.probes import control_rows, leak_heatmap, recall_by_kind, verdict_bars
from adapop.report.figures.run import (
    CONTROLLER_PIXELS,
    LOSS_COLOR,
    RECALL_PIXELS,
    by_epoch,
    controller_chart,
    loss_chart,
    loss_finding,
    loss_numbers,
    loss_rows,
    outcome_chart,
    recall_chart,
    wordings_of,
)

__all__ = [
    "CONTROLLER_PIXELS", "LOSS_COLOR", "MOST_ROWS", "RECALL_PIXELS", "Figure", "Numbers", "Outcome",
    "agreement_scatter", "as_html", "by_epoch", "compare_runs", "control_rows", "controller_chart",
    "empty", "finding_of", "forget_against_holdout", "leak_heatmap", "line_panels", "loss_chart",
    "loss_finding", "loss_numbers", "loss_rows", "numbers_of", "oracle_chart", "outcome_chart",
    "pareto_front", "popularity_strip", "published_recalls", "push_curves", "recall_by_kind",
    "recall_chart", "relative_push", "verdict_bars", "wordings_of",
]  # fmt: skip
