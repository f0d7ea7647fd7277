"""The browser's own run, set aside while the page shows somebody's link, and the button that brings it back."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import known_run
from adapop.ui.run.screen import UNSEEN, Follower


@dataclass(frozen=True)
class Aside:
    """own: the id of the run that the browser followed before it opened a link. back: to it."""

    own: gr.BrowserState
    back: gr.Button


def build(secret: str) -> Aside:
    """The components, laid out where they are called. secret: seals what the browser keeps."""
    own = gr.BrowserState("", storage_key="adapop-own-run", secret=secret)
    return Aside(own, gr.Button(texts.BACK_TO_OWN, visible=False, size="sm", scale=1, min_width=120, elem_id="own-run"))


def wire(aside: Aside, follower: Follower, page: gr.Blocks, worker: Worker) -> None:
    """The button is there while the page shows no run of this browser, and the one set aside still exists."""

    def offered(name: str, own: str):
        return gr.Button(visible=known_run(worker, name) is None and known_run(worker, own) is not None)

    quiet = {"api_visibility": "private", "show_progress": "hidden"}
    again = {"trigger_mode": "multiple", **quiet}
    gr.on([page.load, follower.run_id.change], offered, [follower.run_id, aside.own], aside.back, **again)
    followed = [follower.run_id, follower.seen, follower.timer]
    aside.back.click(lambda own: (own, UNSEEN, gr.Timer(active=True)), aside.own, followed, **quiet)
