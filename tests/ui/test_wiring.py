"""Work that a page watches: its end is told, whatever it was, and what a visitor asks for counts."""

from concurrent.futures import Future

import gradio as gr
import pytest

from adapop.config.presets import make_config
from adapop.errors import ModelError, NetworkError, Stopped
from adapop.probes.plan import Plan
from adapop.progress import Progress
from adapop.runs.run import create_run
from adapop.service.worker import Worker
from adapop.ui.compare import screen
from adapop.ui.facts import lookup
from adapop.ui.probe import leaks
from adapop.ui.wiring import failure_of


class Failing(Worker):
    """A worker whose probings end with an error."""

    def __init__(self, root, error: Exception) -> None:
        super().__init__(root)
        self._error = error

    def probe(self, run, plan: Plan):
        future: Future = Future()
        future.set_exception(self._error)
        return future, Progress()


def failed(error: Exception) -> Future:
    future: Future = Future()
    future.set_exception(error)
    return future


def test_an_error_that_nobody_foresaw_has_words(caplog):
    assert failure_of(failed(error := Stopped("Stopped."))) is error
    said = failure_of(failed(MemoryError("x")))
    assert isinstance(said, ModelError)
    assert "MemoryError" in str(said)
    assert "a question to the model failed" in caplog.text
    (done := Future()).set_result(1)
    assert failure_of(done) is None


@pytest.mark.parametrize(
    ("error", "found", "toast"),
    [(ModelError("gone"), [], "gone"), (ModelError("gone"), None, "gone"), (RuntimeError("x"), None, "RuntimeError"),
     (Stopped("Stopped."), None, "Stopped"), (Stopped("Stopped."), [], ""),
     (NetworkError("no answer"), [], "no answer")],
)  # fmt: skip
def test_a_probing_that_fails_says_so_and_its_buttons_work_again(small, tmp_path, error, found, toast):
    """An earlier probing's result stays on the screen, and does not stand for the one that failed."""
    run = create_run(make_config(), small, None, tmp_path)
    run.checkpoint(1).mkdir()
    if found is not None:
        run.save_probes(found)
    said = leaks._probed(Failing(tmp_path, error), run.id, 8, "forget")
    *_, start, stop, at_work = next(said)
    assert (start.interactive, stop.interactive, at_work) == (True, False, None)
    with pytest.raises(gr.Error if toast else StopIteration, match=toast or None):
        next(said)


def test_look_ups_and_comparisons_of_the_page_count(small, tmp_path, monkeypatch):
    monkeypatch.setenv("ADAPOP_JOBS_AN_HOUR", "1")
    worker = Worker(tmp_path)
    run = create_run(make_config(), small, None, tmp_path)
    screen.taken_home(worker, {"runs": [run.id]})
    with pytest.raises(gr.Error, match="ADAPOP_JOBS_AN_HOUR"):
        screen.taken_home(worker, {"runs": [run.id]})
    said, *_ = next(lookup._scored(worker, False, small, (), "wikidata", "sitelinks", "", "subject", None))
    assert "ADAPOP_JOBS_AN_HOUR" in str(said)
