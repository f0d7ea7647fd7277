"""Screen 5, Compare: a race of methods on the same facts, and what it shows. Everything is read from run folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gradio as gr

from adapop.errors import AdaPopError
from adapop.report import write_report
from adapop.report.comparison import Comparison, comparison, settings_of, write_table
from adapop.report.contestants import contestants
from adapop.report.record import Record, read_record
from adapop.runs.run import Run
from adapop.service.rates import JOB
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import refused
from adapop.ui.compare import published, race
from adapop.ui.compare import recorded as layer
from adapop.ui.compare.race import Race
from adapop.ui.parts import html
from adapop.ui.parts.download import served_folder
from adapop.ui.parts.grid import grid, grid_of
from adapop.ui.session import Session
from adapop.ui.wiring import LAST_STAYS

TOLD = 6  # how many values `_told` gives
DRAWN = 1 + layer.PICTURES + 1 + TOLD + 3  # with the two columns, ours beside theirs, and two files


@dataclass(frozen=True)
class Results:
    """What shows a race. column: all of it. pictures: what the recorded layer lies over, in the order of
    `layer.pictures`. own: the part that is about the race alone. told: the race in words and settings, in the order of
    `_told`; first, second: of those, whose settings are set against each other, and differ: the table of them."""

    column: gr.Column
    pictures: list[gr.Component]
    own: gr.Column
    told: list[gr.Component]
    first: gr.Dropdown
    second: gr.Dropdown
    differ: gr.HTML


def build(worker: Worker, session: Session, missing: gr.Radio, run_id: gr.BrowserState, follower: Race) -> None:
    """Lays the screen out inside the current tab and wires it."""
    gr.Markdown(texts.COMPARE_ABOUT)
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
    if worker.is_lent:
        gr.Markdown(texts.RACE_LENT)
    with gr.Column(elem_id="race-empty") as empty:
        gr.Markdown(texts.COMPARE_EMPTY)
        duel = gr.Button("Race AdaPop against WGA", min_width=220, elem_id="duel")
    progress = gr.HTML(html.values({"shown": False}), html_template=race.PROGRESS, elem_id="race-progress")
    choice, recorded = layer.build()
    results, comparer, files = _layout(worker, follower, recorded)
    drawn_again = [results.column, *results.pictures, results.own, *results.told, comparer.table, *files]
    outputs = [progress, start, stop, empty, *drawn_again, follower.seen, follower.timer]

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
    looked["inputs"] = [follower.kept, follower.seen, comparer.setting, choice, results.first, results.second]
    follower.timer.tick(**looked)
    # without triggers it runs when the page opens and whenever one of its inputs changes
    gr.on(None, trigger_mode="always_last", **looked)
    last = quiet | LAST_STAYS
    choice.input(
        lambda *values: layered(worker, *values), [follower.kept, choice], [results.column, *results.pictures], **last
    )
    gr.on(
        [results.first.input, results.second.input],
        lambda *values: differing(worker, *values),
        [follower.kept, results.first, results.second],
        results.differ,
        **last,
    )
    comparer.setting.change(
        lambda kept, setting: published.rows(_finished(race.standing(worker, kept)), setting),
        [follower.kept, comparer.setting],
        comparer.table,
        trigger_mode="multiple",
        **quiet,
    )


def _layout(worker: Worker, follower: Race, recorded: gr.HTML) -> tuple[Results, published.PublishedSection, list]:
    """What shows results, hidden until there are some; the paper's numbers beside them; and the files to take home."""
    with gr.Column(visible=False) as column:
        warned = gr.HTML(html.listed([], "hidden"), html_template=html.LINES, elem_id="compare-warnings")
        found = gr.HTML(html.listed([], "hidden"), html_template=html.LINES, elem_id="compare-findings")
        pictures = [recorded, *layer.charts()]
        gr.Markdown(f"### Every metric\n{texts.COMPARE_TABLE}")
        ranges = gr.HTML(html.listed([], "hidden"), html_template=html.LINES, elem_id="compare-ranges")
        pictures.append(grid("compare-table"))
        with gr.Column(visible=False) as own:
            gr.Markdown("### In what they differ")
            with gr.Row():
                first = gr.Dropdown([], label="This one", min_width=200, elem_id="differ-first")
                second = gr.Dropdown([], label="against", min_width=200, elem_id="differ-second")
            differ = grid("compare-settings")
            comparer = published.build()
            files = _downloads(worker, follower)
    told = [warned, found, ranges, first, second, differ]
    return Results(column, pictures, own, told, first, second, differ), comparer, files


