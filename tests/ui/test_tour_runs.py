"""The tour's two runs are made once, shown to every visitor and stopped by nobody; its story is read from them."""

import threading

import gradio as gr
import pytest

from adapop.config.presets import make_config
from adapop.errors import RunError
from adapop.facts.catalog import load_facts
from adapop.runs.execute import prepare
from adapop.runs.listed import all_runs
from adapop.service.worker import Worker
from adapop.training.events import RunFailed
from adapop.ui.run import screen as run_screen
from adapop.ui.tour import runs
from adapop.ui.tour.runs import NOTE, TourRuns
from adapop.ui.tour.story import outcome_of, reworded_of, rows_of
from idle_worker import IdleWorker

RARE, POPULAR = load_facts("pair").forget


@pytest.fixture
def short(monkeypatch):
    """The tour's runs with one epoch."""
    monkeypatch.setattr(runs, "EPOCHS", 1)


@pytest.fixture
def worker(tmp_path):
    return IdleWorker(tmp_path)


def test_two_visitors_at_once_make_two_runs(worker, short):
    tour = TourRuns(worker)
    visitors = [threading.Thread(target=tour.start) for _ in range(4)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert sorted(run.config.method for run in all_runs(worker.root)) == ["adapop", "wga"]
    assert all(run.shared for run in all_runs(worker.root))
    again = TourRuns(worker)
    again.start()
    assert again.run("adapop") == tour.run("adapop")


@pytest.mark.parametrize("fate", ["gone", "failed", "other settings", "unreadable", "not shared"])
def test_a_run_that_is_of_no_use_is_made_anew(worker, short, fate):
    tour = TourRuns(worker)
    tour.start()
    old, other = tour.run("adapop"), tour.run("wga")
    if fate == "gone":
        old.folder.rename(worker.root / "elsewhere")
    elif fate == "failed":
        old.append(RunFailed(run=old.id, message="no"))
    elif fate == "other settings":
        (old.folder / "config.json").write_text(make_config("adapop", seed=3).to_json(), encoding="utf-8")
    elif fate == "unreadable":
        (old.folder / "events.jsonl").write_text('{"kind": "of another version"}\n', encoding="utf-8")
    else:
        (old.folder / "shared").unlink()
    tour.start()
    assert tour.run("adapop") != old
    assert tour.run("wga") == other
    assert tour.run("adapop").id in (worker.root / NOTE).read_text(encoding="utf-8")


def test_a_run_whose_process_is_gone_is_queued_again(worker, short):
    tour = TourRuns(worker)
    tour.start()
    worker.queued.clear()
    tour.start()
    assert worker.queued == [tour.run("adapop"), tour.run("wga")]


def test_nobody_stops_or_resumes_a_shared_run(tmp_path, small):
    worker = Worker(tmp_path)
    run = prepare(make_config("wga", epochs=1), small, tmp_path)
    run.share()
    with pytest.raises(RunError, match="every visitor"):
        run.request_stop()
    for button in (run_screen.stop_run, run_screen.resume_run):
        with pytest.raises(gr.Error, match="every visitor"):
            button(worker, run.id)
    assert not run.stop_requested
    assert worker.ahead_of(run) is None


@pytest.mark.slow
def test_the_story_of_real_runs(tmp_path, short):
    worker = Worker(tmp_path)
    tour = TourRuns(worker)
    assert tour.story().training is None
    tour.start()
    while not tour.story().complete or not tour.asked():
        assert tour.story().trouble == ""
        assert tour.story().awaited
        threading.Event().wait(0.5)
    story = tour.story()
    assert story.awaited == ""
    assert (story.training.epoch, story.training.forget) == (1, 256)
    assert (story.adapop.facts, story.adapop.ways) == (256, 1 + len(RARE.paraphrases))
    full = tour.run("wga").measured()
    assert story.wga.popular == full.recall("forget", "reworded", "popular")
    assert [each.prompt for each in tour.asked()] == [POPULAR.question, *POPULAR.paraphrases]
    rows = rows_of(tour.run("adapop").probes(), POPULAR)
    assert story.reworded == reworded_of(rows)
    assert tour.asked()[0].unlearned.text == story.reworded.direct
    found = [row for row in tour.run("adapop").probes() if row.fact_id != RARE.id]
    tour.run("adapop").save_probes(found)  # as a visitor's own, smaller probing would
    later = TourRuns(worker)
    assert later.story().adapop is None
    assert outcome_of(tour.run("wga"), tour.run("wga").probes(), story.pair) == story.wga
