"""Access to runs: whoever sends a run's id owns it, whoever sends a link may only view it; see
`service.links`. Everyone may view and question the examples; nobody may change them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

import gradio as gr

from adapop.errors import AdaPopError, RunError
from adapop.limits import is_public
from adapop.runs.examples import example, example_of
from adapop.runs.run import RUN_ID, Run
from adapop.service.links import link_of, linked, owned
from adapop.service.worker import Worker
from adapop.ui.wiring import TOAST, toast

LOOK_ONLY = (
    "This run was opened by a read-only link: you can look at it and download its report. Only the "
    "person who started it can stop it, resume it or ask its models. Start your own run for that."
)
EXAMPLE_ONLY = (
    "This run came with the app. You can ask its models and download its report. To stop or "
    "resume a run, or to ask all its facts, start your own with “Run it yourself”."
)

FOLDER = re.compile(rf"\S*[/\\]{RUN_ID.pattern}")  # a path to a run's folder
ABSOLUTE = re.compile(r"(?<!\S)[\"'`(<\[]*/[^\s/]+/\S+")  # a path of this machine
PROBED_FIRST = "adapop"  # the example that Probe asks while the page has no run
# most characters of a shown error: fits our own, and cuts a quoted text of a visitor
LONGEST = 2_000


def link_to(worker: Worker, name: str | None) -> str:
    """The name in a read-only link to the page's run; empty without a run."""
    run = known_run(worker, name)
    with refusing():
        return link_of(run) if run else name if shown_run(worker, name) else ""


def run_to_control(worker: Worker, name: str | None) -> Run | None:
    """The owned run of this id, None if unknown. Raises gr.Error for a link and for an example."""
    if linked(name, worker.root) or example_of(name):
        raise refused(RunError(EXAMPLE_ONLY if example_of(name) else LOOK_ONLY))
    return known_run(worker, name)


def run_to_question(worker: Worker, name: str | None) -> Run | None:
    """A run whose models may be asked, without saving the replies: an example, or the owned run of
    this id; None for an unknown name. Raises gr.Error for a read-only link."""
    return example_of(name) or run_to_control(worker, name)


def run_to_ask(worker: Worker, name: str | None) -> Run:
    """The owned run whose unlearned model can be probed; the results are saved in the run. Raises
    gr.Error: unknown name, no finished epoch, a read-only link or an example."""
    run = run_to_control(worker, name)
    if run is None or run.last_epoch is None:
        raise toast("There is no unlearned model yet. Let a run finish its first epoch.")
    return run


def may_control(worker: Worker, name: str | None) -> bool:
    """Whether the sender may stop and resume the run: it is theirs, and not shown to everybody."""
    run = known_run(worker, name)
    return run is not None and not run.shared


def shown_run(worker: Worker, name: str | None) -> Run | None:
    """The run under an id, a read-only link or an example's name; None for an unknown name."""
    return known_run(worker, name) or linked(name, worker.root) or example_of(name)


def probed_run(worker: Worker, name: str | None) -> Run:
    """The run whose models Probe asks: the page's run; without one, the shipped example."""
    return shown_run(worker, name) or example(PROBED_FIRST)


def known_run(worker: Worker, name: str | None) -> Run | None:
    """The run of this id, whose sender owns it; None for any other name."""
    return owned(name, worker.root)


@contextmanager
def refusing() -> Iterator[None]:
    """Converts an `AdaPopError` raised inside into a toast."""
    try:
        yield
    except AdaPopError as error:
        raise refused(error) from error


def refused(error: AdaPopError) -> gr.Error:
    """An error as a toast. The text is escaped: toasts render HTML, and it may quote the user."""
    return gr.Error(
        escape(public_words(error)), title="Not possible", duration=TOAST, print_exception=False
    )


def public_words(error: AdaPopError) -> str:
    """An error's message, cut at a space before `LONGEST`, without paths into a run's folder, which
    contain the secret id: holders of a link read it too. A public page hides other absolute
    paths."""
    words = str(error)
    if len(words) > LONGEST:  # in a path that is cut in two, an id would not be found
        words = words[:LONGEST].rpartition(" ")[0] + " …"
    words = FOLDER.sub("RUN", words)
    return ABSOLUTE.sub("a file of the server", words) if is_public() else words
