import contextlib
import gzip
import logging
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import pytest
import requests

from adapop.errors import ConfigError, NetworkError, Stopped
from adapop.online import cache as module
from adapop.online import client as web
from adapop.online.cache import FILE, Cache, Cached, _sha256
from adapop.online.client import Web
from adapop.paths import ROOT
from adapop.progress import Progress
from raised import raised
from scripted import Reply
from waiting import wait_until

SECRET, WORDS = "sk-very-secret", "the user's own words"


def at(url, progress=None, **settings) -> Web:
    return Web(url, "The service", progress or Progress(), **settings)


def client(server, **settings) -> Web:
    return at(server.url, **settings)


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(web, "FIRST_WAIT", 0.01)


def begun(server) -> threading.Thread:
    thread = threading.Thread(target=client(server).get, args=("/",))
    thread.start()
    wait_until(lambda: server.asked)
    return thread


def test_question_and_answer(server):
    server.answer = lambda request: {"q": request.query["q"], "agent": request.headers["user-agent"]}
    reply = client(server).get("/w/api.php", q=WORDS)
    assert reply["q"] == WORDS and reply["agent"].startswith("AdaPopExplorer/")
    server.answer = lambda request: Reply(gzip.compress(b'{"a": 1}'), headers={"Content-Encoding": "gzip"})
    assert client(server).get("/") == {"a": 1}
    server.replies = [Reply({"error": {"code": "maxlag"}}, headers={"Retry-After": "0"}), Reply({"ok": 1})]
    assert client(server).get("/", busy=lambda reply: "error" in reply) == {"ok": 1}


def test_a_contact_may_be_written_in_any_script(server, monkeypatch):
    monkeypatch.setenv("ADAPOP_CONTACT", "имя@пример.рф")
    server.answer = lambda request: {}
    program = "from adapop.online.client import Web; from adapop.progress import Progress; import sys; "
    program += "Web(sys.argv[1], 'The host', Progress()).get('/')"
    subprocess.run([sys.executable, "-c", program, server.url], check=True)
    assert server.asked[0].headers["user-agent"].encode("latin-1").decode().endswith("(имя@пример.рф)")


def test_a_key_is_a_bearer_token_and_a_netrc_sends_nothing(server, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    server.answer = lambda request: request.body
    for key in (SECRET, None):
        assert client(server, key=key).post("/chat", {"a": [1]}) == {"a": [1]}
    assert [request.headers.get("authorization") for request in server.asked] == [f"Bearer {SECRET}", None]


@pytest.mark.parametrize("bad", [
    Reply(status=429), Reply(status=500), Reply(status=503, headers={"Retry-After": "0"}),
    Reply(b'{"rows": [1, 2', 200), Reply({"rows": list(range(100))}, cut=10),
    Reply(b"<html>Please log in</html>"), Reply(b"\xff\xfe"), Reply(b"[" * 100_000), Reply(b""),
    *(Reply(status=429, headers={"Retry-After": header.encode().decode("latin-1")})  # which says nothing
      for header in ("soon", "-5", "", "1e9", "٣"))])  # fmt: skip
def test_bad_weather_passes(server, bad):
    server.replies = [bad, bad, Reply({"fine": True})]
    assert client(server).get("/") == {"fine": True} and len(server.asked) == 3


@pytest.mark.parametrize(("bad", "fault"), [
    (Reply(status=429), "too many requests"), (Reply(status=502), "fault of its own"),
    (Reply(b"<!DOCTYPE html>"), "a web page instead of data"), (Reply(b"{"), "broken data")])  # fmt: skip
def test_bad_weather_that_stays_is_named_and_counted(server, bad, fault):
    server.answer = lambda request: bad
    error = raised(NetworkError, f"The service .*{fault}.*\\(tries: 6\\)", client(server).get, "/", q=WORDS)
    assert "kept" in error.fix and len(server.asked) == 6


@pytest.mark.parametrize(
    ("status", "message"), [(302, "another address"), (308, "another address"), (401, "refuses access"), (404, "404")]
)
def test_redirects_are_not_followed_and_refusals_are_final(server, status, message):
    server.answer = lambda request: Reply(status=status, headers={"Location": "http://127.0.0.1:1/elsewhere"})
    raised(NetworkError, message, client(server).get, "/")
    assert len(server.asked) == 1


@pytest.mark.slow
def test_retry_after_is_honoured_in_seconds_or_as_a_date(server):
    """While a client is told to come back later, nobody else waits."""
    for least, dated in ((1.0, False), (1.5, True)):
        soon = format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True)
        server.asked.clear()
        server.replies = [Reply(status=429, headers={"Retry-After": soon if dated else "1"})]
        server.answer = lambda asked: {}
        thread = begun(server)
        client(server).get("/")
        assert thread.is_alive()
        thread.join()
        assert server.asked[-1].time - server.asked[0].time >= least


