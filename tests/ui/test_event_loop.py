"""The event loop answers everybody: no endpoint and no event of the page reads a file, asks a network or takes a hash
there."""

import asyncio
import sys
import time
from concurrent.futures import Future

import gradio as gr
import httpx
import pytest

from adapop import FactSet, Run
from adapop.errors import ConfigError
from adapop.paths import ROOT
from adapop.runs.examples import ASKED, PREFIX
from adapop.service.worker import Worker
from adapop.ui.event_inputs import misfit
from adapop.ui.middleware import visitor
from adapop.ui.run.configuration import config_of
from browsing import launched
from raised import raised

ENDPOINTS = ("score", "beta", "check", "start_run", "status", "frames", "stop", "probe", "report")
EXAMPLE = f"{PREFIX}{ASKED[0]}"
ROW = {"question": "Who wrote the book Hamlet?", "answer": "Shakespeare", "score": 9}
UNSCORED = {"question": "Who wrote the book Hamlet?", "answer": "Shakespeare"}  # which no run begins with
ADA = {"X-Forwarded-For": "203.0.113.1"}
READS = {"open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.remove", "socket.getaddrinfo",
         "subprocess.Popen"}  # fmt: skip
APP = str(ROOT / "adapop")
PASSED = ("middleware.py", "served.py", "ui/queue.py")  # what gradio reads itself, it reads below these
SECRET = "Zanzibar-Quux"


class Unmoved:
    """A line in which nothing's turn comes: what is looked at is what happens before."""

    questions = 0

    def question(self, *_, **__):
        return Future()

    run = question


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    worker = Worker(tmp_path_factory.mktemp("runs"), sender=visitor)
    worker._line = Unmoved()
    with launched(worker) as url:
        yield url


@pytest.fixture
def reads(monkeypatch):
    """Lines of the app in which the loop's thread reads a file, asks a network, or takes a set's hash or a run's facts,
    while the test goes on."""
    places, watching = [], [True]

    def watch(event, _):
        if watching and event in READS and asyncio._get_running_loop() is not None:
            frame = sys._getframe(1)
            if place := _own_place(frame):
                places.append(f"{event}: {place}")

    def recording(name, method):
        def wrapper(*values, **named):
            if asyncio._get_running_loop() is not None:
                places.append(name)
            return method(*values, **named)

        return wrapper

    for owner, name in (*((Run, name) for name in ("facts", "config", "last_epoch")), (FactSet, "sha256")):
        got = getattr(owner, name)  # what takes time and reads nothing: a hash, and what was read before
        method = got.fget if isinstance(got, property) else got.func
        monkeypatch.setattr(owner, name, property(recording(name, method)))
    sys.addaudithook(watch)
    yield places
    watching.clear()


def _own_place(frame):
    """The innermost line of the app that leads to a frame; None if there is none but those that all requests pass."""
    while frame and not frame.f_code.co_filename.startswith(APP):
        frame = frame.f_back
    passed = frame is None or frame.f_code.co_filename.endswith(PASSED)
    return None if passed else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def every_call(address):
    """Calls every endpoint and sends every event of the page, with what the page itself holds."""
    values = {
        "status": [EXAMPLE], "frames": [EXAMPLE], "report": [EXAMPLE], "stop": [EXAMPLE],
        "probe": [EXAMPLE, "Who?", "x"],
        "check": ["people"], "start_run": [[UNSCORED]], "score": [[ROW], "given"], "beta": [[ROW]]}  # fmt: skip
    assert set(values) == set(ENDPOINTS)
    for name, data in values.items():
        assert httpx.post(f"{address}gradio_api/call/{name}", json={"data": data}, headers=ADA).status_code == 200
    config = httpx.get(f"{address}config", headers=ADA).json()
    held = {one["id"]: one["props"].get("value") for one in config["components"]}
    for event in (one for one in config["dependencies"] if one["backend_fn"] and one["api_visibility"] != "public"):
        data = [EXAMPLE if held[number] == "" else held[number] for number in event["inputs"]]
        body = {"data": data, "fn_index": event["id"], "session_hash": "ada", "event_data": {"index": [0, 0]}}
        httpx.post(f"{address}gradio_api/queue/join", json=body, headers=ADA)
    return len(config["dependencies"])


@pytest.mark.slow
def test_nothing_of_ours_is_read_in_the_loop(address, reads):
    assert every_call(address) > 100
    time.sleep(5)
    assert reads == []


def at_first(component):
    """A component's value as its page sends it before anybody acts."""
    return None if component.stateful else component.postprocess(component.value)


def test_values_fit_the_events(demo):
    events = [event for event in demo.fns.values() if event.api_visibility != "public"]
    for event in events:
        assert not misfit(event, [at_first(one) for one in event.inputs])
    for event in events:
        right = [at_first(one) for one in event.inputs]
        assert "got" in misfit(event, [*right, None])
        assert not right or "got" in misfit(event, right[:-1])


@pytest.mark.parametrize(("component", "good", "bad"), [
    (gr.Number(1.0), (None, 0, -1.5, 2**63 - 1), (True, "7", [], {}, 10**30, float("nan"), float("inf"))),
    (gr.Slider(1, 10), (3, 0.5), ("3", [3], False)), (gr.Textbox(), (None, "", SECRET), (7, [], {"a": SECRET})),
    (gr.Checkbox(), (True, False), (None, 1, "yes")),
    (gr.Dropdown(["a"], value="a"), ("a", 7), (None, [], ["a"], {}, True)),
    (gr.Dropdown(["a"], value=None), (None, "a"), ({}, [None])),
    (gr.Dropdown(["a"], value="a", allow_custom_value=True), (None, SECRET), ([SECRET],)),
    (gr.Dropdown(["a"], value=["a"], multiselect=True), (None, [], ["a"]), ("a", [None], [{}], {})),
    (gr.Radio(["a"], value="a"), ("a",), (None, [], {})),
    (gr.BrowserState({}), (None, {}, {"set": 1}), ([], "", 0)), (gr.BrowserState(""), (None, SECRET), ([], {}, 0)),
    (gr.BrowserState([]), (None, [], [{}]), ("", {}, True)), (gr.HTML(), (None, {}, "x", 7), ()),
])  # fmt: skip
def test_the_kinds_of_each_component(component, good, bad):
    with gr.Blocks() as demo:
        component.render()
        gr.Button().click(lambda value: None, component, None, api_visibility="private")
    (event,) = demo.fns.values()
    assert [value for value in good if misfit(event, [value])] == []
    assert [value for value in bad if not misfit(event, [value])] == []
    assert all(SECRET not in misfit(event, [value]) for value in bad)


@pytest.mark.parametrize("kept", [["sandbox"], [{}] * 40, [[SECRET]] * 17])
def test_settings_that_another_version_kept_are_refused_in_words(kept):
    raised(ConfigError, "not those of tab 3", config_of, kept)
