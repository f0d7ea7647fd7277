"""The download of a run on the page: its adapter is measured from its file, with progress and a way out."""

import asyncio
import json
import shutil
import zipfile
from html import unescape

import gradio as gr
import pytest

from adapop.errors import ModelError
from adapop.runs import delivered
from adapop.runs.run import Run
from adapop.service.links import link_of
from adapop.service.worker import Worker
from adapop.ui.parts.download import UNMEASURED, Download, report_of
from components import stand_ins
from tiny_runs import trained


@pytest.fixture(scope="module")
def done(tmp_path_factory, bare):
    return trained(bare, tmp_path_factory.mktemp("runs"), "wga", measure="off")


@pytest.fixture
def page(done, tmp_path):
    """(worker, run, download) of a run that was not measured before."""
    run = Run(shutil.copytree(done.folder, tmp_path / done.id))
    return Worker(tmp_path), run, stand_ins(Download)


def pressed(page, name=None, redacted=False, at=lambda progress: None):
    """(lines that were shown, the zip) of a press. at: called with the work's progress at each line."""
    worker, run, download = page

    async def shown():
        lines, file = [], None
        async for updates in download.with_progress(worker, name or run.id, "", redacted, ""):
            lines += map(unescape, updates.get(download.status, {"lines": []})["lines"])
            if progress := updates.get(download.work.at_work):
                assert updates[download.work.stop].visible and not updates[download.work.start].interactive
                at(progress)
            file = updates.get(download.file, file)
        return lines, zipfile.ZipFile(file.value["path"])

    return asyncio.run(shown())


def test_the_adapter_is_measured_with_progress_and_the_numbers_are_in_the_file(page):
    seen = set()
    lines, archive = pressed(page, at=lambda progress: seen.add(progress.text))
    assert lines and "not measured" not in str(lines)
    measured = json.loads(archive.read("adapter/measured.json"))
    assert measured["rows"] and measured["sha256"].popitem()[1] in archive.read("report.html").decode()
    assert any("question" in line or "Asking" in line or "Waiting" in line for line in lines)
    again, _ = pressed(page)
    assert not [line for line in again if "Measuring" in line], "the same file is measured once"


def test_measuring_may_be_skipped_and_the_card_says_so(page):
    lines, archive = pressed(page, at=lambda progress: progress.stop())
    assert lines[-1] == UNMEASURED
    card, about = (archive.read(name).decode() for name in ("adapter/README.md", "README.txt"))
    for text in (card, about):
        assert UNMEASURED in " ".join(text.split()), "one sentence, in the card, the zip's README and on the page"
    assert not list(page[1].folder.glob("delivered-*")) and not list(page[1].folder.glob("*.part"))


def test_a_failure_is_named_and_the_file_comes_all_the_same(page, monkeypatch):
    def failing(*_):
        raise ModelError("There is no room for the model.", "Free some.")

    monkeypatch.setattr(delivered, "measured_adapter", failing)
    lines, archive = pressed(page)
    assert lines[-2:] == [UNMEASURED, "There is no room for the model. Free some."]
    assert "adapter/README.md" in archive.namelist()


def test_who_only_watches_and_a_redacted_report_start_no_work(page, monkeypatch):
    _, run, _ = page
    for name, redacted in ((link_of(run), False), (run.id, True)):
        lines, archive = pressed(page, name, redacted, at=lambda progress: pytest.fail("work was started"))
        assert lines == [UNMEASURED] * (not redacted)
        assert ("adapter/README.md" in archive.namelist()) is not redacted
    said = []
    monkeypatch.setattr(gr, "Info", said.append)
    monkeypatch.setattr("adapop.ui.parts.download.SHIPPED", {})  # as of a model of the reader's own
    with zipfile.ZipFile(report_of(page[0], run.id)) as archive:
        assert "adapter/measured.json" not in archive.namelist() and said == [UNMEASURED]
    with pytest.raises(gr.Error, match="nothing to report"):
        pressed(page, "nonesuch")
