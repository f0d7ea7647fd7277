import asyncio
import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import gradio as gr
import httpx
import pytest
from starlette.middleware import Middleware

from adapop.errors import LimitError
from adapop.limits import AT_WORK, EVENT_BYTES, HELD, REQUESTS, UNREAD
from adapop.service.visitor_limits import Ledger
from adapop.ui import queue as queue_of_events
from adapop.ui import visitors
from adapop.ui.middleware import Gate
from adapop.ui.queue import CROWD_IN_MEMORY, GROUP, install
from waiting import wait_until

ADA, BOB = {"X-Forwarded-For": "203.0.113.1"}, {"X-Forwarded-For": "203.0.113.2"}
SLOW, TURN, LATER, GROUPED, STATED, QUIET = "slow", "turn", "later", "grouped", "stated", "quiet"


@pytest.fixture(autouse=True)
def public(monkeypatch):
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    monkeypatch.setattr(visitors, "REFUSAL_SECONDS", 0.0)
    monkeypatch.setattr(queue_of_events, "SWEEP_SECONDS", 0.05)
    monkeypatch.setenv(REQUESTS.name, "100000")


@pytest.fixture
def app():
    """What the app's functions did (`said`), when they may end (`go_on`), and its queue."""
    return SimpleNamespace(said=[], go_on=threading.Event(), queue=None)


@pytest.fixture
def url(app):
    """The address of an app with one function of each kind."""

    def slow(text):
        app.said.append(f"begin {text}")
        app.go_on.wait(60)
        app.said.append(f"end {text}")
        return text

    async def later(text):
        app.said.append(f"later {text}")
        while not app.go_on.is_set():
            await asyncio.sleep(0.01)
        return text

    def quiet(text, event: gr.EventData):
        app.said.append(f"{text} {getattr(event, 'value', None)}")

    with gr.Blocks() as demo:
        text, state = gr.Textbox(), gr.State(0)
        gr.Button().click(slow, text, text, api_name=SLOW, concurrency_limit=None)
        gr.Button().click(slow, text, text, api_name=TURN, concurrency_limit=1)
        gr.Button().click(later, text, text, api_name=LATER, concurrency_limit=None)
        gr.Button().click(later, text, text, api_name=GROUPED)  # of the default limit, as most events of the page
        gr.Button().click(lambda text, state: (text, state + 1), [text, state], [text, state], api_name=STATED)
        gr.Button().click(quiet, text, None, api_name=QUIET, api_visibility="private")
    gate = {"middleware": [Middleware(Gate, Ledger())]}
    _, url, _ = install(demo).launch(prevent_thread_lock=True, quiet=True, app_kwargs=gate, ssr_mode=False)
    app.queue = demo._queue
    yield url
    app.go_on.set()
    demo.close()


def post(url, name, text, who=ADA, session=None):
    """The HTTP reply to an event, or to a call without a page."""
    if session is None:
        return httpx.post(f"{url}gradio_api/call/{name}", json={"data": [text]}, headers=who)
    return join(url, name, [text, None][: 2 if name == STATED else 1], who, session_hash=session)


def join(url, name, data, who=ADA, **more):
    """The HTTP reply to an event of a page."""
    config = httpx.get(f"{url}config", headers=ADA).json()
    number = next(one["id"] for one in config["dependencies"] if one["api_name"] == name)
    body = {"data": data, "fn_index": number, "session_hash": "ada"} | more
    return httpx.post(f"{url}gradio_api/queue/join", json=body, headers=who)


def answer(url, name, reply, who=ADA) -> str:
    with httpx.stream("GET", f"{url}gradio_api/call/{name}/{reply.json()['event_id']}", headers=who) as stream:
        lines = [line for line in stream.iter_lines() if line.startswith("data: ")]
    return json.loads(lines[-1].removeprefix("data: "))[0]


def test_a_visitor_with_many_events_at_work_does_not_hold_up_another(url, app):
    """Those that only wait do not count: they hold no thread."""
    assert {post(url, SLOW, f"ada {number}").status_code for number in range(20)} == {200}
    wait_until(lambda: len(app.said) == AT_WORK.public)
    assert {post(url, LATER, "ada waits").status_code for _ in range(20)} == {200}
    assert post(url, SLOW, "bob", BOB).status_code == 200
    wait_until(lambda: "begin bob" in app.said)
    assert len([said for said in app.said if "begin" in said]) == AT_WORK.public + 1
    app.go_on.set()
    wait_until(lambda: len(app.said) == 62)


