"""The browser's own run while the page shows another by its link, and the button that leads back to it."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import known_run
from adapop.ui.run.screen import UNSEEN, Follower
from adapop.ui.wiring import EACH, QUIET


@dataclass(frozen=True)
class OwnRun:
    """own: the id of the run that the browser followed before it opened a link. back: the button that leads to it."""

    own: gr.BrowserState
    back: gr.Button


def build(secret: str) -> OwnRun:
    """The components, laid out where they are called. secret: seals what the browser keeps."""
    own = gr.BrowserState("", storage_key="adapop-own-run", secret=secret)
    back = gr.Button(texts.BACK_TO_OWN, visible=False, size="sm", scale=1, min_width=120, elem_id="own-run")
    return OwnRun(own, back)


def wire(own_run: OwnRun, follower: Follower, page: gr.Blocks, worker: Worker) -> None:
    """Wires the button: it is there while the page shows no run of this browser, and its own still exists."""

    def offered(name: str, own: str):
        return gr.Button(visible=known_run(worker, name) is None and known_run(worker, own) is not None)

    events = [page.load, follower.run_id.change]
    gr.on(events, offered, [follower.run_id, own_run.own], own_run.back, **EACH)
    followed = [follower.run_id, follower.seen, follower.timer]
    own_run.back.click(lambda own: (own, UNSEEN, gr.Timer(active=True)), own_run.own, followed, **QUIET)
