"""Bad weather, against a real local server: what is asked again, what is given up, and what nobody gets to see."""

import logging
import threading
import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

from adapop import web
from adapop.errors import NetworkError
from adapop.progress import Progress
from adapop.web import Web
from scripted import Reply

SECRET, WORDS = "sk-very-secret", "the user's own words"


def client(server, **settings) -> Web:
    return Web(server.url, "The service", Progress(), first_wait=0.01, **settings)


def test_question_and_answer(server):
    server.answer = lambda asked: {"q": asked.query["q"], "agent": asked.headers["user-agent"]}
    reply = client(server).get("/w/api.php", q=WORDS)
    assert reply["q"] == WORDS
    assert reply["agent"].startswith("AdaPopExplorer/")
    assert "authorization" not in server.asked[0].headers


def test_a_key_is_a_bearer_token(server):
    server.answer = lambda asked: asked.body
    assert client(server, key=SECRET).post("/chat", {"a": [1]}) == {"a": [1]}
    assert server.asked[0].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    "bad",
    [
        Reply(status=429),
        Reply(status=500),
        Reply(status=503, headers={"Retry-After": "0"}),
        Reply(b'{"rows": [1, 2', 200),
        Reply({"rows": list(range(100))}, cut=10),
        Reply(b"<html>Please log in</html>"),
        Reply(b"\xff\xfe"),
        Reply(b"[" * 100_000),
        Reply(b""),
    ],
)
def test_bad_weather_passes(server, bad):
    server.replies = [bad, bad, Reply({"fine": True})]
    assert client(server).get("/") == {"fine": True}
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (Reply(status=429), "too many requests"),
        (Reply(status=502), "fault of its own"),
        (Reply(b"<!DOCTYPE html>"), "a web page instead of data"),
        (Reply(b"{"), "broken data"),
    ],
)
def test_bad_weather_that_stays_is_named_and_counted(server, bad, said):
    server.answer = lambda asked: bad
    with pytest.raises(NetworkError, match=f"The service .*{said}.*3 times") as caught:
        client(server, tries=3).get("/", q=WORDS)
    assert "kept" in caught.value.fix
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(server, status):
    server.answer = lambda asked: Reply(status=status, headers={"Location": "http://127.0.0.1:1/elsewhere"})
    with pytest.raises(NetworkError, match="another address"):
        client(server).get("/")
    assert len(server.asked) == 1


@pytest.mark.parametrize(("status", "said"), [(401, "refuses access"), (403, "refuses access"), (404, "404")])
def test_refusals_are_final(server, status, said):
    server.answer = lambda asked: Reply(status=status)
    with pytest.raises(NetworkError, match=said):
        client(server).get("/")
    assert len(server.asked) == 1


def test_retry_after_is_honoured_in_seconds(server):
    server.replies = [Reply(status=429, headers={"Retry-After": "1"}), Reply({})]
    client(server).get("/")
    assert server.asked[1].time - server.asked[0].time >= 1


def test_retry_after_is_honoured_as_a_date(server):
    soon = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=3), usegmt=True)
    server.replies = [Reply(status=503, headers={"Retry-After": soon}), Reply({})]
    client(server).get("/")
    assert server.asked[1].time - server.asked[0].time >= 1.5


@pytest.mark.parametrize("header", ["soon", "-5", "", "1e9", "٣"])
def test_a_retry_after_that_says_nothing_is_ignored(server, header):
    server.replies = [Reply(status=429, headers={"Retry-After": header.encode().decode("latin-1")}), Reply({})]
    client(server).get("/")


def test_a_day_of_waiting_is_refused_at_once(server):
    server.answer = lambda asked: Reply(status=429, headers={"Retry-After": "86400"})
    began = time.monotonic()
    with pytest.raises(NetworkError, match="too many requests") as caught:
        client(server).get("/")
    assert time.monotonic() - began < 5
    assert "86400 s" in caught.value.fix


def test_busy_in_a_good_reply_waits_too(server):
    server.replies = [Reply({"error": {"code": "maxlag"}}, headers={"Retry-After": "0"}), Reply({"ok": 1})]
    assert client(server).get("/", busy=lambda reply: "error" in reply) == {"ok": 1}


def test_a_wait_is_told_and_can_be_stopped(server):
    server.answer = lambda asked: Reply(status=429, headers={"Retry-After": "100"})
    told, progress = [], Progress()
    progress = Progress(told.append)
    threading.Timer(0.3, progress.stop).start()
    began = time.monotonic()
    with pytest.raises(NetworkError, match="Stopped"):
        Web(server.url, "The service", progress).get("/")
    assert time.monotonic() - began < 5
    assert "waiting 100 s" in told[0]


def test_no_answer_in_time(server):
    server.answer = lambda asked: Reply({}, seconds=1)
    with pytest.raises(NetworkError, match="does not answer in time, 2 times"):
        client(server, tries=2, read_seconds=0.1).get("/")


def test_nobody_listens():
    with pytest.raises(NetworkError, match="cannot be reached"):
        Web("http://127.0.0.1:1", "The service", Progress(), tries=2, first_wait=0.01).get("/")


def test_endless_replies_are_cut(server, monkeypatch):
    monkeypatch.setattr(web, "MAX_REPLY", 1000)
    server.answer = lambda asked: Reply(b" " * 200_000)
    with pytest.raises(NetworkError, match="sends more than"):
        client(server).get("/")


def test_neither_key_nor_words_reach_a_message_or_a_log(server, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    logging.getLogger().setLevel(logging.DEBUG)
    for bad in (Reply(status=429), Reply(status=404), Reply(b"{"), Reply({}, cut=1)):
        server.answer = lambda asked, bad=bad: bad
        with pytest.raises(NetworkError) as caught:
            client(server, key=SECRET, tries=2).get("/", q=WORDS)
        text = "".join(map(str, (caught.value, caught.value.__cause__, caplog.text, *capfd.readouterr())))
        for hidden in (SECRET, WORDS, "own+words", "own%20words"):
            assert hidden not in text