def test_no_answer_in_time_within_a_day_or_to_an_end(server, monkeypatch):
    server.answer = lambda request: Reply({}, seconds=1)
    raised(NetworkError, "does not answer in time \\(tries: 6\\)", client(server, read_seconds=0.1).get, "/")
    server.answer = lambda request: Reply(status=429, headers={"Retry-After": "86400"})
    began = time.monotonic()
    error = raised(NetworkError, "too many requests", client(server).get, "/")
    assert time.monotonic() - began < 5 and "86400 s" in error.fix
    monkeypatch.setattr(web, "MAX_REPLY", 1000)
    server.answer = lambda request: Reply(b" " * 200_000)
    raised(NetworkError, "sends more than", client(server).get, "/")


def test_a_wait_is_told_and_can_be_stopped(server):
    server.answer = lambda request: Reply(status=429, headers={"Retry-After": "100"})
    messages = []
    progress = Progress(messages.append)
    threading.Timer(0.3, progress.stop).start()
    began = time.monotonic()
    raised(Stopped, "Stopped", at(server.url, progress).get, "/")
    assert time.monotonic() - began < 5 and "waiting 100 s" in messages[0]


def test_without_a_connection_it_ends_within_seconds_and_says_what_to_check(monkeypatch, environment):
    waited = []
    monkeypatch.setattr(Progress, "wait", lambda self, seconds: waited.append(seconds))
    monkeypatch.setattr(web, "FIRST_WAIT", 1.0)
    for host in ("127.0.0.1:1", "nowhere.invalid"):
        waited.clear()
        said = rf"The service \({host}\) cannot be reached"
        error = raised(NetworkError, said, at(f"http://{host}").get, "/", q=WORDS)
        assert 0 < sum(waited) < 2 and "HTTPS_PROXY" in error.fix
    environment(http_proxy=f"http://me:{SECRET}@127.0.0.1:1")
    error = raised(NetworkError, "through the proxy", at("http://127.0.0.2:1").get, "/", q=WORDS)
    assert "127.0.0.1:1" in error.fix and SECRET not in str(error)


