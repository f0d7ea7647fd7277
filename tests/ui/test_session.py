import shutil
from dataclasses import replace

import gradio as gr
import pytest

from adapop.facts.catalog import load_facts
from adapop.facts.fact import SANDBOX
from adapop.popularity.base import given
from adapop.popularity.beta import POPULAR_ANCHOR
from adapop.runs.listed import all_runs
from adapop.service.saved_sets import load_set
from adapop.service.visitor_limits import Usage
from adapop.service.worker import Worker
from adapop.ui import events, session
from adapop.ui.run.launch import start_run
from adapop.ui.saved import OWN, SET_EXPIRED, LeftPage, restored, to_keep
from adapop.ui.session import Kept, KeptId, Recall, Scorings, Session, check_shown, identity
from components import ANCHORS, run_values, stand_ins
from raised import raised
from stepping import stepped
from waiting import wait_until


def test_sets_have_an_identity_and_pages_hold_ids():
    pair = load_facts("pair")
    rare, popular = pair.forget
    others = [replace(pair, forget=(popular, rare)), replace(pair, forget=(replace(rare, score=1.0), popular)), None]
    assert len({identity(facts) for facts in (pair, *others)}) == 4
    assert identity(load_facts("pair")) == identity(pair)
    kept, state = Kept(), gr.State(None)
    held = kept.stored({state: pair, "other": [("own", pair), 7]})
    assert isinstance(held[state], KeptId) and held["other"] == [("own", held[state]), 7]
    assert kept.loaded(("own", held[state])) == ("own", pair) and kept.loaded(str(held[state])) == str(held[state])
    assert kept.stored({"name": pair}) == {"name": pair}, "a value of a program, no update"


def test_scores_and_recall_are_ids_in_a_page_and_gone_ones_are_empty():
    pair, kept = load_facts("pair"), Kept()
    values = [Scorings([given(pair.forget)]), Recall({fact.id: 1.0 for fact in pair.forget}), given(pair.forget)]
    ids = kept.stored(values)
    assert {type(one) for one in ids} == {KeptId} and list(map(kept.loaded, ids)) == values
    assert kept.stored(Recall(values[1])) == ids[1], "equal recall is no change of the page"
    assert list(map(Kept().loaded, ids)) == [(), {}, None]


def test_the_state_that_a_page_begins_with_is_small(demo):
    states = [one.value for one in demo.blocks.values() if isinstance(one, gr.State)]
    assert len([one for one in states if isinstance(one, KeptId)]) >= 4
    assert all(len(repr(one)) < 200 for one in states)


def test_an_event_with_nothing_to_say_leaves_what_it_would_fill_in():
    async def counted(most: int):
        for number in range(most):
            yield number

    event = events.prepared(counted, Usage())
    assert list(stepped(event(None, 2))) == [0, 1]
    assert list(stepped(event(None, 0))) == [gr.skip()]


def test_the_sets_in_use_are_bounded_and_the_longest_unused_goes(monkeypatch):
    monkeypatch.setattr(session, "MEGABYTES", 2.5 * load_facts("pair").memory / 1e6)
    kept = Kept()
    first, second = (kept.id_of(replace(load_facts("pair"), name=name)) for name in "ab")
    assert kept.value_of(first).name == "a"
    third = kept.id_of(replace(load_facts("pair"), name="c"))
    assert [kept.value_of(one) is not None for one in (first, second, third)] == [True, False, True]


@pytest.mark.slow
def test_a_second_press_starts_no_second_run(tmp_path):
    worker, pair = Worker(tmp_path), load_facts("pair")
    chosen = (pair, "error", ANCHORS, *run_values(measure_per_tier=2))
    name, *_ = start_run(worker, None, identity(pair), *chosen)
    with pytest.raises(gr.Error, match="A run is in progress on this page"):
        start_run(worker, name, identity(pair), *chosen)
    (run,) = all_runs(tmp_path)
    run.request_stop()
    wait_until(lambda: worker.wait_of(run) is None and not run.locked)
    again, *_ = start_run(worker, name, identity(pair), *chosen)
    assert again != name, "the first is over"
    wait_until(lambda: len(all_runs(tmp_path)) == 2 and worker.wait_of(all_runs(tmp_path)[0]) is None)


def test_a_set_is_the_page_s_only_if_the_page_shows_it():
    mine = load_facts("pair")
    for shown in ("", None, "x" * 64, 7):
        raised(gr.Error, "no longer had the set", check_shown, mine, shown)
    raised(gr.Error, "no usable facts", check_shown, None, "")
    assert check_shown(mine, identity(mine)) is mine


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


def test_two_tabs_keep_their_sets_and_a_dead_set_is_told_of_once(mine, tmp_path):
    first, saved = to_keep(Worker(tmp_path), mine, ANCHORS, OWN, None, {})
    other = replace(mine, forget=mine.forget[:3])
    second, _ = to_keep(Worker(tmp_path), other, ANCHORS, OWN, mine, first)  # a tab that began with the first one's
    assert load_set(first["set"], tmp_path) is None
    again, _ = to_keep(Worker(tmp_path), mine, ANCHORS, OWN, saved, first)
    assert load_set(again["set"], tmp_path) == mine and load_set(second["set"], tmp_path) == other
    remembered, _ = to_keep(Worker(tmp_path), mine, ANCHORS, OWN, None, {})
    shutil.rmtree(tmp_path / "sets")
    session, notes = stand_ins(Session), gr.HTML()
    left = restored(tmp_path, remembered).updates(session, gr.Radio(), notes)
    forgotten = {"source": SANDBOX, "set": None, "anchors": ANCHORS}
    assert left[notes]["lines"] == [SET_EXPIRED]
    assert (left[session.anchors], left[session.stored]) == (ANCHORS, forgotten)
    assert session.facts not in left and restored(tmp_path, forgotten) == LeftPage(ANCHORS)
    later, _ = to_keep(Worker(tmp_path), load_facts(SANDBOX), ANCHORS, SANDBOX, load_facts(SANDBOX), remembered)
    assert later["set"] is None, "nor does a page keep its name that was open meanwhile"


@pytest.mark.parametrize("wrong", [None, 3, [], {}, {"source": "../etc"}, {"source": OWN, "set": "../../etc"}])
def test_whatever_a_browser_holds_the_page_opens(wrong, tmp_path):
    assert restored(tmp_path, wrong) is None or restored(tmp_path, wrong).expired
