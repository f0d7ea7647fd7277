"""Keeps keys and ids of runs out of what the app prints and logs.

Gradio prints the error of an event, and the server logs the error of a request; such a text may
quote the path of a run, whose id is the right to it, or an address with a key in it.
"""

import logging
import os
import re
import sys
import traceback
from typing import Any, TextIO

from adapop.runs.run import RUN_ID

SECRETS = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")  # names of environment variables


def redact_logs() -> None:
    """Replaces keys and ids in all that is printed from now on. May be repeated."""
    if not isinstance(sys.stderr, _Redacted):
        sys.stdout, sys.stderr = _Redacted(sys.stdout), _Redacted(sys.stderr)
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and not hasattr(handler, "baseFilename"):
                handler.setStream(sys.stderr)


def without_secrets(text: str) -> str:
    """A text without ids of runs and without the keys of this process's environment."""
    for name, value in os.environ.items():
        if SECRETS.search(name) and len(value) > 7:
            text = text.replace(value, name)
    return re.sub(rf"(?<![0-9a-z]){RUN_ID.pattern}(?![0-9a-z])", "RUN", text)


def place_of(error: BaseException) -> str:
    """The kind of an error and the innermost place, without its text, which may quote a visitor.
    Unlike `traceback`, it reads no source files: it may run in the event loop."""
    places = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    where = [f'File "{code.co_filename}", line {line}, in {code.co_name}' for code, line in places]
    return ", ".join([type(error).__name__, *where[-1:]])


class _Redacted:
    """A stream that writes texts without secrets, and else is the stream that it is made of."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(without_secrets(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
