import asyncio
import logging
import time
import warnings

import gradio as gr
import pytest
from gradio import queueing, route_utils, routes

from adapop.errors import AdaPopError
from adapop.service.worker import Worker
from adapop.ui.access import LONGEST, public_words
from adapop.ui.api import Api
from adapop.ui.redaction import GRADIO, _print_error, redact_errors

ID = "adapop-0123456789abcdef"
HUGE = 2_000_000
SOON_SECONDS = 2.0
SECRET = "Zanzibar-Quux"


def test_the_folder_of_a_run_is_in_no_error():
    for text, words in (
        (f"/home/me/.adapop/runs/{ID} is gone.", "RUN is gone."),
        (f"C:\\runs\\{ID}\\epoch-1 is damaged", "RUN\\epoch-1 is damaged"),
        (f"a/{ID}/b/{ID}/c and /{ID}.", "RUN/c and RUN."), ("and/or is no folder", "and/or is no folder")):  # fmt: skip
        assert public_words(AdaPopError(text)) == words


@pytest.mark.parametrize("path", ["/tmp/gradio/a/b.csv", "'/home/me/runs/sets/0123'", "(/srv/app.py)."])
def test_strangers_are_told_no_path_of_the_server(monkeypatch, path):
    error = AdaPopError(f"The disk is full: {path} could not be written.")
    assert path.strip("'().") in public_words(error)
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    assert public_words(error) == "The disk is full: a file of the server could not be written."
    assert public_words(AdaPopError("and/or, https://a.b/c/d")) == "and/or, https://a.b/c/d"


@pytest.mark.parametrize("text", ["a" * HUGE, "/" * HUGE, "a-" * (HUGE // 2), "/a" * (HUGE // 2), "a " * (HUGE // 2)])
def test_words_of_any_length_take_a_moment(text):
    """One pattern over the whole text once took hours, and nothing else of the app worked meanwhile."""
    began = time.process_time()
    said = public_words(AdaPopError(text))
    assert time.process_time() - began < SOON_SECONDS and len(said) == LONGEST


@pytest.mark.parametrize("name", ["method", "preset", "anchors", "missing_score", "retain"])
def test_no_name_that_a_program_sends_takes_long(tmp_path, name):
    api = Api(Worker(tmp_path))
    for text in ("x" * HUGE, " " * HUGE, "/a" * (HUGE // 2)):
        began = time.process_time()
        with pytest.raises(AdaPopError, match=f"{name} has 2,000,000 characters"):
            api.start_run("pair", **{name: text})
        assert time.process_time() - began < SOON_SECONDS


def test_a_refusal_in_words_is_no_failure_and_anything_else_is(caplog):
    for error in (gr.Error(SECRET), ValueError(SECRET)):
        try:
            raise error
        except Exception:  # noqa: BLE001
            _print_error()
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert line.startswith("an event failed") and "ValueError" in line and "\n" not in line and SECRET not in line


def test_errors_of_the_server_and_of_lost_tasks_and_gradio_s_warnings_are_logged_without_their_text(caplog):
    async def lost():
        async def fails():
            raise ValueError(SECRET)

        task = asyncio.ensure_future(fails())
        await asyncio.sleep(0)
        del task

    def logged():
        caplog.clear()
        logging.getLogger("uvicorn.error").error("refused", exc_info=ValueError(SECRET))
        asyncio.run(lost())
        warnings.showwarning(SECRET, UserWarning, f"{GRADIO}/helpers.py", 7)
        return [logging.Formatter().format(record) for record in caplog.records]

    logging.setLogRecordFactory(logging.LogRecord)  # as before an earlier test's call, which pytest half undid
    redact_errors()
    redact_errors()  # which changes nothing more
    lines = logged()
    assert len(lines) == 3 and SECRET not in str(lines) and lines[2].endswith("helpers.py, line 7: UserWarning")
    assert all("ValueError" in one for one in lines[:2]), "where it failed is still told"
    assert {module.traceback.print_exc for module in (queueing, route_utils, routes)} == {_print_error}
    guarded = logging.getLogRecordFactory()
    logging.setLogRecordFactory(logging.LogRecord)
    try:
        assert all(SECRET in one for one in logged()[:2]), "the test sees what it is to see"
    finally:
        logging.setLogRecordFactory(guarded)