def _downloads(worker: Worker, follower: Race) -> list:
    gr.Markdown(f"### Take it home\n{texts.COMPARE_DOWNLOAD}")
    with gr.Row():
        make = gr.Button("Make the report and the table", min_width=220, elem_id="make-comparison")
        report = gr.DownloadButton("Report (HTML)", visible=False, min_width=140, elem_id="download-comparison")
        table = gr.DownloadButton("Table (CSV)", visible=False, min_width=140, elem_id="download-comparison-table")

    make.click(lambda kept: taken_home(worker, kept), follower.kept, [report, table], api_visibility="private")
    return [report, table]


def taken_home(worker: Worker, kept: dict) -> tuple:
    """`files_of` the race, unless this visitor took too many lately."""
    try:
        worker.admission.admit(JOB)
        return files_of(race.standing(worker, kept).runs)
    except AdaPopError as error:
        raise refused(error) from error


def files_of(runs: Sequence[Run]) -> tuple:
    """The report on these runs and the table of their comparison, ready to download.

    Raises:
        RunError: there is none, or one does not read.
    """
    out = served_folder()
    page = write_report(runs, out / "comparison.html")
    table = write_table(comparison([read_record(run) for run in runs]), out / "comparison.csv")
    return gr.DownloadButton(value=str(page), visible=True), gr.DownloadButton(value=str(table), visible=True)


def show(worker: Worker, kept: dict | None, last_seen: int, setting: str, choice: str, *pair: str | None) -> tuple:
    """Everything that shows a race. Results are drawn again only when another run came to its end.

    last_seen: see `race.Race`. setting: of the paper's numbers. choice: of what was recorded. pair: the numbers of the
    two contestants whose settings are set against each other.
    """
    now = race.standing(worker, kept)
    head = (
        now.shown,
        gr.Button(interactive=not now.ticking),
        gr.Button(interactive=now.ticking),
        gr.Column(visible=not now.shown["shown"]),
    )
    timer = gr.Timer(active=now.ticking)
    if last_seen == now.finished:
        return *head, *[gr.skip()] * DRAWN, gr.skip(), timer
    records = _finished(now)
    hidden = gr.DownloadButton(visible=False)  # what was made before lacks a run
    told = comparison(records)
    return (
        *head,
        *_visible(told, choice),
        gr.Column(visible=bool(records)),
        *_told(told, pair),
        published.rows(records, setting),
        hidden,
        hidden,
        now.finished,
        timer,
    )


def layered(worker: Worker, kept: dict | None, choice: str) -> list:
    """The pictures with another choice of what was recorded."""
    return _visible(comparison(_finished(race.standing(worker, kept))), choice)


def _visible(told: Comparison, choice: str) -> list:
    """Whether there is anything to see, and the pictures of it; who only opens the page has none drawn."""
    recorded = layer.layer_of(told, choice)
    if told.outcomes or recorded:
        return [gr.Column(visible=True), *layer.pictures(told, choice)]
    words = layer.words_of(told, recorded, choice)
    return [gr.Column(visible=False), words, *[gr.skip()] * (layer.PICTURES - 1)]


def _told(told: Comparison, pair: Sequence[str | None]) -> list:
    """The race in words and settings. Who was set against whom stays so; at first it is the first two."""
    marks = [one.mark for one in told.contestants]
    first, second = (mark if mark in marks else other for mark, other in zip(pair, (*marks, *marks, None, None)))
    names = [(one.name, one.mark) for one in told.contestants]
    return [
        html.listed(told.warnings, "warn" if told.warnings else "hidden"),
        html.listed(told.findings, "calm" if told.findings else "hidden"),
        html.listed(told.intervals, "calm" if told.intervals else "hidden"),
        gr.Dropdown(names, value=first),
        gr.Dropdown(names, value=second),
        settings_grid([one for one in told.contestants if one.mark in (first, second)]),
    ]


def differing(worker: Worker, kept: dict, *marks: str) -> dict:
    """The settings in which two contestants differ, by their numbers."""
    found = contestants(_finished(race.standing(worker, kept)))
    return settings_grid([one for one in found if one.mark in marks])


def settings_grid(pair: Sequence) -> dict:
    """The differences between contestants, or a sentence that there are none."""
    return grid_of(settings_of(pair), texts.COMPARE_SAME)


def _finished(now: race.Standing) -> list[Record]:
    """The race's runs, once one of them came to its end."""
    return [read_record(run) for run in now.runs] if now.finished else []
