"""Open a model pair, on Probe: what it refuses, and what the page says while both models are measured."""

import asyncio
from dataclasses import replace
from threading import Event

import gradio as gr
import pytest

from adapop.errors import ConfigError, RunError
from adapop.runs.adopted import adopted_config
from adapop.runs.run import create_run
from adapop.service.worker import Worker
from adapop.training.events import Measuring, RunDone, RunFailed
from adapop.ui.parts import html
from adapop.ui.probe import asking
from adapop.ui.probe.asking import asked_run
from adapop.ui.probe.pair import facts_of_pair, open_pair
from adapop.ui.run.outcome import run_again
from adapop.ui.run.state import RunSeen, view
from browsing import open_tab, says, state_is, unfold, visit
from run_events import START


@pytest.mark.parametrize("places", [("sandbox", "/etc"), ("/etc", "people"), ("sandbox", "people", "../models")])
def test_a_public_page_opens_only_models_that_it_offers_and_looks_at_no_path(
    places, tiny, tmp_path, public, monkeypatch
):
    monkeypatch.setattr("adapop.ui.probe.pair.adopted_config", None)  # which looks at paths
    with pytest.raises(gr.Error, match="opens only models that its Run tab offers"):
        open_pair(Worker(tmp_path), "", tiny, *(*places, "")[:3])
    assert list(tmp_path.iterdir()) == []


def test_a_missing_model_is_said_and_nothing_is_queued(tiny, tmp_path):
    for places, words in ((("", "", ""), "no unlearned model"), (("", "x", None), "Name the original model")):
        with pytest.raises(gr.Error, match=words):
            open_pair(Worker(tmp_path), "", tiny, *places)
    assert list(tmp_path.iterdir()) == []


def test_without_steps_the_page_says_that_it_measures():
    start = replace(START, steps=0, epochs=1)
    asked = Measuring(run="r", epoch=0, asked=40, of=100, time=start.time)
    for events, words in (((start,), "the original"), ((start, asked), "40 of 100 questions")):
        seen = view(RunSeen(events, saved=1))
        assert seen.state == "interrupted"
        now = view(RunSeen(events, saved=1, elsewhere=True))
        assert now.state == "elsewhere" and words in str(now), now
    done = RunDone(run="r", epoch=1, seconds=14.2, time=start.time)
    assert view(RunSeen((start, done), saved=1)).detail == "both models measured, 14 s"


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
        with pytest.raises(ConfigError, match="named by an adopted run, and by no other"):
            replace(config, **wrong)


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
        state_is(page, "done")
        page.click("#ask-every-way")  # four
        says(page, "#every-way", "pair, adopted, beside sandbox", "Still answered")
