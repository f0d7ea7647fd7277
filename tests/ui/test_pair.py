"""Open a model pair, on Probe: what it refuses, and what the page says while both models are measured."""

import asyncio
import json
import re
from dataclasses import replace
from functools import partial
from threading import Event

import gradio as gr
import pytest
from playwright.sync_api import expect

from adapop.errors import ConfigError, RunError
from adapop.runs import measuring
from adapop.runs.adopted import adopted_config
from adapop.runs.pace import Wait
from adapop.runs.run import RUN_ID, Run, create_run
from adapop.service.worker import Worker
from adapop.training.events import Measured, Measuring, RunDone, RunFailed, RunStopped
from adapop.ui import texts
from adapop.ui.parts import html
from adapop.ui.probe import asking, choices
from adapop.ui.probe.asking import asked_run
from adapop.ui.probe.pair import facts_of_pair, open_pair, put_away
from adapop.ui.run import mine
from adapop.ui.run.launch import resume_run, stop_run
from adapop.ui.run.mine import to_lay_over
from adapop.ui.run.outcome import run_again
from adapop.ui.run.screen import RunScreen
from adapop.ui.run.state import RunSeen, log_lines, seen_of, view
from browsing import open_tab, says, state_is, unfold, visit
from components import stand_ins
from run_events import START
from tiny_runs import ran


