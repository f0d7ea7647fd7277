"""Plotly figures of all results. No torch, no gradio. Read `look` first."""

# ruff: noqa: F401  the names that other packages use
from plotly.graph_objects import Figure

from adapop.report.figures.compare import compare_runs, published_recalls
from adapop.report.figures.experiments import line_panels
from adapop.report.figures.look import as_html, empty
from adapop.report.figures.losses import (
    EARLIER_COLOR,
    LOSS_COLOR,
    RAW_COLOR,
    TO_FORGET,
    gradient_chart,
    laid_over,
    loss_chart,
    loss_numbers,
    loss_rows,
    smoothed_rows,
)
from adapop.report.figures.numbers import MOST_ROWS, Numbers, numbers_of
from adapop.report.figures.outcomes import Outcome, pareto_front
from adapop.report.figures.popularity import (
    agreement_scatter,
    popularity_strip,
    push_curves,
    relative_push,
)
from adapop.report.figures.probes import (
    control_rows,
    leak_curve,
    leak_heatmap,
    oracle_chart,
    recall_by_kind,
    verdict_bars,
)
from adapop.report.figures.run import (
    CONTROLLER_PIXELS,
    LINES_AND_MARKS,
    ONE_WORDING,
    RECALL_PIXELS,
    by_epoch,
    controller_chart,
    outcome_chart,
    recall_chart,
    wordings_of,
)
from adapop.report.figures.scatter import forget_against_holdout
