"""The download of a run: report, tables, adapter, and the command that repeats it, in one file."""

import asyncio
import os
import secrets
import tempfile
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import gradio as gr

from adapop.errors import Stopped
from adapop.model.adapter_folder import WEIGHTS
from adapop.paths import SHIPPED
from adapop.report import write_archive
from adapop.report.card import unmeasured
from adapop.runs.delivered import MEASURED, why_no_adapter
from adapop.runs.examples import example_of
from adapop.runs.run import Run
from adapop.service import jobs
from adapop.service.worker import Worker
from adapop.ui.access import may_control, public_words, refusing, shown_run
from adapop.ui.parts import html
from adapop.ui.wiring import EACH, QUIET, Components, StartStop, error_of, followed, offload, toast

MOST_TITLE = 200  # characters
# Reports made at once, here and by the API each: fifty at once take over a gigabyte.
REPORTS_AT_ONCE = 2
_TURNS = asyncio.Semaphore(REPORTS_AT_ONCE)
UNMEASURED = " ".join(unmeasured())


def title_box(name: str) -> gr.Textbox:
    """The input of a report's title. name: of its button's element id."""
    words = {"label": "Title", "placeholder": "of the report; optional"}
    return gr.Textbox(**words, max_length=MOST_TITLE, min_width=200, elem_id=f"title-{name}")


def archive_of(
    run: Run, title: str = "", redacted: bool = False, by: str = "", measure: bool | None = None
) -> Path:
    """The run as a zip file. The file's name does not contain the run's id, because files are
    passed on. title: of the report, "" for the method's name. redacted, by: see `write_archive`.
    measure: whether its adapter is measured here; by default only on a model that ships, since
    another might need the accelerator, or minutes. Raises RunError: the run cannot be read.
    ConfigError: see there."""
    path = served_folder() / f"adapop-report-{run.config.method}.zip"
    measure = run.config.model in SHIPPED if measure is None else measure
    title, by = (text.strip()[:MOST_TITLE] for text in (title, by))
    return write_archive(run, path, title, measure=measure, redacted=redacted, by=by)


def report_of(worker: Worker, name: str) -> str:
    """The path of a run's archive. Raises gr.Error: there is nothing to export."""
    with refusing():
        path = archive_of(_reportable(worker, name))
    if _is_unmeasured(path):
        gr.Info(UNMEASURED)
    return str(path)


def _is_unmeasured(archive: Path) -> bool:
    """Whether a run's zip has an adapter whose file was not measured."""
    with zipfile.ZipFile(archive) as parts:
        names = {*parts.namelist()}
    return f"adapter/{WEIGHTS}" in names and f"adapter/{MEASURED}" not in names


def _reportable(worker: Worker, name: str) -> Run:
    """The run of a name. Raises gr.Error: there is none, or nothing to report."""
    run = shown_run(worker, name)
    if run is None or run.last_epoch is None:
        raise toast("There is nothing to report yet. Let a run finish its first epoch.")
    return run


@dataclass(frozen=True)
class Download(Components):
    """The section's changing parts. status: how far the measuring is, or why there is none."""

    status: gr.HTML
    file: gr.DownloadButton
    work: StartStop

    async def with_progress(
        self, worker: Worker, name: str, title: str | None, redacted: bool, by: str | None
    ) -> AsyncIterator[dict]:
        """Measures the adapter from its file and makes the zip; yields progress, then the file. A
        zip whose measuring was skipped or failed has a card that says so. Raises gr.Error: there is
        nothing to report, or it cannot be made."""
        run = await offload(worker.usage, _reportable, worker, name)
        lines: list[str] = []
        if not redacted and await offload(worker.usage, _is_measurable, worker, name, run):
            measuring = worker.work_on, run, jobs.measure_files
            future, progress = await offload(worker.usage, *measuring)
            async for line in followed(future, progress):
                yield {self.status: html.listed([line]), **self.work.busy(progress)}
            if error := error_of(future):
                lines = [] if isinstance(error, Stopped) else [public_words(error)]
        yield {self.status: html.listed(lines), **self.work.idle()}

        def made() -> Path:
            with refusing():
                return archive_of(run, title or "", bool(redacted), by or "", measure=False)

        async with _TURNS:
            path = await offload(worker.usage, made)
        if _is_unmeasured(path):
            yield {self.status: html.listed([UNMEASURED, *lines])}
        yield {self.file: gr.DownloadButton(value=str(path), visible=True)}


def _is_measurable(worker: Worker, name: str, run: Run) -> bool:
    """Whether the run's adapter leaves, and may be measured for the reader who sent the name: those
    who only watch a run give it no work, and a GPU is lent for less time than this may take."""
    ships = run.config.model in SHIPPED
    may = example_of(name) is not None or may_control(worker, name)
    with refusing():
        return not why_no_adapter(run) and may and (ships or not worker.is_lent)


def build(worker: Worker, run_id: gr.BrowserState, another: gr.State, name: str = "report") -> None:
    """Lays out the section. another: see `Follower`. name: of its buttons' element ids."""
    with gr.Row(elem_classes="beside"):
        title = title_box(name)
        words = {"label": "Run by", "placeholder": "a name on the report; optional"}
        by = gr.Textbox(**words, max_length=MOST_TITLE, min_width=160, elem_id=f"by-{name}")
        about = "Shows no fact, prompt or reply, and leaves out the adapter."
        redacted = gr.Checkbox(
            label="Redacted", info=about, min_width=160, elem_id=f"redacted-{name}"
        )
        tall = dict(scale=0, min_width=170, elem_classes="tall")
        start = gr.Button("Make the report", elem_id=f"make-{name}", **tall)
        skip = gr.Button("Skip measuring", visible=False, elem_id=f"skip-{name}", **tall)
        unseen = dict(visible=False, elem_id=f"download-{name}")
        file = gr.DownloadButton("Download: report, numbers, adapter, command", **unseen, **tall)
    status = html.lines(f"{name}-words")
    parts = Download(status, file, StartStop(start, skip, gr.State(None)))
    inputs = [run_id, title, redacted, by]
    start.click(partial(parts.with_progress, worker), inputs, parts.all, **QUIET)
    parts.work.wire_stop()

    def hidden() -> tuple[gr.DownloadButton, dict]:
        return gr.DownloadButton(visible=False), html.listed([])

    another.change(hidden, None, [file, status], **EACH)


DELETE_EVERY, DELETE_AFTER = 600, 7200  # seconds; of files offered or uploaded
# Gradio's own folder, by its variable
UPLOADS = Path(
    os.environ.get("GRADIO_TEMP_DIR") or Path(tempfile.gettempdir()) / "gradio"
).resolve()


def served_folder() -> Path:
    """A new folder with a name that cannot be guessed. Gradio serves only such folders, and deletes
    a file two hours after it was offered (`DELETE_AFTER`)."""
    folder = UPLOADS / secrets.token_hex(16)
    folder.mkdir(parents=True)
    return folder
