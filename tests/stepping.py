"""Coroutines of the page, worked on step by step in a test that is none."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import Any


def stepped(events: AsyncGenerator) -> Iterator[Any]:
    """What the generator yields. Closing it closes the generator, as Gradio does when a page is gone."""
    loop = asyncio.new_event_loop()
    try:
        while True:
            try:
                yield loop.run_until_complete(anext(events))
            except StopAsyncIteration:
                return
    finally:
        loop.run_until_complete(events.aclose())
        loop.close()
