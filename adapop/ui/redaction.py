"""What the app's log says of an error: its kind and its place, never its text, which may quote what
a visitor typed.

Gradio prints the whole error of an event that was sent with the wrong values, and these values with
it; the server and the event loop log theirs through `logging`. All of it comes past here.
"""

import logging
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import gradio
from gradio import queueing, route_utils, routes

log = logging.getLogger(__name__)
PRINTERS = (queueing, route_utils, routes)  # what of gradio prints errors
GRADIO = str(Path(gradio.__file__).parent)
APP = str(Path(__file__).parents[1])
GATE = str(Path(__file__).with_name("middleware.py"))  # which every request comes through


def quote_nobody() -> None:
    """From now on no error and no warning of a request is logged with its text. Asking twice is
    asking once."""
    for module in PRINTERS:
        module.traceback = SimpleNamespace(print_exc=_print_error)
    if not getattr(logging.getLogRecordFactory(), "quotes_nobody", False):
        logging.setLogRecordFactory(_without_text(logging.getLogRecordFactory()))
        warnings.showwarning = _placed(warnings.showwarning)


def place_of(error: BaseException) -> str:
    """The kind of an error, the app's innermost place that it came through, and the innermost of
    all. Reads no source, as `traceback` does: this may be in the event loop."""
    places = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [
        place
        for place in places
        if place[0].co_filename.startswith(APP) and place[0].co_filename != GATE
    ]
    ends = dict.fromkeys([*own[-1:], *places[-1:]])
    where = [f'File "{code.co_filename}", line {line}, in {code.co_name}' for code, line in ends]
    return ", ".join([type(error).__name__, *where])


def _print_error() -> None:
    """Logs the error that is being handled without its text, where `traceback.print_exc` would
    print that. A refusal in words was shown to who asked, and is no failure."""
    error = sys.exc_info()[1]
    if not isinstance(error, gradio.Error):
        log.error("an event failed: %s", place_of(error))


def _without_text(made: Callable[..., logging.LogRecord]) -> Callable[..., logging.LogRecord]:
    """A maker of log records whose errors are told without their text."""

    def record(*values, **named) -> logging.LogRecord:
        entry = made(*values, **named)
        if entry.exc_info and entry.exc_info[1] is not None:
            entry.exc_text = place_of(entry.exc_info[1])  # formatters then write this
        if entry.name == "asyncio":  # what follows the first line shows the task with its error
            entry.msg, entry.args = entry.getMessage().partition("\n")[0], ()
        return entry

    record.quotes_nobody = True
    return record


def _placed(show: Callable) -> Callable:
    """How warnings are shown: gradio's by their place alone."""

    def show_placed(message, category, filename, lineno, file=None, line=None) -> None:
        if filename.startswith(GRADIO):
            log.warning("%s, line %d: %s", filename, lineno, category.__name__)
        else:
            show(message, category, filename, lineno, file, line)

    return show_placed
