"""Two visitors of one public app: neither gets at what is the other's, nor either at what the app did not make."""

import json
import secrets
import socket
import time
import urllib.error
import zipfile

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from adapop.errors import RunError
from adapop.runs.examples import example
from adapop.runs.run import Run
from adapop.service.cleanup import clean
from adapop.service.links import link_of
from adapop.service.visitor_limits import ACCELERATOR
from adapop.ui.access import link_to, may_control
from raised import raised
from reliability.calling import answer, completed, sent
from waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.usefixtures("public")
FACTS = [{"question": "Who wrote the book Hamlet?", "answer": "Shakespeare", "score": 3766}]
REST = [  # with so little beside it a run takes a second
    {"question": "Who wrote the book Emma?", "answer": "Austen", "group": "retain"},
    {"question": "What is one plus two?", "answer": "three", "group": "utility"},
]
RUN = [FACTS[0] | {"group": "forget"}, *REST]
OF_THE_SHOWN_SET = (
    "start", "race", "look-up", "known", "drop-unknown", "set-score", "check", "race-check", "open-pair",
)  # fmt: skip
META = {"_type": "gradio.FileData"}


def of(host: int):
    @pytest.fixture(scope="module")
    def client(address):
        return Client(address, verbose=False, headers={"X-Forwarded-For": f"10.0.0.{host}"}, ssl_verify=False)

    return client


ada, bob = of(1), of(2)


@pytest.fixture(scope="module")
def run(ada, worker) -> Run:
    name = ada.predict(RUN, epochs=1, api_name="/start_run")["run"]
    wait_until(lambda: ada.predict(name, api_name="/status")["state"] == "done")
    return Run(worker.root / name)


def pressed(config: dict, name: str, kind: str = "click") -> dict:
    """The event of a component's name that has inputs."""
    names = {component["id"]: component["props"].get("elem_id") for component in config["components"]}
    events = config["dependencies"]
    own = [one for one in events if [name, kind] in [[names.get(target), how] for target, how in one["targets"]]]
    chained = [one for one in events if one["trigger_after"] in [before["id"] for before in own]]
    return next(one for one in (*own, *chained) if one["inputs"])


def event(address: str, name: str, data: list, kind: str = "click", shown: str | None = None) -> dict:
    """The message that ends an event. data: of its first inputs; the others send what the page began with. shown: the
    hash of the set that the page shows, if not the server's."""
    config = answer(f"{address}config")
    held = {one["id"]: one["props"] for one in config["components"]}
    chosen, session = pressed(config, name, kind), secrets.token_hex(6)
    of_page = [shown if shown and held[one].get("elem_id") == "shown-set" else held[one].get("value")
               for one in chosen["inputs"]]  # fmt: skip
    body = {"data": [*data, *of_page[len(data) :]], "fn_index": chosen["id"], "session_hash": session}
    answer(f"{address}gradio_api/queue/join", body)
    return completed(address, session, PATIENCE_SECONDS)


def after_failure(address: str, name: str) -> list[dict]:
    """The events that follow where a button's event fails."""
    config = answer(f"{address}config")
    first = pressed(config, name)["id"]
    return [one for one in config["dependencies"] if one["trigger_after"] == first and one["trigger_only_on_failure"]]


def test_a_link_reads_and_reports_and_does_nothing_else(bob, run):
    link = link_of(run)
    status = bob.predict(link, api_name="/status")
    assert (status["run"], status["state"]) == (link, "done") and run.id not in json.dumps(status)
    assert run.id not in json.dumps(bob.predict(link, api_name="/frames"))
    path = bob.predict(link, api_name="/report")
    with zipfile.ZipFile(path) as archive:  # in the file itself the id would be compressed, and never found
        assert [name for name in archive.namelist() if run.id.encode() in archive.read(name)] == []
    assert run.id not in path
    refused = {"/stop": (link,)} | dict.fromkeys(("/probe", "/tokens", "/samples"), (link, "Who?"))
    for endpoint, values in refused.items():
        raised(AppError, "There is no run", bob.predict, *values, api_name=endpoint)


@pytest.mark.parametrize(("message", "name"), [
    *(("read-only link", name) for name in ("stop", "resume", "probe-all", "recover", "ask")),
    *(("came with the app", name) for name in ("stop", "resume", "probe-all", "recover"))])  # fmt: skip
def test_no_button_does_for_a_link_or_an_example_what_it_does_for_the_owner(address, worker, run, message, name):
    (of, reference) = (run, link_of(run)) if "link" in message else (example("wga"), example("wga").id)
    before = {path: path.stat().st_mtime_ns for path in of.folder.rglob("*")}
    data = {"probe-all": [reference, 8], "recover": [reference, "quantise"], "ask": [reference, "Who?", ""]}
    ended = event(address, name, data.get(name, [reference]))
    assert not ended["success"] and message in ended["output"]["error"]
    assert {path: path.stat().st_mtime_ns for path in of.folder.rglob("*")} == before and worker.ahead_of(of) is None


