"""Parses request bodies outside the event loop, and limits the number of their values."""

import asyncio
import json
import time
from pathlib import Path

from fastapi import routing
from gradio import route_utils
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope

from adapop.limits import REQUEST

PARSED = "adapop.json"  # key of a request's scope: its parsed body
SMALL = 4_096  # bytes: smaller bodies are parsed in the event loop, which is faster
DEPTH = 24  # most levels of nested values
VALUES_A_MEGABYTE = 100_000  # most values per megabyte of the request limit
READ_SECONDS = 60.0
PARSER = route_utils.GradioMultiPartParser


async def parsed(scope: Scope, receive: Receive) -> tuple[PlainTextResponse | None, Receive, float]:
    """Parses a request's JSON body into the scope. Returns (the refusal of a body that no page
    sends, or None; a receive function that replays the body; seconds spent on parsing)."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            body = await Request(scope, receive).body()
    except TimeoutError:
        return PlainTextResponse("The request did not come in time.", 408), receive, 0.0
    most = REQUEST.value() * VALUES_A_MEGABYTE
    seconds, fault, value = (
        _value(body, most) if len(body) <= SMALL else await asyncio.to_thread(_value, body, most)
    )
    scope[PARSED] = value
    left = [body]  # an empty one is replayed as well: without a message FastAPI waits for ever

    async def again() -> Message:
        if not left:
            return await receive()
        return {"type": "http.request", "body": left.pop(), "more_body": False}

    return (PlainTextResponse(fault, 400) if fault else None), again, seconds


def _value(body: bytes, most: float) -> tuple[float, str, object]:
    """(processor seconds, error message or "", parsed value)."""
    began, value, fault = time.thread_time(), None, ""
    try:
        value = json.loads(body) if body else None
        if not _fits(value, most):
            fault = f"This request holds more values than a page sends, or nested deeper ({DEPTH})."
    except (ValueError, RecursionError):
        fault = "This request is not JSON."
    return time.thread_time() - began, fault, None if fault else value


def _fits(value: object, most: float) -> bool:
    """Whether a value is nested at most `DEPTH` deep and holds at most `most` values."""
    level, count, depth = [value], 1, 0
    while level:
        depth += 1
        if depth > DEPTH or count > most:
            return False
        nested = [one for one in level if isinstance(one, (dict, list))]
        held = (one.values() if isinstance(one, dict) else one for one in nested)
        level = [inner for values in held for inner in values]
        count += len(level)
    return True


class _ParsedRequest(Request):
    async def json(self) -> object:
        return self.scope[PARSED] if PARSED in self.scope else await super().json()


class _OneFile(PARSER):
    """Parses a form with one file; deletes its temporary files if the upload is incomplete."""

    def __init__(self, *values, **named) -> None:
        super().__init__(*values, **named | {"max_files": 1, "max_fields": 1})

    async def parse(self):
        try:
            return await super().parse()
        except BaseException:
            for file in self._files_to_close_on_error:
                file.close()
                Path(file.name).unlink(missing_ok=True)
            raise


def read_bodies_here() -> None:
    """Makes FastAPI use the values that `parsed` stored, and Gradio accept one file per form."""
    routing.Request = _ParsedRequest
    route_utils.GradioMultiPartParser = _OneFile