def test_neither_key_nor_words_reach_a_message_or_a_log(server, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    logging.getLogger().setLevel(logging.DEBUG)
    for bad in (Reply(status=429), Reply(status=404), Reply(b"{"), Reply({}, cut=1)):
        server.answer = lambda asked, bad=bad: bad
        error = raised(NetworkError, "", client(server, key=SECRET).get, "/", q=WORDS)
        text = "".join(map(str, (error, error.__cause__, caplog.text, *capfd.readouterr())))
        for hidden in (SECRET, WORDS, "own+words", "own%20words"):
            assert hidden not in text


def test_a_reply_that_drips_is_given_up(monkeypatch):
    """Of a server that promises 1000 bytes and sends one every 20 ms."""

    def drip(listener):
        with contextlib.suppress(OSError), listener.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            for _ in range(1000):
                connection.sendall(b" ")
                time.sleep(0.02)

    monkeypatch.setattr(web, "REPLY_SECONDS", 0.3)
    monkeypatch.setattr(web, "TRIES", 1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=drip, args=(listener,), daemon=True).start()
        began, address = time.monotonic(), f"http://127.0.0.1:{listener.getsockname()[1]}"
        raised(NetworkError, "answers too slowly", at(address, read_seconds=0.3).get, "/")
        assert time.monotonic() - began < 5


@pytest.fixture
def environment(monkeypatch):
    proxies = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")
    for name in (*proxies, "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    return lambda **variables: [monkeypatch.setenv(name, value) for name, value in variables.items()]


def test_a_proxy_is_used_unless_no_proxy_names_the_host(server, environment):
    server.answer = lambda asked: {"via": "proxy"}
    environment(http_proxy=server.url)
    assert at("http://127.0.0.2:1").get("/") == {"via": "proxy"}
    environment(no_proxy="other.example,127.0.0.2")
    raised(NetworkError, "cannot be reached", at("http://127.0.0.2:1").get, "/")
    assert len(server.asked) == 1


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "[::1]"])
def test_a_key_for_this_machine_goes_through_no_proxy(server, environment, host):
    environment(http_proxy=server.url, all_proxy=server.url)
    raised(NetworkError, "cannot be reached", at(f"http://{host}:1", key=SECRET).get, "/")
    assert server.asked == []


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_the_certificates_of_the_environment_are_the_ones_trusted(server, environment, tmp_path, monkeypatch, variable):
    trusted, send = [], requests.adapters.HTTPAdapter.send

    def watched(self, request, **settings):
        trusted.append(settings["verify"])
        return send(self, request, **settings)

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", watched)
    server.answer = lambda asked: {}
    client(server).get("/")
    bundle = tmp_path / "own.pem"
    environment(**{variable: str(bundle)})
    raised(ConfigError, variable, client, server)
    bundle.touch()
    client(server).get("/")
    assert trusted == [True, str(bundle)]


def test_a_host_gets_one_request_at_a_time(server):
    server.answer = lambda request: Reply({}, seconds=0.1)
    with ThreadPoolExecutor(6) as hands:
        list(hands.map(lambda _: client(server).get("/"), range(6)))
    times = [request.time for request in server.asked]
    assert len(times) == 6 and all(later - sooner >= 0.1 for sooner, later in pairwise(times))


def test_while_a_request_is_at_work_a_stop_is_heard_and_another_host_does_not_wait(server):
    server.replies, server.answer = [Reply({}, seconds=2)], lambda asked: {}
    thread, progress = begun(server), Progress()
    progress.stop()
    raised(Stopped, "Stopped", at(server.url, progress).get, "/")
    assert thread.is_alive() and len(server.asked) == 1
    at(server.url.replace("127.0.0.1", "localhost")).get("/")
    assert thread.is_alive()
    thread.join()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "kept" / "here"


def refused(folder, work) -> ConfigError:
    """The error of a use that fails; it names the folder, and hides what SQLite raised."""
    error = raised(ConfigError, "", work)
    assert str(folder) in error.message and error.__suppress_context__
    return error


@pytest.mark.parametrize("value", [None, 0, 1.5, "", "東京 🗼 \x1f", [], {"a": [1, None, True]}])
def test_a_value_comes_back_as_it_was(folder, value):
    today = date.today().isoformat()
    assert Cache(folder).put(value, "service", "kind") == Cached(value, today)
    assert Cache(folder).get("service", "kind") == Cached(value, today)