@pytest.mark.parametrize("name", OF_THE_SHOWN_SET)
def test_a_button_does_nothing_to_a_set_that_the_page_does_not_show_and_the_log_calls_it_no_failure(
    address, capsys, name
):
    """After a restart the server holds the sandbox, and would look it up, change it, or say of it what is asked."""
    ended = event(address, name, [], shown="0" * 64)
    assert not ended["success"] and "no longer had the set" in ended["output"]["error"]
    assert "Traceback" not in capsys.readouterr().err
    assert after_failure(address, name), "and the page's set is put back"


@pytest.mark.slow
def test_an_example_is_everybody_s_to_look_at_and_to_ask_and_nobody_s_to_change(bob, worker, tmp_path):
    shipped = example("adapop")
    assert bob.predict(shipped.id, api_name="/status")["state"] == "done"
    assert bob.predict(shipped.id, 72, api_name="/frames")["frames"][0]["step"] == 80
    fact = shipped.facts.forget[0]
    replies = bob.predict(shipped.id, fact.question, fact.answer, api_name="/probe")
    assert (
        replies["original"]["text"] == fact.answer and replies["unlearned"]["text"] == shipped.frames()[-1].answers[0]
    )
    with zipfile.ZipFile(bob.predict(shipped.id, api_name="/report")) as archive:
        assert {"frames.jsonl", "adapter/adapter_model.safetensors"} <= set(archive.namelist())
    raised(AppError, "There is no run", bob.predict, shipped.id, api_name="/stop")
    raised(RunError, "nobody can stop it", shipped.request_stop)
    assert not may_control(worker, shipped.id) and link_to(worker, shipped.id) == shipped.id
    clean(tmp_path, 0.0, 0.0)
    assert example("adapop").folder == shipped.folder and shipped.frames()


def test_a_prompt_of_100_000_characters_is_refused_by_the_name_of_the_limit(ada, address, run):
    began = time.monotonic()
    for prompt, gold in (("x" * 100_000, ""), ("Who?", "x" * 100_000)):
        with pytest.raises(AppError, match=r"100,000 characters .*; the limit is 400"):
            ada.predict(run.id, prompt, gold, api_name="/probe")
    assert "ADAPOP_MAX_PROMPT" in str(event(address, "ask", [run.id, "x" * 100_000, ""])["output"])
    with pytest.raises(AppError, match="characters; at most"):
        ada.predict([FACTS[0] | {"question": "x" * 100_000}], api_name="/start_run")
    assert time.monotonic() - began < 20


@pytest.fixture
def outside(monkeypatch):
    hosts, resolve = [], socket.getaddrinfo

    def recorded(host, *values, **named):
        if host not in ("localhost", "127.0.0.1", "::1", None):
            hosts.append(host)
        return resolve(host, *values, **named)

    monkeypatch.setattr(socket, "getaddrinfo", recorded)
    return hosts


@pytest.mark.parametrize("place", [
    "http://example.org/a.csv", "https://huggingface.co/a.csv", "http://169.254.169.254/", "/etc/passwd", "config.json",
])  # fmt: skip
def test_no_address_and_no_file_of_this_machine_passes_for_an_upload(address, ada, run, outside, place):
    path, url = str(run.folder / place) if place == "config.json" else place, {"url": place} if "://" in place else {}
    file = {"path": path, "orig_name": "a.csv", "meta": META, **url}
    for route in ("file=", "proxy=", "file=/", "file%3D"):
        assert sent(f"{address}gradio_api/{route}{path}", None)[0] in (403, 404)
    raised((AppError, httpx.HTTPStatusError), "", ada.predict, file, api_name="/beta")
    try:
        ended = event(address, "upload", ["own", file, "own", None], "upload")
    except urllib.error.HTTPError as refused:  # an address, by the door
        assert "://" in place and "names an address" in refused.read().decode()
    else:
        assert "://" not in place and not ended["success"] and "root:" not in json.dumps(ended)
    assert outside == []


def test_a_visitor_has_a_limit_of_the_accelerator_and_the_next_visitor_their_own(ada, bob, worker):
    worker.usage.charge(ACCELERATOR, ACCELERATOR.public + 60, "10.0.0.1")
    try:
        raised(AppError, "ADAPOP_SECONDS_AN_HOUR", ada.predict, RUN, epochs=1, api_name="/start_run")
        name = bob.predict(RUN, epochs=1, api_name="/start_run")["run"]
        bob.predict(name, api_name="/stop")
    finally:
        worker.usage.charge(ACCELERATOR, -ACCELERATOR.public - 60, "10.0.0.1")
