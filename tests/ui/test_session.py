import gc
import json
import shutil
import sys
from dataclasses import replace
from types import FunctionType, ModuleType

import gradio as gr
import httpx
import pytest

from adapop.facts.catalog import load_facts
from adapop.facts.fact import SANDBOX
from adapop.limits import FACTS, UPLOAD
from adapop.popularity.beta import POPULAR_ANCHOR
from adapop.runs.listed import all_runs
from adapop.service.saved_sets import load_set
from adapop.service.worker import Worker
from adapop.ui import page, texts
from adapop.ui.facts import upload
from adapop.ui.held import PAGE_MEGABYTES, STORE, PageState, held_megabytes
from adapop.ui.queue import install
from adapop.ui.run.launch import start_run
from adapop.ui.saved import OWN, LeftPage, restored, to_keep
from adapop.ui.session import Session, check_shown, identity
from components import ANCHORS, run_values, stand_ins
from raised import raised
from stepping import stepped
from waiting import wait_until

OF_THE_SHOWN_SET = ("start", "race", "duel", "look-up", "known", "drop-unknown", "set-score", "check", "race-check")


def test_sets_have_an_identity_and_what_pages_hold_is_counted_once():
    pair = load_facts("pair")
    rare, popular = pair.forget
    others = [replace(pair, forget=(popular, rare)), replace(pair, forget=(replace(rare, score=1.0), popular)), None]
    assert len({identity(facts) for facts in (pair, *others)}) == 4
    assert identity(load_facts("pair")) == identity(pair)
    facts = load_facts("pair")
    with gr.Blocks() as demo:
        states = [gr.State(None) for _ in range(3)]
    pages = [PageState(demo) for _ in range(5)]
    for own in pages:
        for state, value in zip(states, (facts, ("own", facts), 7)):
            own[state._id] = value
    assert facts.memory >= 2 * sum(len(fact.question) + len(fact.answer) for fact in facts.forget)
    assert held_megabytes(pages) == pytest.approx(5 * PAGE_MEGABYTES + facts.memory / 1e6)
    pages[0][states[0]._id] = replace(facts, name="other")
    assert held_megabytes(pages) == pytest.approx(5 * PAGE_MEGABYTES + 2 * facts.memory / 1e6)


@pytest.mark.slow
def test_a_page_costs_at_most_100_kilobytes_after_the_largest_upload(tmp_path, public):
    """Every byte that a page's state leads to, after an upload of 2 MB and all that follows it, beside what the app has
    without a page, and the values that the store has."""
    # the rows of a public app's largest table, in its largest cells
    table = [
        {"question": f"{row}?" + "q" * 1_990, "answer": "a", "score": row, "paraphrases": ["p" * 600] * 4}
        | {f"{column}" * 30: "x" for column in range(10, 70)}
        for row in range(FACTS.public)
    ]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(table))
    assert 1_500_000 < path.stat().st_size < UPLOAD.public * 1_000_000
    demo, options = page.build(Worker(tmp_path / "runs")), page.launch_options(Worker(tmp_path / "runs"))
    _, address, _ = install(demo).launch(prevent_thread_lock=True, quiet=True, **options)
    try:
        sent = httpx.post(f"{address}gradio_api/upload", files={"files": path.open("rb")}, timeout=60).json()
        file = {"path": sent[0], "orig_name": "mine.json", "meta": {"_type": "gradio.FileData"}}
        arrives, changed = _events_of(demo)
        assert len(changed) > 5
        for event in (arrives, *changed):
            values = ["own", file, "own", None] if event is arrives else [_first_value(one) for one in event.inputs]
            body = {"data": values, "fn_index": event._id, "session_hash": "ada"}
            assert httpx.post(f"{address}gradio_api/queue/join", json=body, timeout=60).status_code == 200
            wait_until(lambda: not demo._queue.event_ids_to_events)
        state = demo.server_app.state_holder.session_data["ada"]
        facts = next(block for block, kind in changed[0].targets)
        held = state[facts]
        assert len(held.forget) == FACTS.public and held.memory > 1_000_000
        assert held_megabytes([state]) > 1
        demo._queue._forget("ada")  # else the app leads to it too
        upload._table.cache_clear()
        app = _reached([demo, STORE, sys.modules])
        assert 5_000 < sum(map(sys.getsizeof, _reached([state], app).values())) < PAGE_MEGABYTES * 1e6
        before = STORE.megabytes()
        del state, app
        gc.collect()
        assert STORE.megabytes() < before - 1
    finally:
        demo.close()


