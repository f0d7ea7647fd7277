"""A page's set and the server's: a run begins on what the page shows, or not at all."""

from dataclasses import replace

import gradio as gr
import pytest

from adapop.facts.catalog import load_facts
from adapop.facts.fact import SANDBOX
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR
from adapop.runs.listed import all_runs
from adapop.service.worker import Worker
from adapop.ui import page
from adapop.ui.compare import race
from adapop.ui.run.screen import start_run
from adapop.ui.session import check_shown, identity
from components import run_values
from stepping import stepped
from waiting import wait_until

OF_THE_SHOWN_SET = ("start", "race", "duel", "look-up", "known", "drop-unknown", "set-score", "check", "race-check")


def test_sets_that_differ_in_anything_have_another_identity():
    pair = load_facts("pair")
    rare, popular = pair.forget
    others = [replace(pair, forget=(popular, rare)), replace(pair, forget=(replace(rare, score=1.0), popular)), None]
    assert len({identity(facts) for facts in (pair, *others)}) == 4
    assert identity(load_facts("pair")) == identity(pair)


def test_a_second_press_starts_no_second_run(tmp_path):
    worker, pair = Worker(tmp_path), load_facts("pair")
    chosen = (pair, "error", (RARE_ANCHOR, POPULAR_ANCHOR), *run_values())
    name, *_ = start_run(worker, None, identity(pair), *chosen)
    with pytest.raises(gr.Error, match="A run of this page is under way"):
        start_run(worker, name, identity(pair), *chosen)
    (run,) = all_runs(tmp_path)
    run.request_stop()
    wait_until(lambda: worker.wait_of(run) is None and not run.locked)
    again, *_ = start_run(worker, name, identity(pair), *chosen)
    assert again != name, "the first is over"
    wait_until(lambda: len(all_runs(tmp_path)) == 2 and worker.wait_of(all_runs(tmp_path)[0]) is None)


def test_a_server_that_holds_another_set_than_the_page_shows_starts_nothing(tmp_path):
    worker, mine = Worker(tmp_path), load_facts("pair")
    with pytest.raises(gr.Error, match="no longer had the set"):
        start_run(worker, None, identity(mine), load_facts(SANDBOX), "error", ())
    with pytest.raises(gr.Error, match="no longer had the set"):
        race.begin(worker, identity(mine), load_facts(SANDBOX), "error", (), race.DUEL, 1, 1, "", *run_values())
    for shown in ("", None, "x" * 64, 7):
        with pytest.raises(gr.Error, match="no longer had the set"):
            check_shown(mine, shown)
    with pytest.raises(gr.Error, match="no usable facts"):
        check_shown(None, "")
    assert check_shown(mine, identity(mine)) is mine
    assert all_runs(tmp_path) == []


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return page.build(Worker(tmp_path_factory.mktemp("runs")))


@pytest.mark.parametrize("name", OF_THE_SHOWN_SET)
def test_a_button_does_nothing_to_a_set_that_the_page_does_not_show(demo, name):
    """After a restart the server holds the sandbox, and would look it up, change it, or say of it what is asked."""
    pressed = next(
        one
        for one in demo.fns.values()
        if any(kind == "click" and demo.blocks[block].elem_id == name for block, kind in one.targets)
    )
    shown = next(place for place, one in enumerate(pressed.inputs) if one.elem_id == "shown-set")
    values = [getattr(one, "value", None) for one in pressed.inputs]
    values[shown] = identity(load_facts("pair"))
    with pytest.raises(gr.Error, match="no longer had the set"):
        answer = pressed.fn(*values)
        next(stepped(answer))
    after = [one for one in demo.fns.values() if one.trigger_after == pressed._id and one.trigger_only_on_failure]
    assert after, "and the page's set is put back"
