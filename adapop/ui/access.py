"""Who may do what to a run: the sender of its id is its owner, that of a link may look; see
`service.links`. The examples are everybody's to look at and to ask, and nobody's to change."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

import gradio as gr

from adapop.errors import AdaPopError, RunError
from adapop.limits import is_public
from adapop.runs.examples import example, example_of
from adapop.runs.run import RUN_ID, Run
from adapop.service.links import link_of, linked, owned
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.wiring import TOAST

FOLDER = re.compile(rf"[/\\]{RUN_ID.pattern}")  # a run's, in words
PROBED_FIRST = "adapop"  # the example that can be asked before there is a run
# characters of an error: more than any of ours, and less than a text that a visitor sent
LONGEST = 2_000


def link_to(worker: Worker, name: str | None) -> str:
    """The name in a read-only link to the page's run; empty without a run."""
    run = known_run(worker, name)
    with refusing():
        return link_of(run) if run else name if shown_run(worker, name) else ""


def run_to_control(worker: Worker, name: str | None) -> Run | None:
    """The run of an id that came from a browser, None if there is none.

    Raises:
        gr.Error: it is a link, which lets one look and no more, or an example.
    """
    if linked(name, worker.root) or example_of(name):
        raise refused(RunError(texts.EXAMPLE_ONLY if example_of(name) else texts.LOOK_ONLY))
    return known_run(worker, name)


def run_to_question(worker: Worker, name: str | None) -> Run | None:
    """The run of an id that came from a browser, or an example, whose models may be asked: nothing
    is kept of that. None if there is none.

    Raises:
        gr.Error: it is a link, which lets one look and no more.
    """
    return example_of(name) or run_to_control(worker, name)


def run_to_ask(worker: Worker, name: str | None) -> Run:
    """The run of an id that came from a browser, whose unlearned model can be probed; what is found
    is kept in it.

    Raises:
        gr.Error: there is none, it has not finished an epoch, or the name is a link.
    """
    run = run_to_control(worker, name)
    if run is None or run.last_epoch is None:
        raise gr.Error(
            "There is no unlearned model yet. Let a run finish its first epoch.", duration=TOAST
        )
    return run


def may_control(worker: Worker, name: str | None) -> bool:
    """Whether the sender may stop and resume the run: its owner may, if it is not shown to every
    visitor."""
    run = known_run(worker, name)
    return run is not None and not run.shared


def shown_run(worker: Worker, name: str | None) -> Run | None:
    """The run of an id, of a link or of an example that came from a browser, to look at; None if it
    is none of ours."""
    return known_run(worker, name) or linked(name, worker.root) or example_of(name)


def probed_run(worker: Worker, name: str | None) -> Run:
    """The run whose models Probe asks: the page's, and until there is one the example that came
    with the app."""
    return shown_run(worker, name) or example(PROBED_FIRST)


def known_run(worker: Worker, name: str | None) -> Run | None:
    """The run of an id that came from a browser, so its owner's; None if it is none of ours."""
    return owned(name, worker.root)


@contextmanager
def refusing() -> Iterator[None]:
    """Turns an error that is raised inside into its toast."""
    try:
        yield
    except AdaPopError as error:
        raise refused(error) from error


def refused(error: AdaPopError) -> gr.Error:
    """The toast of an error. Toasts read HTML, and a message may quote the user's text."""
    return gr.Error(
        escape(public_words(error)), title="Not possible", duration=TOAST, print_exception=False
    )


def public_words(error: AdaPopError) -> str:
    """An error's words without a run's folder, whose name is the id: holders of a link read this
    too. Strangers are told no other path of the machine either.

    Word by word, because one pattern for a whole path takes time in the square of a text's length.
    """
    words = re.sub(r"\S+", _without_folder, str(error))
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def _without_folder(word: re.Match) -> str:
    if "/" not in word[0] and "\\" not in word[0]:
        return word[0]
    folders = list(FOLDER.finditer(word[0]))
    if folders:
        return "RUN" + word[0][folders[-1].end() :]
    bare = word[0].strip("\"'`(<[.,:;")
    return (
        "a file of the server"
        if is_public() and Path(bare).is_absolute() and len(Path(bare).parts) > 2
        else word[0]
    )
