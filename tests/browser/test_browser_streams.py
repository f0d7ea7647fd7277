"""Why `adapop/ui/door/streams.py` is there: plain Gradio loses an answer on a slow line, and none is lost behind the
gate. The day the first case fails, Gradio was mended: that file may go, and this one."""

import asyncio
from threading import Event

import gradio as gr
import pytest
from starlette.middleware import Middleware

from adapop.service.visitor_limits import Usage
from adapop.ui.door.gate import Gate
from adapop.ui.door.streams import CLOSED
from browsing import SECOND, TWO_FRAMES

TOLD = "name => document.querySelector('#told textarea').value === name"


class SlowLine:
    """An ASGI app on a slow line: that a stream is closed arrives late."""

    def __init__(self, app, arrives):
        self.app, self.arrives = app, arrives

    async def __call__(self, scope, receive, send):
        async def late(message):
            while message.get("body", b"").startswith(CLOSED) and not self.arrives.is_set():
                await asyncio.sleep(0.05)
            await send(message)

        await self.app(scope, receive, late)


@pytest.mark.slow
@pytest.mark.parametrize("behind_gate", [False, True], ids=["plain", "gate"])
def test_gradio_loses_an_answer_to_what_is_sent_while_its_stream_closes_and_the_gate_does_not(browser, behind_gate):
    with gr.Blocks() as demo:
        told = gr.Textbox(elem_id="told")
        for name in ("first", "second"):
            gr.Button(name, elem_id=name).click(lambda name=name: name, None, told, show_progress="hidden")
    arrives = Event()
    middleware = [Middleware(SlowLine, arrives), *[Middleware(Gate, Usage(), {})] * behind_gate]
    _, address, _ = demo.launch(prevent_thread_lock=True, quiet=True, app_kwargs={"middleware": middleware})
    page = browser.new_page()
    try:
        page.goto(address)
        page.click("#first")
        page.wait_for_function(TOLD, arg="first")
        with page.expect_response("**/queue/join*"):
            page.click("#second")  # the page does not know that its stream is closed
        page.evaluate(TWO_FRAMES)
        arrives.set()
        if behind_gate:
            page.wait_for_function(TOLD, arg="second")
        else:
            page.wait_for_timeout(5 * SECOND)  # for what never comes
            assert page.evaluate(TOLD, "first")
    finally:
        arrives.set()
        page.close()
        demo.close()
