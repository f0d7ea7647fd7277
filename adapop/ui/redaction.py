"""Redacts errors in the app's log to kind and place; their text may quote a visitor's input.

Gradio prints the full error of an event that was sent with wrong values, and these values too; the
server and the event loop log their errors through `logging`. Both are redacted here.
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
PRINTERS = (queueing, route_utils, routes)  # Gradio's modules that print errors
GRADIO = str(Path(gradio.__file__).parent)
APP = str(Path(__file__).parents[1])
GATE = str(Path(__file__).with_name("middleware.py"))  # every request passes it


def redact_errors() -> None:
    """Logs requests' errors and warnings without their text from now on. May be repeated."""
    for module in PRINTERS:
        module.traceback = SimpleNamespace(print_exc=_print_error)
    if not getattr(logging.getLogRecordFactory(), "is_redacted", False):
        logging.setLogRecordFactory(_without_text(logging.getLogRecordFactory()))
        warnings.showwarning = _placed(warnings.showwarning)


def place_of(error: BaseException) -> str:
    """The kind of an error, the innermost place in the app and the innermost place of all. Unlike
    `traceback`, it reads no source files: it may run in the event loop."""
    places = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    files = [code.co_filename for code, _ in places]
    own = [place for place, file in zip(places, files) if file.startswith(APP) and file != GATE]
    ends = dict.fromkeys([*own[-1:], *places[-1:]])
    where = [f'File "{code.co_filename}", line {line}, in {code.co_name}' for code, line in ends]
    return ", ".join([type(error).__name__, *where])


def _print_error() -> None:
    """Replaces `traceback.print_exc`: logs an error without its text, and no `gradio.Error`."""
    error = sys.exc_info()[1]
    if not isinstance(error, gradio.Error):
        log.error("an event failed: %s", place_of(error))


def _without_text(factory: Callable[..., logging.LogRecord]) -> Callable[..., logging.LogRecord]:
    """Wraps a factory of log records: errors in them are logged by kind and place only."""

    def record(*values, **named) -> logging.LogRecord:
        entry = factory(*values, **named)
        if entry.exc_info and entry.exc_info[1] is not None:
            entry.exc_text = place_of(entry.exc_info[1])  # formatters then write this
        if entry.name == "asyncio":  # later lines show the task with its error
            entry.msg, entry.args = entry.getMessage().partition("\n")[0], ()
        return entry

    record.is_redacted = True
    return record


def _placed(show: Callable) -> Callable:
    """Wraps `warnings.showwarning`: Gradio's warnings are logged by place only."""

    def show_placed(message, category, filename, lineno, file=None, line=None) -> None:
        if filename.startswith(GRADIO):
            log.warning("%s, line %d: %s", filename, lineno, category.__name__)
        else:
            show(message, category, filename, lineno, file, line)

    return show_placed
