"""The download of a run: report, tables, adapter, and the command that repeats it, in one file."""

import os
import secrets
import tempfile
from pathlib import Path

import gradio as gr

from adapop.paths import SHIPPED
from adapop.report import write_archive
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import refusing, shown_run
from adapop.ui.wiring import EACH, toast

MOST_TITLE = 200  # characters


def title_box(name: str) -> gr.Textbox:
    """The input of a report's title. name: of its button's element id."""
    words = {"label": "Title", "placeholder": "of the report; optional"}
    return gr.Textbox(**words, max_length=MOST_TITLE, min_width=200, elem_id=f"title-{name}")


def archive_of(run: Run, title: str = "", redacted: bool = False, by: str = "") -> Path:
    """The run as a zip file. The file's name does not contain the run's id, because files are
    passed on. title: of the report, "" for the method's name. redacted, by:
    see `write_archive`. Raises RunError: the run cannot be read. ConfigError: see there."""
    path = served_folder() / f"adapop-report-{run.config.method}.zip"
    # Models that ship load here in a second; another might need the accelerator, or minutes.
    quick = run.config.model in SHIPPED
    title, by = (text.strip()[:MOST_TITLE] for text in (title, by))
    return write_archive(run, path, title, measure=quick, redacted=redacted, by=by)


def report_of(
    worker: Worker, name: str, title: str | None = "", redacted: bool = False, by: str | None = ""
) -> str:
    """The path of a run's archive. Raises gr.Error: there is nothing to export."""
    run = shown_run(worker, name)
    if run is None or run.last_epoch is None:
        raise toast("There is nothing to report yet. Let a run finish its first epoch.")
    with refusing():
        return str(archive_of(run, title or "", redacted, by or ""))


def build(worker: Worker, run_id: gr.BrowserState, another: gr.State, name: str = "report") -> None:
    """Lays out the section. another: see `Follower`. name: of its buttons' element ids."""
    with gr.Row(elem_classes="beside"):
        title = title_box(name)
        words = {"label": "Run by", "placeholder": "a name on the report; optional"}
        by = gr.Textbox(**words, max_length=MOST_TITLE, min_width=160, elem_id=f"by-{name}")
        about = "No fact, prompt or reply in clear; without the adapter."
        redacted = gr.Checkbox(
            label="Redacted", info=about, min_width=160, elem_id=f"redacted-{name}"
        )
        tall = dict(scale=0, min_width=170, elem_classes="tall")
        make = gr.Button("Make the report", elem_id=f"make-{name}", **tall)
        unseen = dict(visible=False, elem_id=f"download-{name}")
        file = gr.DownloadButton(texts.DOWNLOAD_ABOUT, **unseen, **tall)

    def offer(name: str, title: str | None, redacted: bool, by: str | None):
        path = report_of(worker, name, title, bool(redacted), by)
        return gr.DownloadButton(value=path, visible=True)

    make.click(offer, [run_id, title, redacted, by], file, api_visibility="private")
    another.change(lambda: gr.DownloadButton(visible=False), None, file, **EACH)


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