def test_what_was_learnt_last_counts_for_all_and_what_is_no_json_is_not_kept(folder):
    cache = Cache(folder)
    cache.put(1, "a", "b")
    assert [cache.get(*key) for key in (("a",), ("b",), ("a", "b", ""), ("a b",), ('a", "b',), ())] == [None] * 6
    cache.put("old", "key")
    with sqlite3.connect(folder / FILE) as rows:
        key, value = rows.execute("SELECT key, value FROM replies WHERE key LIKE '%key%'").fetchone()
        digest = _sha256(key, value.encode(), b"2020-01-02")
        rows.execute("UPDATE replies SET date = '2020-01-02', sha256 = ? WHERE key = ?", (digest, key))
    assert cache.get("key") == Cached("old", "2020-01-02")
    cache.put("new", "key")
    assert cache.get("key") == Cached("new", date.today().isoformat())
    first, second = Cache(folder), Cache(folder)
    first.put(1, "key")
    assert second.get("key").value == 1
    second.put(2, "key")
    raised(TypeError, "", first.put, {1, 2}, "key")
    assert first.get("key").value == 2


def test_refresh_answers_only_what_it_learnt_itself(folder):
    Cache(folder).put("old", "key")
    Cache(folder).put("old", "other")
    fresh = Cache(folder, refresh=True)
    assert fresh.get("key") is None
    fresh.put("new", "key")
    assert (fresh.get("key").value, fresh.get("other")) == ("new", None)
    assert (Cache(folder).get("key").value, Cache(folder).get("other").value) == ("new", "old")


@pytest.mark.slow
def test_processes_can_write_at_once(folder):
    code = """import sys; from pathlib import Path; from adapop.online.cache import Cache
cache = Cache(Path(sys.argv[1])); [cache.put(i, sys.argv[2], str(i)) for i in range(40)]"""
    workers = [subprocess.Popen([sys.executable, "-c", code, folder, name], cwd=ROOT) for name in "abc"]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    cache = Cache(folder)
    assert all(cache.get(name, str(i)).value == i for name in "abc" for i in range(40))


def test_a_folder_that_cannot_be_made_is_named_but_not_to_strangers(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "cache"
    assert "Set ADAPOP_CACHE" in refused(folder, lambda: Cache(folder)).fix
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    assert str(tmp_path) not in str(raised(ConfigError, "app's cache", Cache, folder))


def test_damage_at_once_or_later_is_to_be_deleted(folder):
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(b"this is no SQLite file, though it is long enough to be one" * 100)
    assert f"delete {folder / FILE}" in refused(folder, lambda: Cache(folder)).fix
    (folder / FILE).unlink()
    Cache(folder).put(1, "key")
    cache = Cache(folder)
    for i in range(200):
        cache.put("x" * 500, str(i))
    content = bytearray((folder / FILE).read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    (folder / FILE).write_bytes(content)
    damaged = Cache(folder)
    for use in (lambda: damaged.get("7"), lambda: damaged.put(1, "7"), lambda: damaged.get_all(["7"])):
        assert f"delete {folder / FILE}" in refused(folder, use).fix


def test_a_cache_that_another_program_holds(folder, monkeypatch):
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.05)
    cache = Cache(folder)
    cache.put(1, "key")
    holder = sqlite3.connect(folder / FILE)
    holder.execute("BEGIN EXCLUSIVE")
    for use in (lambda: cache.get("key"), lambda: cache.put(2, "key"), lambda: Cache(folder)):
        assert "Another program" in refused(folder, use).fix
    holder.rollback()
    holder.close()
    assert cache.get("key").value == 1 and cache.put(2, "key").value == 2


def test_a_full_disk(folder):
    cache = Cache(folder)
    cache.put(1, "key")
    cache._rows.execute("PRAGMA max_page_count = 1")  # a disk cannot be filled here; SQLite says the same of both
    assert "Make room" in refused(folder, lambda: cache.put("x" * 100_000, "key")).fix and cache.get("key").value == 1
    fresh = Cache(folder, refresh=True)
    fresh._rows.execute("PRAGMA max_page_count = 1")
    refused(folder, lambda: fresh.put("x" * 100_000, "key"))
    assert fresh.get("key") is None, "what could not be kept is not known after a refresh"
