"""A page's set and the server's: a run begins on what the page shows, or not at all."""

from dataclasses import replace

import gradio as gr
import pytest

from adapop.facts.catalog import load_facts
from adapop.facts.fact import SANDBOX
from adapop.runs.listed import all_runs
from adapop.service.worker import Worker
from adapop.ui.run.screen import start_run
from adapop.ui.session import check_shown, identity


def test_sets_that_differ_in_anything_have_another_identity():
    pair = load_facts("pair")
    rare, popular = pair.forget
    others = [replace(pair, forget=(popular, rare)), replace(pair, forget=(replace(rare, score=1.0), popular)), None]
    assert len({identity(facts) for facts in (pair, *others)}) == 4
    assert identity(load_facts("pair")) == identity(pair)


def test_a_server_that_holds_another_set_than_the_page_shows_starts_nothing(tmp_path):
    worker, mine = Worker(tmp_path), load_facts("pair")
    with pytest.raises(gr.Error, match="no longer had the set"):
        start_run(worker, identity(mine), load_facts(SANDBOX), "error", ())
    for shown in ("", None, "x" * 64, 7):
        with pytest.raises(gr.Error, match="no longer had the set"):
            check_shown(mine, shown)
    with pytest.raises(gr.Error, match="no usable facts"):
        check_shown(None, "")
    assert check_shown(mine, identity(mine)) is mine
    assert all_runs(tmp_path) == []
