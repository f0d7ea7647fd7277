"""A race's results: charts, sentences, the paper's numbers beside them, and files to download."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import gradio as gr

from adapop.probes.prompts import plain
from adapop.remark import sentences
from adapop.report import real, write_report
from adapop.report.comparison import Comparison, comparison, settings_of, write_table
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

COMPARE_SAME = "They differ in no setting but the seed."


@dataclass(frozen=True)
class Differences:
    """The choice of two contestants, and the table of the settings in which they differ."""

    first: gr.Dropdown
    second: gr.Dropdown
    table: gr.HTML

    def updates(self, compared: Comparison, pair: Sequence[str | None]) -> dict:
        """Updates for a race. A pair stays while both are in it; the default is the first two."""
        marks = [one.mark for one in compared.contestants]
        first, second = pair if {*pair} <= {*marks} else (*marks, *marks, None, None)[:2]
        names = [(one.name, one.mark) for one in compared.contestants]
        both = [one for one in compared.contestants if one.mark in (first, second)]
        return {
            self.first: gr.Dropdown(names, value=first),
            self.second: gr.Dropdown(names, value=second),
            self.table: settings_grid(both),
        }


@dataclass(frozen=True)
class RaceResults:
    """The components of a race's results. column: around all. race_only: the part about the race
    alone. warnings, ranges: sentences. report, file: downloads."""

    column: gr.Column
    pictures: recorded.Pictures
    race_only: gr.Column
    warnings: gr.HTML
    ranges: gr.HTML
    differences: Differences
    setting: gr.Dropdown
    published: gr.HTML
    report: gr.DownloadButton
    file: gr.DownloadButton

    @property
    def all(self) -> list[gr.Component]:
        """The components that `updates` may change."""
        pair = self.differences
        words = [self.warnings, self.ranges, pair.first, pair.second, pair.table]
        rest = [self.published, self.report, self.file]
        return [self.column, *self.pictures.all, self.race_only, *words, *rest]

    def updates(
        self, records: Sequence[Record], setting: str, choice: str, pair: Sequence[str | None]
    ) -> dict:
        """Updates that show these runs. Hides earlier download files, which may lack a run."""
        compared = comparison(records)
        return {
            **self.visible(compared, choice),
            self.race_only: gr.Column(visible=bool(records)),
            self.warnings: html.listed(sentences(compared.warnings), "warn"),
            self.ranges: html.listed(compared.intervals),
            **self.differences.updates(compared, pair),
            self.published: published.rows(records, setting),
            self.report: gr.DownloadButton(visible=False),
            self.file: gr.DownloadButton(visible=False),
        }

    def visible(self, compared: Comparison, choice: str) -> dict:
        """Updates that show or hide the results and charts. choice: of recorded results."""
        layer = recorded.layer_of(compared, choice)
        if compared.outcomes or layer:
            return {self.column: gr.Column(visible=True), **self.pictures.updates(compared, choice)}
        return {
            self.column: gr.Column(visible=False),
            self.pictures.words: recorded.words_of(compared, layer, choice),
        }


def build(worker: Worker, stored: gr.BrowserState, words: gr.HTML) -> RaceResults:
    """Lays out the results, hidden at first. stored: see `Race`. words: on recorded results."""
    with gr.Column(visible=False) as column:
        warned = html.lines("compare-warnings")
        charts = recorded.charts()
        with gr.Column(elem_id="compare-folds"):
            with gr.Accordion("Every number", open=False, elem_id="compare-numbers"):
                tables = recorded.numbers()
                with gr.Accordion("By model", open=False, elem_id="compare-models"):
                    grid("compare-by-model", grid_of(real.by_model()))
            own, parts = _own_folds(worker, stored)
        pictures = recorded.Pictures(words, *charts, *tables)
    return RaceResults(column, pictures, own, warned, *parts)


def _own_folds(worker: Worker, stored: gr.BrowserState) -> tuple[gr.Column, tuple]:
    """Lays out the folds about the race alone: their column, and parts as in `RaceResults`."""
    with gr.Column(visible=False, elem_id="compare-own") as own:
        with gr.Accordion("What the ranges are", open=False, elem_id="compare-words"):
            ranges = html.lines("compare-ranges")
        with gr.Accordion("Settings that differ", open=False, elem_id="compare-differ"):
            with gr.Row():
                first = gr.Dropdown([], label="Run", min_width=200, elem_id="differ-first")
                second = gr.Dropdown([], label="Against", min_width=200, elem_id="differ-second")
            differences = Differences(first, second, grid("compare-settings"))
        with gr.Accordion("The paper's numbers", open=False, elem_id="compare-paper"):
            beside = published.build()
        with gr.Accordion("Download", open=False, elem_id="compare-home"):
            report, file = _downloads(worker, stored)
    return own, (ranges, differences, *beside, report, file)


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


def settings_grid(pair: Sequence) -> dict:
    """A table of the settings in which contestants (a pair) differ, or a sentence that none do;
    above them what each answers on the same facts, tested."""
    table, tested = settings_of(pair), []
    if len(pair) == 2:
        for form, result in paired_records(*(one.records for one in pair)).items():
            first, second = result.only_first, result.only_second
            p = "p < 0.001" if result.p < 0.001 else f"p = {result.p:.3f}"
            of = f"of {result.facts:,} facts, {plain(form)}"
            difference = f"{p}\ndifference in recall {signed(result.difference)}"
            tested.append(
                (f"answered by this one alone, {of}", f"{first:,}\n{difference}", f"{second:,}")
            )
    return grid_of(replace(table, rows=(*tested, *table.rows)), COMPARE_SAME)
