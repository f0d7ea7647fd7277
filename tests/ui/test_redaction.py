"""What the app prints when it is asked wrongly: that and where it failed, and not a word of what was sent.

`reliability/fuzz.py` asks the running app itself, through every event and endpoint.
"""

import asyncio
import logging
import warnings

import gradio as gr
from gradio import queueing, route_utils, routes

from adapop.ui.redaction import GRADIO, _print_error, quote_nobody

SECRET = "Zanzibar-Quux"


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

    quote_nobody()
    quote_nobody()  # which changes nothing more
    said = logged()
    assert len(said) == 3 and SECRET not in str(said) and said[2].endswith("helpers.py, line 7: UserWarning")
    assert all("ValueError" in one for one in said[:2]), "where it failed is still told"
    assert {module.traceback.print_exc for module in (queueing, route_utils, routes)} == {_print_error}
    guarded = logging.getLogRecordFactory()
    logging.setLogRecordFactory(logging.LogRecord)
    try:
        assert all(SECRET in one for one in logged()[:2]), "the test sees what it is to see"
    finally:
        logging.setLogRecordFactory(guarded)
