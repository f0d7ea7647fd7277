import inspect
from collections import defaultdict
from concurrent.futures import Future
from threading import Event

import gradio as gr
import pytest

from adapop import make_config
from adapop.errors import AdaPopError, ModelError, RunError, Stopped
from adapop.progress import Progress, started
from adapop.runs.run import create_run
from adapop.service.worker import Worker
from adapop.ui import page
from adapop.ui.events import keep_settings
from adapop.ui.probe import leaks
from adapop.ui.run import launch
from adapop.ui.session import KEPT, KeptId
from adapop.ui.wiring import error_of, followed
from components import stand_ins
from raised import raised
from stepping import stepped


def test_an_error_that_nobody_foresaw_has_words_and_a_place_in_the_log_without_the_users_text(caplog):
    typed = "the user's secret"

    def work(progress):
        raise ValueError(typed)

    future, _ = started(work)
    assert isinstance(future.exception(5), ValueError)
    error = error_of(future)
    assert isinstance(error, AdaPopError) and "ValueError" in str(error)
    assert "ValueError" in caplog.text and "in work" in caplog.text, "where it failed"
    assert typed not in str(error) + caplog.text


def test_a_page_sees_how_far_work_is_and_stops_it():
    def work(progress):
        progress.say("half way")
        begun.wait(5)

    begun = Event()
    future, progress = started(work)
    lines = stepped(followed(future, progress, "Beginning …"))
    while (line := next(lines)) == "Beginning …":
        pass
    assert line == "half way"
    begun.set()
    assert set(lines) <= {"half way"} and future.done()
    future, progress = started(lambda progress: progress.wait(30))
    lines = stepped(followed(future, progress))
    assert next(lines)
    lines.close()
    assert isinstance(future.exception(5), Stopped)


@pytest.mark.parametrize(
    ("error", "probes", "toast"),
    [(ModelError("gone"), [], "gone"), (ModelError("gone"), None, "gone"), (RuntimeError("x"), None, "RuntimeError"),
     (Stopped("Stopped."), None, "Stopped"), (Stopped("Stopped."), [], "")],
)  # fmt: skip
def test_a_probing_that_fails_says_so_and_its_buttons_work_again(small, tmp_path, error, probes, toast):
    """An earlier probing's result stays on the screen, and does not stand for the one that failed."""
    run = create_run(make_config(), small, None, tmp_path)
    run.checkpoint(1).mkdir()
    if probes is not None:
        run.save_probes(probes)
    screen, worker, future = stand_ins(leaks.Leaks), Worker(tmp_path), Future()
    future.set_exception(error)
    worker.work_on = lambda run, job, plan: (future, Progress())
    steps = stepped(screen.probe(worker, run.id, 8))
    work = screen.work
    updates = next(steps)
    assert (updates[work.start].interactive, updates[work.stop].visible, updates[work.at_work]) == (True, False, None)
    assert updates[screen.group].interactive, "what is shown of it may be chosen again"
    busy = work.busy(Progress())
    assert (busy[work.start].interactive, busy[work.stop].visible) == (False, True), "Stop is there to stop something"
    raised(gr.Error if toast else StopIteration, toast or None, next, steps)


def the_set(demo) -> gr.State:
    """The state that holds the page's facts."""
    return next(state for state in demo.blocks.values() if isinstance(getattr(state, "value", None), KeptId))


def function_of(event):
    """What an event calls, without what measures its time and fills its first parameters."""
    function = inspect.unwrap(event.fn)
    return getattr(function, "func", function)


def test_listeners_of_an_event_wait_in_turn(demo):
    # One that waited makes the page send the whole event again, to all listeners (Gradio 6.31):
    # two that wait, as listeners to `change` do if they are not told otherwise, keep each other
    # going for ever.
    waiting = defaultdict(list)
    for event in demo.fns.values():
        for component, name in event.targets:
            # the change of a State, the page's opening and an event's end are sent to each listener by itself
            alone = name in ("load", "then") or isinstance(demo.blocks.get(component), gr.State)
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


