"""The event loop answers everybody: no endpoint and no event of the page reads a file, asks a network or takes a hash
there."""

import asyncio
import sys
import time
from concurrent.futures import Future

import httpx
import pytest

from adapop import FactSet, Run
from adapop.errors import ConfigError
from adapop.paths import ROOT
from adapop.runs.examples import ASKED, PREFIX
from adapop.service.worker import Worker
from adapop.ui.run.configuration import config_of
from adapop.ui.visitors import visitor
from browsing import launched
from raised import raised

ENDPOINTS = ("score", "beta", "check", "start_run", "status", "frames", "stop", "probe", "tokens", "samples", "report")
EXAMPLE = f"{PREFIX}{ASKED[0]}"
ROW = {"question": "Who wrote the book Hamlet?", "answer": "Shakespeare", "score": 9}
UNSCORED = {"question": "Who wrote the book Hamlet?", "answer": "Shakespeare"}  # which no run begins with
ADA = {"X-Forwarded-For": "203.0.113.1"}
READS = {"open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.remove", "socket.getaddrinfo",
         "subprocess.Popen"}  # fmt: skip
APP = str(ROOT / "adapop")
PASSED = ("door/gate.py", "door/pages.py", "door/streams.py")  # what gradio reads itself, it reads below these
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


def every_call(client):
    """Calls every endpoint and sends every event of the page, with what the page itself holds."""
    run, asked = {"run": EXAMPLE}, {"run": EXAMPLE, "prompt": "Who?"}
    values = {
        "status": run, "frames": run, "report": run, "stop": run, "probe": asked | {"gold": "x"}, "tokens": asked,
        "samples": asked, "check": {"facts": "people"}, "start_run": {"facts": [UNSCORED]},
        "score": {"facts": [ROW], "proxy": "given"}, "beta": {"facts": [ROW]}}  # fmt: skip
    assert set(values) == set(ENDPOINTS)
    for name, named in values.items():
        assert client.post(f"gradio_api/call/v2/{name}", json=named).status_code == 200
    config = client.get("config").json()
    held = {one["id"]: one["props"].get("value") for one in config["components"]}
    for event in (one for one in config["dependencies"] if one["backend_fn"] and one["api_visibility"] != "public"):
        data = [EXAMPLE if held[number] == "" else held[number] for number in event["inputs"]]
        body = {
            "data": data,
            "fn_index": event["id"],
            "session_hash": f"ada{event['id']}",
            "event_data": {"index": [0, 0]},
        }
        client.post("gradio_api/queue/join", json=body)
    return len(config["dependencies"])


@pytest.mark.slow
def test_nothing_of_ours_is_read_in_the_loop(address, reads):
    with httpx.Client(base_url=address, headers=ADA, timeout=60) as client:
        assert every_call(client) > 100
    time.sleep(3)  # until what was asked for is looked at
    assert reads == []


@pytest.mark.parametrize("kept", [["sandbox"], [{}] * 40, [[SECRET]] * 17])
def test_settings_that_another_version_kept_are_refused_in_words(kept):
    raised(ConfigError, "not those of this version", config_of, kept)
