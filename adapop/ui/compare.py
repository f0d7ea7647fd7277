"""Screen 5, Compare: a race of methods on the same facts, and what it shows. Everything is read from run folders."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import gradio as gr

from adapop import figures
from adapop.errors import AdaPopError
from adapop.report import write_report
from adapop.report.comparison import Comparison, comparison, settings_of, write_table
from adapop.report.contestants import contestants
from adapop.report.record import Record, read_record
from adapop.runs import Run
from adapop.ui import beside, cards, copy, race
from adapop.ui.chart import CAPTION, STAY_OPEN, TWIN, chart, drawn
from adapop.ui.grid import grid, grid_of
from adapop.ui.race import Race
from adapop.ui.run import refused
from adapop.ui.session import Session
from adapop.worker import Worker

DRAWN = 14  # components that are drawn again when a run ends: `_layout`, ours beside theirs, two files


def build(worker: Worker, session: Session, missing: gr.Radio, run_id: gr.BrowserState, follower: Race) -> None:
    """Lays the screen out inside the current tab and wires it."""
    gr.Markdown(copy.COMPARE_ABOUT)
    with gr.Row():
        chosen = gr.Dropdown(
            race.choices(),
            value=list(race.STARTERS),
            multiselect=True,
            label="Contestants",
            min_width=300,
            scale=5,
            elem_id="contestants",
        )
        epochs = gr.Slider(1, 10, value=5, step=1, label="Epochs each", min_width=150, scale=2, elem_id="race-epochs")
        seeds = gr.Radio([1, 2, 3], value=1, label="Seeds", min_width=210, scale=1, elem_id="race-seeds")
    with gr.Row():
        start = gr.Button("Race", variant="primary", min_width=150, scale=4, elem_id="race")
        stop = gr.Button("Stop race", min_width=110, scale=1, interactive=False, elem_id="stop-race")
        join = gr.Button("Add the run of tab 3", min_width=170, scale=1, elem_id="join-race")
    with gr.Column(elem_id="race-empty") as empty:
        gr.Markdown(copy.COMPARE_EMPTY)
        duel = gr.Button("Race AdaPop against WGA", min_width=220, elem_id="duel")
    progress = gr.HTML(cards.values({"shown": False}), html_template=race.PROGRESS, elem_id="race-progress")
    with gr.Column(visible=False) as results:
        shown, first, second = _layout()
        comparer = beside.build()
        files = _downloads(worker, follower)
    outputs = [progress, start, stop, empty, results, *shown, comparer.table, *files, follower.seen, follower.timer]

    def begun(*values):
        return race.begin(worker, *values), -1, gr.Timer(active=True)

    def dueled(facts, missing_score, anchors, epoch_count, seed_count):
        kept = race.begin(worker, facts, missing_score, anchors, race.DUEL, epoch_count, seed_count)
        return kept, -1, gr.Timer(active=True)

    def joined(kept: dict, name: str):
        return race.joined(worker, kept, name), -1, gr.Timer(active=True)

    quiet = {"api_visibility": "private", "show_progress": "hidden"}
    facts = [session.facts, missing, session.anchors]
    target = [follower.kept, follower.seen, follower.timer]
    start.click(begun, [*facts, chosen, epochs, seeds], target, api_visibility="private")
    duel.click(dueled, [*facts, epochs, seeds], target, api_visibility="private")
    join.click(joined, [follower.kept, run_id], target, **quiet)
    stop.click(lambda kept: race.end(worker, kept), follower.kept, None, **quiet)
    looked = {"fn": lambda *values: show(worker, *values), "outputs": outputs, "concurrency_limit": None, **quiet}
    looked["inputs"] = [follower.kept, follower.seen, comparer.setting]
    follower.timer.tick(**looked)
    # without triggers it runs when the page opens and whenever one of its inputs changes
    gr.on(None, trigger_mode="always_last", **looked)
    gr.on(
        [first.input, second.input],
        lambda *values: differing(worker, *values),
        [follower.kept, first, second],
        shown[-1],
        **quiet,
    )
    comparer.setting.change(
        lambda kept, setting: beside.rows(_finished(worker, kept), setting),
        [follower.kept, comparer.setting],
        comparer.table,
        **quiet,
    )


def _layout() -> tuple[list, gr.Dropdown, gr.Dropdown]:
    """What shows results, in the order of `_results`, and the two dropdowns among them."""
    warned = gr.HTML(cards.listed([], "hidden"), html_template=cards.LINES, elem_id="compare-warnings")
    found = gr.HTML(cards.listed([], "hidden"), html_template=cards.LINES, elem_id="compare-findings")
    with gr.Row():
        with gr.Column(min_width=320):
            gr.Markdown(f"### The gap, method by method\n{copy.COMPARE_GAP}")
            gap = chart(figures.empty(copy.COMPARE_CHART_EMPTY), "compare-gap", copy.COMPARE_GAP_TABLE)
        with gr.Column(min_width=320):
            gr.Markdown(f"### Forgetting, and what it cost\n{copy.COMPARE_COST}")
            cost = gr.Plot(figures.empty(copy.COMPARE_CHART_EMPTY), show_label=False, elem_id="compare-cost")
            cost_twin = gr.HTML(cards.values({}), html_template=TWIN, js_on_load=STAY_OPEN, elem_id="compare-cost-twin")
    gr.Markdown(f"### Every metric\n{copy.COMPARE_TABLE}")
    ranges = gr.HTML(cards.listed([], "hidden"), html_template=cards.LINES, elem_id="compare-ranges")
    table = grid("compare-table")
    gr.Markdown("### In what they differ")
    with gr.Row():
        first = gr.Dropdown([], label="This one", min_width=200, elem_id="differ-first")
        second = gr.Dropdown([], label="against", min_width=200, elem_id="differ-second")
    differ = grid("compare-settings")
    return [warned, found, *gap, cost, cost_twin, ranges, table, first, second, differ], first, second


def _downloads(worker: Worker, follower: Race) -> list:
    gr.Markdown(f"### Take it home\n{copy.COMPARE_DOWNLOAD}")
    with gr.Row():
        make = gr.Button("Make the report and the table", min_width=220, elem_id="make-comparison")
        report = gr.DownloadButton("Report (HTML)", visible=False, min_width=140, elem_id="download-comparison")
        table = gr.DownloadButton("Table (CSV)", visible=False, min_width=140, elem_id="download-comparison-table")

    def made(kept: dict):
        return files_of(race.standing(worker, kept).runs)

    make.click(made, follower.kept, [report, table], api_visibility="private")
    return [report, table]


def files_of(runs: Sequence[Run]) -> tuple:
    """The report on these runs and the table of their comparison, ready to download."""
    out = Path(tempfile.mkdtemp())  # a fresh folder of ours: gradio serves no file from anywhere else
    try:
        page = write_report(runs, out / "comparison.html")
        table = write_table(comparison([read_record(run) for run in runs]), out / "comparison.csv")
    except AdaPopError as error:
        raise refused(error) from error
    return gr.DownloadButton(value=str(page), visible=True), gr.DownloadButton(value=str(table), visible=True)


def show(worker: Worker, kept: dict | None, last_seen: int, setting: str) -> tuple:
    """Everything that shows a race. Results are drawn again only when another run came to its end."""
    now = race.standing(worker, kept)
    head = (
        now.shown,
        gr.Button(interactive=not now.ticking),
        gr.Button(interactive=now.ticking),
        gr.Column(visible=not now.shown["shown"]),
    )
    timer = gr.Timer(active=now.ticking)
    if last_seen == now.finished:
        return *head, *[gr.skip()] * (DRAWN + 2), timer
    if now.finished == 0:
        return *head, gr.Column(visible=False), *[gr.skip()] * DRAWN, 0, timer
    records = [read_record(run) for run in now.runs]
    hidden = gr.DownloadButton(visible=False)  # what was made before lacks a run
    return (
        *head,
        gr.Column(visible=True),
        *_results(comparison(records)),
        beside.rows(records, setting),
        hidden,
        hidden,
        now.finished,
        timer,
    )


def _results(told: Comparison) -> list:
    """New values for what `_layout` returned."""
    names = [one.name for one in told.contestants]
    pair = names[:2] if len(names) > 1 else names * 2
    return [
        cards.listed(told.warnings, "warn" if told.warnings else "hidden"),
        cards.listed(told.findings, "calm" if told.findings else "hidden"),
        *drawn(figures.compare_runs(told.outcomes), copy.COMPARE_GAP_TABLE),
        figures.forget_against_holdout(told.outcomes, told.asked),
        cost_table(told),
        cards.listed(told.intervals, "calm" if told.intervals else "hidden"),
        grid_of(told.results, "Every metric"),
        gr.Dropdown(names, value=pair[0]),
        gr.Dropdown(names, value=pair[1]),
        settings_grid([one for one in told.contestants if one.name in pair]),
    ]


def cost_table(told: Comparison) -> dict:
    """The scatter in numbers, as values of a chart's text twin."""
    front = {one.label for one in figures.pareto_front(told.outcomes)}
    rows = []
    for one in told.outcomes:
        if one.forget and one.holdout:
            cells = [f"{cell.mean:.2f} ({cell.low:.2f} to {cell.high:.2f})" for cell in (one.forget, one.holdout)]
            place = "collapsed" if one.collapsed else "on the front" if one.label in front else "behind it"
            rows.append([one.label, *cells, place if one.mark else "where all began"])
    columns = ["", f"to forget, {told.asked}", "held out", "Pareto front"]
    return cards.values({"caption": CAPTION, "words": copy.COMPARE_COST_TABLE, "columns": columns, "rows": rows})


def differing(worker: Worker, kept: dict, *names: str) -> dict:
    """The settings in which two contestants differ."""
    return settings_grid([one for one in contestants(_finished(worker, kept)) if one.name in names])


def settings_grid(pair: Sequence) -> dict:
    """The differences between contestants, or a sentence that there are none."""
    return grid_of(settings_of(pair), "Settings that differ", empty=copy.COMPARE_SAME)


def _finished(worker: Worker, kept: dict | None) -> list[Record]:
    return [read_record(run) for run in race.standing(worker, kept).runs]