@pytest.fixture(scope="module")
def pair(tiny, tmp_path_factory):
    """A pair that was measured."""
    config = replace(adopted_config("sandbox", "people"), facts=tiny.name)
    return ran(config, tiny, tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("places", [("sandbox", "/etc"), ("/etc", "people"), ("sandbox", "people", "../models")])
def test_a_public_page_opens_only_models_that_it_offers_and_looks_at_no_path(
    places, tiny, tmp_path, public, monkeypatch
):
    monkeypatch.setattr("adapop.ui.probe.pair.adopted_config", None)  # which looks at paths
    with pytest.raises(ConfigError, match="opens only models that its Run tab offers"):
        open_pair(Worker(tmp_path), "", tiny, *(*places, "")[:3])
    assert list(tmp_path.iterdir()) == []


def test_a_missing_model_is_said_and_nothing_is_queued(tiny, tmp_path):
    for places, words in ((("", "", ""), "no unlearned model"), (("", "x", None), "Name the original model")):
        with pytest.raises(ConfigError, match=words):
            open_pair(Worker(tmp_path), "", tiny, *places)
    assert list(tmp_path.iterdir()) == []


def test_of_a_pair_the_page_says_what_is_measured_and_never_speaks_of_training():
    start = replace(START, steps=0, epochs=1)
    asked = Measuring(run="r", epoch=0, asked=40, of=100, time=start.time)
    before, after = (Measured(run="r", epoch=epoch, rows=(), full=True, time=start.time) for epoch in (0, 1))
    pair, said = partial(RunSeen, saved=1, adopted=True), []
    for events, words in (
        ((start,), "1 of 2: the original model"),
        ((start, asked), "1 of 2: the original model, 40 of 100 questions"),
        ((start, before), "2 of 2: the unlearned model"),
    ):
        now = view(pair(events, wait=Wait(0, None)))
        assert (now.state, now.detail, now.can_stop) == ("measuring", words, True)
        assert view(pair(events, elsewhere=True)).state == "elsewhere"
        assert view(pair(events, stop_requested=True, wait=Wait(0, None))).state == "stopping"
        said.append(view(pair(events)).detail)
    stopped = RunStopped(run="r", epoch=1)
    for measured, words in (
        ((), "none is kept"), ((before,), "The original model's measurement is kept"),
        ((before, after), "Both measurements"),
    ):  # fmt: skip
        now = view(pair((start, *measured, stopped)))
        assert now.state == "stopped" and words in now.detail and now.can_resume
        said.append(now.detail)
    done = RunDone(run="r", epoch=1, seconds=14.2, time=start.time)
    assert view(pair((start, done))).detail == "both models measured, 14 s"
    said += log_lines((start, before, stopped, start, after, done), adopted_config("sandbox", "people"))
    said.append(view(RunSeen(wait=Wait(0, None), adopted=True)).detail)
    assert not [line for line in said if re.search("epoch|train|step|λ|dots", line)], said


def test_a_pair_s_charts_and_result_are_those_of_two_models(pair, tmp_path):
    worker, screen = Worker(pair.folder.parent), stand_ins(RunScreen)
    shown = screen.show(worker, pair.id)
    pictures = screen.charts
    for absent in (pictures.losing, pictures.training, pictures.steering):
        assert not shown[absent]["visible"] if isinstance(shown[absent], dict) else not shown[absent].visible
    assert shown[screen.watched]["kind"] == "pair", "by which the course and the dots are hidden"
    assert shown[pictures.outcome.heading]["title"] == "Both models"
    assert not to_lay_over(worker, [{"id": pair.id, "name": "pair"}], pair.id, "").visible
    (line,) = shown[screen.card.brief]["lines"]
    assert shown[screen.card.card]["title"] in line and "people beside sandbox" in line
    words = [shown[screen.watched], shown[screen.card.card], line, shown[screen.log], shown[pictures.outcome.twin]]
    assert not re.search("epoch|trained|step|λ|asked asked", json.dumps(words)), words
    assert not choices.epoch_choices(worker, pair.id, "")["visible"]
    assert asking.ways_of(worker, pair.id, pair.facts.forget[0].id)["rows"][0]["way"] == texts.DIRECT_OF_PAIR
    other = stand_ins(RunScreen)
    assert other.show(worker, "")[other.card.brief]["kind"] == "hidden"


@pytest.mark.parametrize("which", ["original", "unlearned"])
def test_stop_ends_the_measuring_of_a_pair_and_resume_goes_on(which, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "LOG_EVERY", 0.0)
    monkeypatch.setattr(measuring, "CHECK_EVERY", 0.0)
    worker, written = Worker(tmp_path), Run.append

    def append(run, event):
        if isinstance(event, Measuring) and event.epoch == (which == "unlearned") and not run.stop_requested:
            assert seen_of(worker, run.id, "ready")[0].can_stop
            stop_run(worker, run.id)
        return written(run, event)

    monkeypatch.setattr(Run, "append", append)
    run = worker.submit(replace(adopted_config("sandbox", "people"), facts=tiny.name), tiny)
    worker._line.run(int).result()  # the run is over
    now = seen_of(worker, run.id, "ready")[0]
    kept = [event.epoch for event in run.events() if isinstance(event, Measured)]
    assert (now.state, now.can_resume) == ("stopped", True) and kept == [0] * (which == "unlearned")
    monkeypatch.setattr(Run, "append", written)
    resume_run(worker, run.id)
    worker._line.run(int).result()
    assert [event.epoch for event in run.events() if isinstance(event, Measured)] == [0, 1] and run.state == "done"


def test_a_pair_that_cannot_be_opened_leaves_only_the_reason_and_the_run_before_it(pair, tiny):
    root = pair.folder.parent
    worker, screen, there = Worker(root), stand_ins(RunScreen), {*root.iterdir()}
    name = open_pair(worker, pair.id, tiny, "sandbox", "./no such folder", "").id
    worker._line.run(int).result()
    phase = screen.show(worker, name)[screen.follower.phase]
    back, _, _, why, fold = put_away(worker, phase, name, pair.id)
    assert back == pair.id and fold.open and why["kind"] == "bad"
    assert "no such folder" in why["lines"][0] and "no folder has this name" in why["lines"][0]
    left = {path.name for path in root.iterdir()} - {path.name for path in there}
    assert not [path for path in left if RUN_ID.fullmatch(path)]
    assert mine.listed(worker, [{"id": name, "name": "Adopted 1"}], "") == []
    for other in (phase, screen.show(worker, pair.id)[screen.follower.phase]):
        assert put_away(worker, other, pair.id, "") == (gr.skip(),) * 5, "it is gone already, or was opened"


def test_a_question_before_both_are_measured_is_told_what_it_waits_for(tiny, tmp_path):
    run = create_run(adopted_config("sandbox", "people"), tiny, None, tmp_path)
    with pytest.raises(RunError, match="Both models are being measured"):
        asked_run(Worker(tmp_path), run.id)
    run.append(RunFailed(run=run.id, message="There is no such folder."))
    with pytest.raises(RunError, match="This run failed before it had a model to ask"):
        asked_run(Worker(tmp_path), run.id)


def test_a_question_to_a_pair_that_is_being_measured_waits_for_it_and_is_answered(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "PATIENCE", 0.05)
    worker, goes_on = Worker(tmp_path), Event()
    worker._line.run(goes_on.wait)
    run = worker.submit(replace(adopted_config("sandbox", "people"), facts=tiny.name), tiny)
    shown = []

    async def ask(answers):
        async for value in answers:
            shown.append(value)
            goes_on.set()

    asyncio.run(ask(asking.ask_every_way(worker, run.id, tiny.forget[0].id)))
    assert shown[0]["title"] == html.values(asking.ASKED_LATER)
    assert "asked just now" in shown[-1]["about"] and shown[-1]["rows"]
    with pytest.raises(RunError, match="Both models are being measured"):
        asked_run(worker, create_run(adopted_config("sandbox", "people"), tiny, None, tmp_path).id, waits=True)


def test_a_pair_that_was_opened_by_a_link_is_not_measured_anew_for_who_has_only_the_link(tiny, tmp_path):
    worker = Worker(tmp_path)
    run = create_run(adopted_config("sandbox", "people"), tiny, None, tmp_path)
    with pytest.raises(gr.Error, match="there is nothing to run"):
        run_again(worker, run)
    assert len(list(tmp_path.glob("adopted-*"))) == 1


def test_the_form_names_the_set_on_which_a_pair_is_measured(tiny):
    named = replace(tiny, name="<b>mine</b>")
    first, known = facts_of_pair(named)["lines"]
    assert first == html.values("Measured on “<b>mine</b>”, the set on Facts: 4 facts to forget, 4 held out.")
    assert "does not know" in known
    assert facts_of_pair(None)["kind"] == "warn"


def test_only_an_adopted_run_names_an_unlearned_model():
    config = adopted_config("sandbox", "./somewhere")
    assert (config.method, config.epochs) == ("adopted", 1) and config.unlearned == "./somewhere"
    for wrong in ({"method": "wga"}, {"unlearned": ""}):
        with pytest.raises(ConfigError, match="Only an adopted run"):
            replace(config, **wrong)


@pytest.mark.slow
def test_of_a_mistyped_pair_the_reason_stands_at_the_form_and_nothing_in_the_list(browser, address):
    with visit(browser, address, "?tab=probe") as page:
        unfold(page, "pair-fold")
        says(page, "#pair-facts", "256 facts to forget")
        page.click("#open-pair")
        says(page, "#pair-not-opened .bad", "There is no unlearned model")
        page.fill("#pair-original textarea, #pair-original input", "sandbox")
        page.fill("#pair-unlearned textarea, #pair-unlearned input", "./no such folder")
        page.click("#open-pair")
        says(page, "#pair-not-opened .bad", "no such folder", "no folder has this name")
        expect(page.locator("#pair-not-opened")).to_be_in_viewport()
        page.wait_for_selector("#strip .strip.ready", state="attached")
        says(page, "#probe-notes", "recorded by")
        assert page.input_value("#pair-unlearned textarea, #pair-unlearned input") == "./no such folder"
        page.reload()
        page.wait_for_selector("#strip .strip.ready", state="attached")
        open_tab(page, "Run")
        says(page, "#watched", "Recorded example")
        assert page.locator("#my-runs tbody tr").count() == 0


@pytest.mark.slow
def test_a_pair_is_opened_in_four_presses_and_its_leak_is_seen(browser, address, finished, tmp_path):
    from adapop.report.export import export

    export(finished, tmp_path / "pair", merged=True, dtype="float32", measure=False)
    with visit(browser, address, "?tab=facts") as page:
        open_tab(page, "Probe")  # one
        unfold(page, "pair-fold")  # two
        says(page, "#pair-facts", "256 facts to forget")
        page.fill("#pair-original textarea, #pair-original input", "sandbox")
        page.fill("#pair-unlearned textarea, #pair-unlearned input", str(tmp_path / "pair"))
        page.click("#open-pair")  # three
        page.locator("#stop:enabled").wait_for()  # while both are measured
        state_is(page, "done")
        says(page, "#pair-verdict", "pair beside sandbox: ")
        page.click("#ask-every-way")  # four
        says(page, "#every-way", "pair, adopted, beside sandbox", "Still answered")
        open_tab(page, "Run")
        says(page, "#watched", "Two models made elsewhere: pair (unlearned) and sandbox (original)")
        page.locator("#outcome-chart .plotly").wait_for()
        for absent in ("#recall-chart-column", "#fact-field", "#losing", "#steering", "#lay-over"):
            assert page.locator(absent).is_hidden(), absent