def test_what_is_shown_follows_all_that_it_depends_on(demo):
    events = defaultdict(list)
    for event in demo.fns.values():
        events[function_of(event).__name__ if event.fn else ""].append(event)
    facts = the_set(demo)
    (anchors,) = [one for one in events["_moved"][0].outputs if isinstance(one, gr.State)]
    model = next(box for box in demo.blocks.values() if getattr(box, "elem_id", None) == "model")
    ((table,), (plan,), (report,)) = (events[name] for name in ("table_of", "plan", "make"))
    assert (anchors._id, "change") in table.targets
    assert {(facts._id, "change"), (model._id, "change")} <= {*plan.targets}
    assert {one.trigger_mode for one in (table, plan, report)} == {"multiple"}, "none of them is dropped"
    over = next(box for box in demo.blocks.values() if getattr(box, "elem_id", None) == "lay-over")
    assert (over._id, "input") in events["lay_over"][0].targets and over in events["to_lay_over"][0].outputs
    assert any(over in one.inputs for one in events["show"]), "it stays while a run goes on"
    # Another run, or another set, may be open when an answer comes.
    for asked, shown in (("probe", ["show_group", "ways_of"]), ("recovered", ["about_probe"])):
        then = [one for one in demo.fns.values() if one.trigger_after == events[asked][0]._id]
        assert [function_of(one).__name__ for one in then] == shown
        assert then[0].outputs[-1] not in events[asked][0].outputs
    checks = {one._id for one in events["looked"] if one.fn.__module__ == launch.__name__}
    cancelled = {place for one in demo.fns.values() if (facts._id, "change") in one.targets for place in one.cancels}
    assert cancelled == checks and len(checks) == 2


def test_what_an_event_brings_is_whole_and_counted(demo):
    # Start compares them. A hash that was asked for later would be that of the set that a server
    # which forgot the page holds for it, and Start would train on that.
    facts = the_set(demo)
    shown = KEPT.value_of(facts.value).sha256
    hash_box = next(box for box in demo.blocks.values() if getattr(box, "value", None) == shown)
    writing = [event for event in demo.fns.values() if facts in event.outputs]
    assert writing and {str(event.fn) for event in writing if hash_box not in event.outputs} == set()
    assert {str(event.fn) for event in demo.fns.values() if hash_box in event.outputs and event not in writing} == set()
    # Another set empties the list of scorings while the old choice is under way.
    names = ("First source", "Second source")
    first, second = (box for box in demo.blocks.values() if getattr(box, "label", None) in names
                     and not getattr(box, "elem_id", None))  # fmt: skip
    assert (first.choices, first.preprocess("as given"), second.preprocess("as given")) == ([], "as given", "as given")
    for name in ("fact", "form"):  # of Probe: another run's, or another fact's
        box = next(box for box in demo.blocks.values() if getattr(box, "elem_id", None) == name)
        assert (box.choices, box.preprocess("of before")) == ([], "of before")
    functions = [event.fn for event in demo.fns.values() if event.fn]
    assert len(functions) > 100 and {next(iter(inspect.signature(one).parameters)) for one in functions} == {"request_"}


def test_what_the_browser_keeps_is_found_again_after_a_restart(demo, tmp_path):
    def names_and_keys(demo):
        return [(one.storage_key, one.secret) for one in demo.blocks.values() if isinstance(one, gr.BrowserState)]

    assert len(names_and_keys(demo)) > 4
    assert names_and_keys(page.build(Worker(tmp_path))) == names_and_keys(demo)


def test_a_folder_of_runs_that_is_a_file_is_said_before_the_app_opens(tmp_path, monkeypatch):
    (tmp_path / "runs").write_text("a file", encoding="utf-8")
    monkeypatch.setenv("ADAPOP_RUNS", str(tmp_path / "runs"))
    raised(RunError, r"runs is not a folder.*ADAPOP_RUNS", page.launch)


def test_kept_settings_are_those_that_gradio_asks_for_and_no_page_changes_them_for_another():
    with gr.Blocks() as plain:
        box = gr.Dropdown(["a", "b"], label="Letter", info="one")
        gr.Button("go", elem_id="go").click(lambda: gr.Dropdown(["c"]), None, box)
    asked = plain.get_config_file()["components"]
    keep_settings(plain)
    assert plain.get_config_file()["components"] == asked
    box.get_config()["label"] = "another page's"
    assert box.get_config()["label"] == "Letter"