def _events_of(demo):
    """(the event of a file that arrives, those of a set that changed)."""
    uploads = [one for one in demo.fns.values() if any(kind == "upload" for _, kind in one.targets)]
    arrives = next(one for one in uploads if len(one.inputs) == 4)
    shown = next(place for place, one in enumerate(arrives.outputs) if one.elem_id == "shown-set")
    facts = arrives.outputs[shown - 1]
    return arrives, [one for one in demo.fns.values() if (facts._id, "change") in one.targets]


def _first_value(component):
    """What a page sends of a component that nobody touched."""
    if component.stateful:
        return None
    if component.elem_id == "settings-loaded":
        return "loaded"
    return getattr(component, "default_value", getattr(component, "value", None))


def _reached(roots, beyond=()):
    """All objects that lead on from these, by identity, up to those beyond."""
    reached, new = {}, list(roots)
    while new:
        one = new.pop()
        if id(one) in reached or id(one) in beyond or isinstance(one, (type, ModuleType, FunctionType)):
            continue
        reached[id(one)] = one
        new.extend(gc.get_referents(one))
    return reached


@pytest.mark.slow
def test_a_second_press_starts_no_second_run(tmp_path):
    worker, pair = Worker(tmp_path), load_facts("pair")
    chosen = (pair, "error", ANCHORS, *run_values())
    name, *_ = start_run(worker, None, identity(pair), *chosen)
    with pytest.raises(gr.Error, match="A run of this page is under way"):
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


@pytest.mark.parametrize("name", OF_THE_SHOWN_SET)
def test_a_button_does_nothing_to_a_set_that_the_page_does_not_show(demo, name):
    """After a restart the server holds the sandbox, and would look it up, change it, or say of it what is asked."""
    clicked = {block: one for one in demo.fns.values() for block, kind in one.targets if kind == "click"}
    pressed = next(one for block, one in clicked.items() if demo.blocks[block].elem_id == name)
    index = next(place for place, one in enumerate(pressed.inputs) if one.elem_id == "shown-set")
    values = [getattr(one, "value", None) for one in pressed.inputs]
    values[index] = identity(load_facts("pair"))
    with pytest.raises(gr.Error, match="no longer had the set"):
        next(stepped(pressed.fn(*values)))
    after = [one for one in demo.fns.values() if one.trigger_after == pressed._id and one.trigger_only_on_failure]
    assert after, "and the page's set is put back"


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
    assert left[notes]["lines"] == [texts.SET_EXPIRED]
    assert (left[session.anchors], left[session.stored]) == (ANCHORS, forgotten)
    assert session.facts not in left and restored(tmp_path, forgotten) == LeftPage(ANCHORS)
    later, _ = to_keep(Worker(tmp_path), load_facts(SANDBOX), ANCHORS, SANDBOX, load_facts(SANDBOX), remembered)
    assert later["set"] is None, "nor does a page keep its name that was open meanwhile"


@pytest.mark.parametrize("wrong", [None, 3, [], {}, {"source": "../etc"}, {"source": OWN, "set": "../../etc"}])
def test_whatever_a_browser_holds_the_page_opens(wrong, tmp_path):
    assert restored(tmp_path, wrong) is None or restored(tmp_path, wrong).expired
