"""A race's results: charts, sentences, the paper's numbers beside them, and files to download."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import gradio as gr

from adapop.probes.prompts import plain
from adapop.remark import sentences
from adapop.report import real, write_report
from adapop.report.comparison import comparison, settings_of, write_table
from adapop.report.contestants import Contestant
from adapop.report.paired import paired_records
from adapop.report.record import Record
from adapop.report.table import signed
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.ui.access import refusing
from adapop.ui.compare import published, race, recorded
from adapop.ui.parts import html
from adapop.ui.parts.download import MOST_TITLE, served_folder, title_box
from adapop.ui.parts.grid import grid, grid_of
from adapop.ui.wiring import Components

COMPARE_SAME = "They differ in no setting but the seed."


@dataclass(frozen=True)
class RaceResults(Components):
    """The components of a race's results. race_only: around all but the pictures. warnings, ranges:
    sentences. first, second: two contestants, whose differing settings `differences` shows.
    published: the paper's numbers beside them. report, file: downloads."""

    pictures: recorded.Pictures
    race_only: gr.Column
    warnings: gr.HTML
    ranges: gr.HTML
    first: gr.Dropdown
    second: gr.Dropdown
    differences: gr.HTML
    published: gr.HTML
    report: gr.DownloadButton
    file: gr.DownloadButton

    def updates(
        self, records: Sequence[Record], setting: str, choice: str, pair: Sequence[str | None]
    ) -> dict:
        """Updates that show these runs. pair: marks of two contestants; it stays while both are in
        the race, and the default is the first two. Hides earlier download files, which may lack a
        run."""
        compared = comparison(records)
        names = [(one.name, one.mark) for one in compared.contestants]
        marks = [mark for _, mark in names]
        first, second = pair if {*pair} <= {*marks} else (*marks, *marks, None, None)[:2]
        return {
            **self.pictures.updates(compared, choice),
            self.race_only: gr.Column(visible=bool(records)),
            self.warnings: html.listed(sentences(compared.warnings), "warn"),
            self.ranges: html.listed(compared.intervals),
            self.first: gr.Dropdown(names, value=first),
            self.second: gr.Dropdown(names, value=second),
            self.differences: settings_grid(compared.contestants, first, second),
            self.published: published.rows(records, setting),
            self.report: gr.DownloadButton(visible=False),
            self.file: gr.DownloadButton(visible=False),
        }


def build(
    worker: Worker, stored: gr.BrowserState, words: gr.HTML
) -> tuple[RaceResults, gr.Dropdown]:
    """Lays out the results, hidden at first. stored: see `Race`. words: on recorded results.
    Returns them, and the choice of a setting of the paper's numbers."""
    with gr.Column(visible=False) as column:
        warnings = html.lines("compare-warnings")
        charts = recorded.charts()
        with gr.Column(elem_id="compare-folds"):
            with gr.Accordion("Every number", open=False, elem_id="compare-numbers"):
                tables = recorded.numbers()
                with gr.Accordion("By model", open=False, elem_id="compare-models"):
                    grid("compare-by-model", grid_of(real.by_model()))
            with gr.Column(visible=False, elem_id="compare-own") as race_only:
                with gr.Accordion("What the ranges are", open=False, elem_id="compare-words"):
                    ranges = html.lines("compare-ranges")
                with gr.Accordion("Settings that differ", open=False, elem_id="compare-differ"):
                    with gr.Row():
                        own = dict(choices=[], min_width=200)
                        first = gr.Dropdown(label="Run", elem_id="differ-first", **own)
                        second = gr.Dropdown(label="Against", elem_id="differ-second", **own)
                    differences = grid("compare-settings")
                with gr.Accordion("The paper's numbers", open=False, elem_id="compare-paper"):
                    setting, beside = published.build()
                with gr.Accordion("Download", open=False, elem_id="compare-home"):
                    files = _downloads(worker, stored)
    pictures = recorded.Pictures(column, words, *charts, tables)
    words = warnings, ranges, first, second, differences
    return RaceResults(pictures, race_only, *words, beside, *files), setting


def _downloads(worker: Worker, stored: gr.BrowserState) -> tuple[gr.DownloadButton, ...]:
    """Lays out the two downloads of a race: its report, and its table."""
    gr.Markdown("Every run in full as one page that opens offline, and the numbers as CSV.")
    with gr.Row():
        title = title_box("comparison")
        make = gr.Button("Make the report and the table", min_width=220, elem_id="make-comparison")
        unseen, name = dict(visible=False, min_width=140), "download-comparison"
        report = gr.DownloadButton("Report (HTML)", elem_id=name, **unseen)
        table = gr.DownloadButton("Table (CSV)", elem_id=f"{name}-table", **unseen)

    def made(stored: dict, title: str | None):
        with refusing():
            return files_of(race.standing(worker, stored).runs, title)

    make.click(made, [stored, title], [report, table], api_visibility="private")
    return report, table


def files_of(runs: Sequence[Run], title: str | None = "") -> tuple:
    """Download buttons with the report, under this title, and the table of these runs."""
    out, pairs = served_folder(), race.readable(runs)
    title = (title or "").strip()[:MOST_TITLE]
    page = write_report([run for run, _ in pairs], out / "comparison.html", title)
    table = write_table(comparison([record for _, record in pairs]), out / "comparison.csv")
    return tuple(gr.DownloadButton(value=str(file), visible=True) for file in (page, table))


def settings_grid(every: Sequence[Contestant], first: str | None, second: str | None) -> dict:
    """A table of the settings in which two contestants, named by their marks, differ, or a sentence
    that none do; above them what each answers on the same facts, tested."""
    pair = [one for one in every if one.mark in (first, second)]
    table, tested = settings_of(pair), []
    if len(pair) == 2:
        for form, result in paired_records(*(one.records for one in pair)).items():
            p = "p < 0.001" if result.p < 0.001 else f"p = {result.p:.3f}"
            name = f"answered by this one alone, of {result.facts:,} facts, {plain(form)}"
            difference = f"{p}\ndifference in recall {signed(result.difference)}"
            tested.append((name, f"{result.only_first:,}\n{difference}", f"{result.only_second:,}"))
    return grid_of(replace(table, rows=(*tested, *table.rows)), COMPARE_SAME)