@pytest.mark.parametrize(("public", "most"), [("1", GROUP // 2), ("0", GROUP)])
def test_a_visitor_holds_at_most_half_of_a_group_and_a_user_at_home_all_of_it(url, app, monkeypatch, public, most):
    monkeypatch.setenv("ADAPOP_PUBLIC", public)
    assert {post(url, GROUPED, f"ada {number}").status_code for number in range(12)} == {200}
    wait_until(lambda: len(app.said) == most)
    if public == "1":
        assert post(url, GROUPED, "bob", BOB).status_code == 200
        wait_until(lambda: "later bob" in app.said)
        assert len(app.said) == most + 1


def test_a_page_is_answered_in_its_order_and_another_page_beside_it(url, app):
    for number in range(3):
        post(url, TURN, f"first {number}", session="first")
    post(url, TURN, "second", session="second")
    wait_until(lambda: len(app.said) == 2)
    assert app.said == ["begin first 0", "begin second"]
    app.go_on.set()
    wait_until(lambda: len(app.said) == 8)
    in_order = [f"{what} first {number}" for number in range(3) for what in ("begin", "end")]
    assert [said for said in app.said if "first" in said] == in_order


@pytest.mark.parametrize(("sender", "texts"), [("app", ["first", "second"]), ("api", ["first"])])
def test_the_stream_of_a_page_stays_open_for_the_next_event_and_that_of_a_program_does_not(
    url, app, monkeypatch, sender, texts
):
    """A browser that has not yet read that its stream is closed would never fetch the second answer."""
    monkeypatch.setattr(queue_of_events, "STREAM_SECONDS", 0.5)
    who = ADA | {"x-gradio-user": sender}
    post(url, STATED, "first", who, session="ada")
    came, kinds = [], []
    place = f"{url}gradio_api/queue/data?session_hash=ada"
    with httpx.stream("GET", place, headers=who, timeout=20) as stream:
        for line in stream.iter_lines():
            message = json.loads(line.removeprefix("data: ") or "{}")
            kinds.append(message.get("msg") or kinds[-1])
            if data := message.get("output", {}).get("data"):
                came.append(data[0])
                if len(came) < len(texts):
                    post(url, STATED, texts[len(came)], who, session="ada")
    assert came == texts and kinds[-1] == "close_stream"
    assert not app.queue.pending_event_ids_session["ada"]


def test_too_many_events_of_a_visitor_are_refused_and_not_those_of_another(url, monkeypatch):
    monkeypatch.setenv(EVENT_BYTES.name, "0.61")  # of 0.02 at least
    with ThreadPoolExecutor(8) as posts:
        codes = list(posts.map(lambda number: post(url, SLOW, "x").status_code, range(40)))
    assert (codes.count(200), codes.count(429)) == (30, 10)
    assert EVENT_BYTES.name in post(url, SLOW, "x").json()["detail"]
    assert post(url, SLOW, "x", BOB).status_code == 200


def test_many_bytes_that_wait_are_refused(url, app):
    large = "x" * 400_000
    assert {post(url, LATER, large).status_code for _ in range(int(EVENT_BYTES.public / 0.4) - 1)} == {200}
    assert post(url, LATER, large).status_code == 429
    assert post(url, LATER, "small").status_code == 200
    assert post(url, LATER, large, BOB).status_code == 200
    app.go_on.set()
    wait_until(lambda: post(url, LATER, large).status_code == 200)


def test_answers_that_nobody_collects_are_counted_and_dropped(url, app, monkeypatch):
    monkeypatch.setenv(UNREAD.name, "60")
    replies = []
    while (reply := post(url, STATED, "x")).status_code == 200:  # three messages each
        replies.append(reply)
        wait_until(lambda: not app.queue.event_ids_to_events)
        assert len(replies) <= 60
    assert reply.status_code == 429 and UNREAD.name in reply.json()["detail"]
    assert answer(url, STATED, replies[-1]) == "x" and post(url, STATED, "x").status_code == 200
    wait_until(lambda: not app.queue.event_ids_to_events)
    asyncio.run_coroutine_threadsafe(app.queue.sweep(time.monotonic()), app.queue._sweeper.get_loop()).result(10)
    assert not app.queue.pending_messages_per_session and not app.queue.pending_event_ids_session
    assert post(url, STATED, "x").status_code == 200


def test_values_that_no_component_sends_are_refused_before_they_wait(url, app):
    for data in ([["forged words"]], [], ["x", "y"]):
        refused = join(url, QUIET, data)
        assert refused.status_code == 400 and "his event" in refused.text and "forged words" not in refused.text
    assert not app.queue.event_ids_to_events
    assert join(url, QUIET, ["x"], event_data=7).status_code == 200
    wait_until(lambda: app.said == ["x None"])


@pytest.mark.parametrize("name", [SLOW, QUIET])
def test_a_page_with_a_long_name_is_refused_as_the_name_stays_in_memory(url, app, name):
    page = {"session_hash": "h" * 400_000}
    called = httpx.post(f"{url}gradio_api/call/{name}", json={"data": ["x"], **page}, headers=ADA)
    for refused in (join(url, name, ["x"], **page), called):
        assert refused.status_code in (400, 404) and len(refused.text) < 200
    assert not app.queue.event_ids_to_events and not app.queue.pending_messages_per_session


def test_one_with_too_much_does_not_fill_the_place_of_all(monkeypatch):
    monkeypatch.setenv(UNREAD.name, "10")
    queue_of_events._check(UNREAD, Counter({"ada": 1_000, "bob": 1}), "bob")
    with pytest.raises(LimitError, match="of all visitors together"):
        queue_of_events._check(UNREAD, Counter(map(str, list(range(9)) * 10)) + Counter({"bob": 1}), "bob")


def test_a_call_without_a_page_leaves_nothing_and_pages_are_bounded_by_visitor(url, app, monkeypatch):
    monkeypatch.setenv(HELD.name, "0.35")  # a page takes 0.1
    assert post(url, STATED, "x", BOB, session="bobs").status_code == 200
    wait_until(lambda: not app.queue.event_ids_to_events)
    sessions = app.queue.server_app.state_holder.session_data
    for _ in range(5):
        answer(url, STATED, post(url, STATED, "x"))
    for number in range(5):
        assert post(url, STATED, "x", session=f"ada{number}").status_code == 200
        wait_until(lambda: not app.queue.event_ids_to_events)
    assert list(sessions) == ["bobs", "ada2", "ada3", "ada4"]


def test_what_all_pages_hold_is_bounded_and_the_longest_unused_of_all_goes_first(url, app, monkeypatch):
    monkeypatch.setattr(queue_of_events, "held_megabytes", lambda pages: 6.0 * len(list(pages)))
    monkeypatch.setattr(queue_of_events, "STORE", SimpleNamespace(megabytes=lambda: 15 * CROWD_IN_MEMORY + 7))
    monkeypatch.setenv(HELD.name, "15")
    left = [["bob"], ["ada"], ["eve"], ["ann"]]
    for number, (session,) in enumerate(left):
        who = {"X-Forwarded-For": f"203.0.113.{number}"}
        assert post(url, STATED, "x", who, session=session).status_code == 200
        wait_until(lambda: not app.queue.event_ids_to_events)
    assert list(app.queue.server_app.state_holder.session_data) == left[-1]


def test_memory_that_grew_is_given_back_and_looked_for_once(url, monkeypatch):
    """Also where no event was worked on: pages and files take memory too."""
    given, now = [], [10**12]  # more than this process has
    monkeypatch.setattr(queue_of_events, "memory", lambda: now[0])
    monkeypatch.setattr(queue_of_events, "return_memory", lambda: given.append(now[0]))
    wait_until(lambda: given[-1:] == [10**12])
    time.sleep(0.3)  # until the app has noted what it has now
    now[0] = 2 * 10**12
    wait_until(lambda: given[-1:] == [2 * 10**12])
    time.sleep(0.3)
    assert given[-2:] != [2 * 10**12] * 2


@pytest.mark.slow
def test_who_is_refused_waits_before_the_next_try_and_nobody_else_does(url, monkeypatch):
    monkeypatch.setattr(visitors, "REFUSAL_SECONDS", 3.0)
    with ThreadPoolExecutor(8) as hands:
        refused = [hands.submit(httpx.get, f"{url}gradio_api/stream/x", headers=ADA) for _ in range(8)]
        began = time.monotonic()
        assert answer(url, STATED, post(url, STATED, "x", BOB), BOB) == "x"
        assert time.monotonic() - began < 3
        assert {one.result().status_code for one in refused} == {404}
        assert min(one.result().elapsed.total_seconds() for one in refused) >= 3
    monkeypatch.setenv("ADAPOP_PUBLIC", "0")
    assert httpx.get(f"{url}gradio_api/stream/x").elapsed.total_seconds() < 3
