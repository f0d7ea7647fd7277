import shutil
from dataclasses import replace

import gradio as gr
import pytest

from adapop.facts.catalog import load_facts
from adapop.facts.fact import SANDBOX
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR
from adapop.service.saved_sets import load_set
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.saved import OWN, LeftPage, restored, to_keep
from adapop.ui.session import Session
from components import stand_ins

ANCHORS = (RARE_ANCHOR, POPULAR_ANCHOR)


@pytest.fixture
def mine(small):
    return replace(small, name="mine")


def test_a_set_is_kept_and_comes_back(mine, tmp_path):
    remembered, saved = to_keep(Worker(tmp_path), mine, ANCHORS, OWN, None, {})
    again, _ = to_keep(Worker(tmp_path), mine, ((50, 1.5), POPULAR_ANCHOR), OWN, saved, remembered)
    assert again["set"] == remembered["set"], "other anchors are no other set"
    assert restored(tmp_path, again) == LeftPage(((50, 1.5), POPULAR_ANCHOR), OWN, mine)
    pair = load_facts("pair")
    kept = to_keep(Worker(tmp_path), pair, ANCHORS, "pair", None, {})[0]
    assert kept == {"source": "pair", "set": None, "anchors": ANCHORS}
    edited = replace(pair, forget=(replace(pair.forget[0], score=77.0), *pair.forget[1:]))
    remembered, _ = to_keep(Worker(tmp_path), edited, ANCHORS, "pair", pair, {})
    assert restored(tmp_path, remembered).facts == edited and not (tmp_path / "runs").exists()


def test_two_tabs_do_not_take_each_others_set_away(mine, tmp_path):
    first, saved = to_keep(Worker(tmp_path), mine, ANCHORS, OWN, None, {})
    other = replace(mine, forget=mine.forget[:3])
    second, _ = to_keep(Worker(tmp_path), other, ANCHORS, OWN, mine, first)  # a tab that began with the first one's
    assert load_set(first["set"], tmp_path) is None
    again, _ = to_keep(Worker(tmp_path), mine, ANCHORS, OWN, saved, first)
    assert load_set(again["set"], tmp_path) == mine and load_set(second["set"], tmp_path) == other


def test_a_dead_set_is_told_of_once(mine, tmp_path):
    remembered, _ = to_keep(Worker(tmp_path), mine, ANCHORS, OWN, None, {})
    shutil.rmtree(tmp_path / "sets")
    session, notes = stand_ins(Session), gr.HTML()
    left = restored(tmp_path, remembered).updates(session, gr.Radio(), notes)
    forgotten = {"source": SANDBOX, "set": None, "anchors": ANCHORS}
    assert left[notes]["lines"] == [texts.SET_EXPIRED]
    assert (left[session.anchors], left[session.stored]) == (ANCHORS, forgotten)
    assert session.facts not in left and restored(tmp_path, forgotten) == LeftPage(ANCHORS)
    later, _ = to_keep(Worker(tmp_path), load_facts(SANDBOX), ANCHORS, SANDBOX, load_facts(SANDBOX), remembered)
    assert later["set"] is None, "nor does a page keep its name that was open meanwhile"


@pytest.mark.parametrize("wrong", [None, 3, [], {}, {"source": "../etc"}, {"source": OWN, "set": "../../etc"}])
def test_whatever_a_browser_holds_the_page_opens(wrong, tmp_path):
    assert restored(tmp_path, wrong) is None or restored(tmp_path, wrong).expired
