"""How the page's events are wired, where Gradio's browser side would turn a small slip into endless work."""

import inspect
from collections import defaultdict

import gradio as gr
import pytest

from adapop.errors import RunError
from adapop.facts.fact import FactSet
from adapop.service.worker import Worker
from adapop.ui import page
from adapop.ui.wiring import charged


def the_set(demo) -> gr.State:
    """The state that holds the page's facts."""
    return next(state for state in demo.blocks.values() if isinstance(getattr(state, "value", None), FactSet))


def function_of(event):
    """What an event calls, without what measures its time and fills its first parameters."""
    function = inspect.unwrap(event.fn)
    return getattr(function, "func", function)


def the_hash(demo) -> gr.Textbox:
    """The hidden text that holds the hash of what the page shows."""
    sha256 = the_set(demo).value.sha256
    return next(box for box in demo.blocks.values() if getattr(box, "value", None) == sha256)


def test_listeners_of_an_event_wait_in_turn(demo):
    # One that waited makes the page send the whole event again, to all listeners (Gradio 6.31):
    # two that wait, as listeners to `change` do if they are not told otherwise, keep each other
    # going for ever.
    waiting = defaultdict(list)
    for event in demo.fns.values():
        for component, name in event.targets:
            # the change of a State, and the page's opening, are sent to each listener by itself
            alone = name == "load" or isinstance(demo.blocks.get(component), gr.State)
            if event.trigger_mode == "always_last" and not alone:
                waiting[component, name].append(event.fn)
    assert waiting, "nothing waits: this test looks at the wrong thing"
    assert {event: listeners for event, listeners in waiting.items() if len(listeners) > 1} == {}
    # A late answer to an older wish would undo a newer one.
    facts = the_set(demo)
    functions = [(event.outputs, function_of(event)) for event in demo.fns.values() if event.fn]
    anchors = next(outputs for outputs, function in functions if function.__name__ == "_moved")
    for held in (facts, *anchors):
        writing = [event for event in demo.fns.values() if held in event.outputs]
        assert len(writing) > 3
        assert {str(event.fn) for event in writing if event.concurrency_id != "session"} == set()
    assert {event.concurrency_limit for event in demo.fns.values() if event.concurrency_id == "session"} == {1}
    # An older answer would say that there is no run, and hide the pictures of the one that is
    # shown by now.
    named = {function_of(event).__name__: event for event in demo.fns.values() if event.fn}
    groups = {(named[name].concurrency_id, named[name].concurrency_limit) for name in ("opened", "look")}
    assert groups == {("shown run", 1)}
    hidden = [event for event in demo.fns.values() if event.show_progress == "hidden"]
    assert len(hidden) > 50 and len({tuple(event.show_progress_on) for event in hidden}) == 1


def test_what_an_event_brings_is_whole_and_counted(demo):
    # Start compares them. A hash that was asked for later would be that of the set that a server
    # which forgot the page holds for it, and Start would train on that.
    facts, shown = the_set(demo), the_hash(demo)
    writing = [event for event in demo.fns.values() if facts in event.outputs]
    assert writing and {str(event.fn) for event in writing if shown not in event.outputs} == set()
    assert {str(event.fn) for event in demo.fns.values() if shown in event.outputs and event not in writing} == set()
    # Another set empties the list of scorings while the old choice is under way.
    first, second = (box for box in demo.blocks.values() if getattr(box, "label", None) in ("One", "against")
                     and not getattr(box, "elem_id", None))  # fmt: skip
    assert (first.choices, first.preprocess("as given"), second.preprocess("as given")) == ([], "as given", "as given")
    for name in ("fact", "form"):  # of Probe: another run's, or another fact's
        box = next(box for box in demo.blocks.values() if getattr(box, "elem_id", None) == name)
        assert (box.choices, box.preprocess("of before")) == ([], "of before")
    functions = [event.fn for event in demo.fns.values() if event.fn]
    threads = [one for one in functions if not (inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one))]
    assert len(threads) > 50
    assert [one for one in threads if one.__code__ is not charged(None, min).__code__] == []


def test_what_the_browser_keeps_is_found_again_after_a_restart(demo, tmp_path):
    def names_and_keys(demo):
        return [(one.storage_key, one.secret) for one in demo.blocks.values() if isinstance(one, gr.BrowserState)]

    assert len(names_and_keys(demo)) > 4
    assert names_and_keys(page.build(Worker(tmp_path))) == names_and_keys(demo)


def test_a_folder_of_runs_that_is_a_file_is_said_before_the_app_opens(tmp_path, monkeypatch):
    (tmp_path / "runs").write_text("a file", encoding="utf-8")
    monkeypatch.setenv("ADAPOP_RUNS", str(tmp_path / "runs"))
    with pytest.raises(RunError, match=r"runs is no folder.*ADAPOP_RUNS"):
        page.launch()
