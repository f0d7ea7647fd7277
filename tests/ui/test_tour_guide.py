"""The tour's buttons: what is lent comes back, what the visitor did meanwhile stays, and a failed run is made again."""

from dataclasses import replace

import gradio as gr
import pytest

from adapop.facts.catalog import load_facts
from adapop.facts.world import sandbox_facts
from adapop.popularity.base import Score, Scoring, given
from adapop.probes.ask import Answer, Asked
from adapop.training.events import RunFailed
from adapop.ui import pressure
from adapop.ui.facts import lookup
from adapop.ui.facts import screen as facts
from adapop.ui.probe import screen as probe
from adapop.ui.run import screen as run_screen
from adapop.ui.session import new_session
from adapop.ui.tour import card as tour
from adapop.ui.tour.card import Driven
from adapop.ui.tour.guide import Guide
from adapop.ui.tour.story import Story
from adapop.ui.tour.text import RETRY, STOPS
from components import stand_ins
from idle_worker import IdleWorker
from tour_story import PAIR, POPULAR, SAID, STORY

DIRECT, REWORDED = (place for place, stop in enumerate(STOPS) if stop.ask)
TRAINING = next(place for place, stop in enumerate(STOPS) if stop.run)
MINE = "The visitor's own facts"
KEPT = {"finished": False, "run": ""}


@pytest.fixture
def worker(tmp_path):
    return IdleWorker(tmp_path)


@pytest.fixture(scope="module")
def controls(tmp_path_factory):
    """The card and the real screens."""
    worker = IdleWorker(tmp_path_factory.mktemp("runs"))
    with gr.Blocks() as page:
        session, card = new_session(page, "secret"), tour.build(gr.Button(), "secret")
        states = gr.State(run_screen.UNSEEN), gr.State("ready"), gr.BrowserState([])
        follower = run_screen.Follower(gr.BrowserState(""), *states, gr.Timer(active=False), gr.HTML(), gr.Button())
        with gr.Tabs() as tabs:
            with gr.Tab("Facts") as tab:
                facts_screen = facts.build(worker, session, tab)
            with gr.Tab("Pressure"):
                pressure_screen = pressure.build(session, sandbox_facts())
            with gr.Tab("Probe") as tab:
                probe_screen = probe.build(worker, follower.run_id, tab)
    screens = facts_screen, pressure_screen, probe_screen
    return card, Driven(tabs, {}, session, follower, *screens)


@pytest.fixture
def guide(controls, worker):
    return Guide(*controls, worker)


def own_of(guide: Guide, run: str = "", **changes) -> tuple:
    """What `enter` sets aside of a visitor who follows a run of this id."""
    session, follower = guide.driven.session, guide.driven.follower
    values = {component: None for component in guide.driven.values}
    values |= {session.facts: sandbox_facts(), session.scorings: (), session.known: {}}
    values |= {session.anchors: ((100, 1.5), (2500, 0.1)), follower.run_id: run}
    values |= {guide.driven.probe.filled: (), guide.driven.probe.group: "forget"}
    values |= {getattr(guide.driven.probe, name): value for name, value in changes.items()}
    return ("pressure", *values.values())


def tick(guide: Guide, place: int, asked: bool = False):
    return guide.tick(place, None, 0.5, {}, asked)


def tells(guide, monkeypatch, story: Story, asked: list[Asked]) -> None:
    """Has the tour's runs say so."""
    monkeypatch.setattr(guide.runs, "story", lambda: story)
    monkeypatch.setattr(guide.runs, "asked", lambda: asked)


def said(prompt: str) -> Asked:
    nothing = Answer(text="Fellini", recall=0.0, gold_rank=4, gold_logprob=-3.0, top=())
    return Asked(prompt, POPULAR.answer, prompt, nothing, nothing)


def test_the_tour_can_be_entered_again_at_once_but_not_twice(guide):
    values = own_of(guide)[1:]
    inside = guide.enter(-1, "facts", {"finished": True}, *values)
    assert inside[guide.card.own] == ("facts", *values)
    assert inside[guide.card.timer].active is True
    assert guide.enter(0, "facts", {"finished": True}, *values) == gr.skip()


def test_a_failed_run_stops_no_timer_and_is_made_again_on_the_way(guide, worker):
    guide.prepare()
    old = guide.runs.run("adapop")
    worker.queued.remove(old)
    old.append(RunFailed(run=old.id, message="The disk is full."))
    found = tick(guide, TRAINING)
    assert guide.card.timer not in found
    assert found[guide.card.text]["awaited"].endswith(RETRY)
    on = guide.go(1, TRAINING - 1, own_of(guide), None, "", KEPT)
    assert on[guide.driven.follower.run_id] == guide.runs.run("adapop").id != old.id
    assert on[guide.card.timer].active is True


def test_prompt_and_answers_arrive_together(guide, monkeypatch):
    screen, answers = guide.driven.probe, [said(POPULAR.question), said(SAID.question)]
    guide.prepare()
    tells(guide, monkeypatch, Story(PAIR), answers)  # before anybody knows which rewording is shown
    waiting = guide.go(1, REWORDED - 1, own_of(guide), None, "", KEPT)
    assert waiting[guide.card.asked] is False
    assert not set(guide.driven.question) & set(tick(guide, REWORDED))
    tells(guide, monkeypatch, STORY, answers)
    for place, question in ((DIRECT, POPULAR.question), (REWORDED, SAID.question)):
        found = tick(guide, place)
        assert set(guide.driven.question) <= set(found)
        assert (found[screen.prompt], found[screen.answers]["sent"]) == (question, question)
        assert found[screen.filled][2] == question == found[screen.form].value
        assert guide.card.timer not in found
        quiet = guide.tick(place, None, 0.5, found[guide.card.text], True)
        assert (set(quiet), quiet[guide.card.timer].active) == ({guide.card.timer}, False), "nothing more will come"


def test_what_a_look_up_finds_during_the_tour_arrives_afterwards(small):
    pair = load_facts("pair")
    scoring = Scoring("counts", {fact.id: Score(fact.id, 7.0, "counts") for fact in small.forget})
    found, screen = lookup.Found(small, scoring, False), stand_ins(lookup.LookUp)
    session = screen.session
    assert screen.applied(True, pair, given(pair.forget), found) == gr.skip()
    shown = screen.applied(False, small, (), found)
    assert {fact.score for fact in shown[session.facts].forget} == {7.0}
    assert (len(shown[session.scorings]), shown[screen.found]) == (1, None)
    assert screen.applied(False, pair, (), replace(found, facts=pair, touring=True)) == {screen.found: None}
