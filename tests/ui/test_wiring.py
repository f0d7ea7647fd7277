from concurrent.futures import Future
from threading import Event

import gradio as gr
import pytest

from adapop.config.presets import make_config
from adapop.errors import AdaPopError, ModelError, Stopped
from adapop.progress import Progress, started
from adapop.runs.run import create_run
from adapop.service.worker import Worker
from adapop.ui.compare import results
from adapop.ui.facts import lookup
from adapop.ui.facts import screen as facts_screen
from adapop.ui.probe import leaks
from adapop.ui.session import identity
from adapop.ui.wiring import failure_of, followed
from components import stand_ins
from stepping import stepped


def test_an_error_that_nobody_foresaw_has_words_and_a_place_in_the_log_without_the_users_text(caplog):
    typed = "the user's secret"

    def work(progress):
        raise ValueError(typed)

    future, _ = started(work)
    assert isinstance(future.exception(5), ValueError)
    said = failure_of(future)
    assert isinstance(said, AdaPopError) and "ValueError" in str(said)
    assert "ValueError" in caplog.text and "in work" in caplog.text, "where it failed"
    assert typed not in str(said) + caplog.text


def test_a_page_sees_how_far_work_is_and_stops_it():
    def work(progress):
        progress.say("half way")
        begun.wait(5)

    begun = Event()
    future, progress = started(work)
    lines = stepped(followed(future, progress, "Beginning …"))
    while (line := next(lines)) == "Beginning …":
        pass
    assert line == "half way"
    begun.set()
    assert set(lines) <= {"half way"} and future.done()
    future, progress = started(lambda progress: progress.wait(30))
    lines = stepped(followed(future, progress))
    assert next(lines)
    lines.close()
    assert isinstance(future.exception(5), Stopped)


@pytest.mark.parametrize(
    ("error", "found", "toast"),
    [(ModelError("gone"), [], "gone"), (ModelError("gone"), None, "gone"), (RuntimeError("x"), None, "RuntimeError"),
     (Stopped("Stopped."), None, "Stopped"), (Stopped("Stopped."), [], "")],
)  # fmt: skip
def test_a_probing_that_fails_says_so_and_its_buttons_work_again(small, tmp_path, error, found, toast):
    """An earlier probing's result stays on the screen, and does not stand for the one that failed."""
    run = create_run(make_config(), small, None, tmp_path)
    run.checkpoint(1).mkdir()
    if found is not None:
        run.save_probes(found)
    screen, worker, future = stand_ins(leaks.Leaks), Worker(tmp_path), Future()
    future.set_exception(error)
    worker.probe = lambda run, plan: (future, Progress())
    said = stepped(screen.probe(worker, run.id, 8, "forget"))
    work = screen.work
    shown = next(said)
    assert (shown[work.start].interactive, shown[work.stop].visible, shown[work.at_work]) == (True, False, None)
    assert shown[screen.group].interactive, "what is shown of it may be chosen again"
    busy = work.busy(Progress())
    assert (busy[work.start].interactive, busy[work.stop].visible) == (False, True), "Stop is there to stop something"
    with pytest.raises(gr.Error if toast else StopIteration, match=toast or None):
        next(said)


def test_look_ups_and_comparisons_of_the_page_count(small, tmp_path, monkeypatch):
    monkeypatch.setenv("ADAPOP_JOBS_AN_HOUR", "1")
    worker = Worker(tmp_path)
    run = create_run(make_config(), small, None, tmp_path)
    results.requested_files(worker, {"runs": [run.id]})
    with pytest.raises(gr.Error, match="ADAPOP_JOBS_AN_HOUR"):
        results.requested_files(worker, {"runs": [run.id]})
    screen = stand_ins(lookup.LookUp)
    asked = (worker, identity(small), small, (), "wikidata", "sitelinks", "en", None, "", "subject", None)
    said = next(stepped(screen.scored(*asked)))
    assert "ADAPOP_JOBS_AN_HOUR" in str(said[screen.status])


def test_sets_that_the_page_fetches_count_and_shipped_ones_do_not(small, tmp_path, monkeypatch):
    monkeypatch.setenv("ADAPOP_JOBS_AN_HOUR", "1")
    fetched = []
    monkeypatch.setattr(facts_screen, "load_facts", lambda *asked: fetched.append(asked[0]) or small)
    worker, screen = Worker(tmp_path), stand_ins(facts_screen.FactsScreen)
    for source, facts in (("sandbox", None), ("duet", small)):  # nothing to fetch
        assert list(stepped(screen.fetch(worker, source, facts))) == [{screen.fetched: None}]
    *_, last = stepped(screen.fetch(worker, "duet", None))
    assert (fetched, last[screen.fetched]) == (["duet"], ("duet", small))
    with pytest.raises(gr.Error, match="ADAPOP_JOBS_AN_HOUR"):
        next(stepped(screen.fetch(worker, "duet", None)))
    assert fetched == ["duet"]
