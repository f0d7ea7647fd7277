"""The app, served by this process for the tests of a module."""

from dataclasses import fields

import gradio as gr
import pytest

from adapop.service.worker import Worker
from adapop.ui.facts import upload
from adapop.ui.session import Session
from adapop.ui.visitors import SENDER
from browsing import launched


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    return Worker(tmp_path_factory.mktemp("runs"), sender=SENDER.get)


@pytest.fixture(scope="module")
def address(worker):
    """Where the app over `worker` is served; it ends with a slash."""
    with launched(worker) as url:
        yield url


@pytest.fixture
def events():
    """What happens to the upload of facts, on a page of its own."""
    with gr.Blocks() as page:
        state = [gr.State() for _ in fields(Session)[1:]]
        return upload.UploadEvents(upload.build(), gr.HTML(), Session(page, *state))
