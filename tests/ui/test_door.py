"""The door over HTTP: what is let in, how large, from whom; and what it serves from memory."""

import asyncio
import json
import logging
import os
import socket
from urllib.parse import urlsplit

import brotli
import httpx
import pytest
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from adapop.limits import PROCESSOR, REQUEST, REQUESTS, UPLOAD, WRITTEN
from adapop.report.published import PAPER_PAGE
from adapop.service.visitor_limits import Usage
from adapop.ui.door import pages, streams
from adapop.ui.door.gate import DEPTH, Gate, is_own_host
from adapop.ui.door.pages import NO_HOST, Pages
from adapop.ui.door.streams import Page
from adapop.ui.visitors import SPACE_PROXIES, network_of, trust_own_proxies
from refusing import no_file_above

CLOSED = """run/predict api/predict api/score component_server stream/x stream/x/close vibe-edit vibe-code
process_recording deep_link login monitoring profiling/traces dev/reload call//x call/v2/none/x/y custom_component/x
run-history/connect""".split()
WRONG = {"data": [], "fn_index": 10**9, "session_hash": "x"}
JSON, FORM = {"Content-Type": "application/json"}, "multipart/form-data; boundary=x"
NAMED = b"--x\r\nContent-Disposition: form-data; name=\"files\"; filename*=utf-8''%ff%fe.csv\r\n\r\na\r\n--x--\r\n"
TEXT = b"function () {}; http://%s/a " % NO_HOST * 20_000


def test_what_the_app_does_not_need_is_closed(address):
    body = {"data": [], "fn_index": 0, "session_hash": "x", "component_id": 1, "fn_name": "x"}
    for path in (*(f"gradio_api/{name}" for name in CLOSED), "run/predict", "runs", "monitoring"):
        assert httpx.post(f"{address}{path}", json=body).status_code == 404, path
    for path in ("assets//a.js", "assets/x/.a.js"):  # other names of files, of which each is kept once
        assert httpx.get(f"{address}{path}").status_code == 404, path
    open_one = f"{address}gradio_api/call/v2/score/"  # a look at what an open one answers
    assert httpx.post(open_one, json={"facts": "no such set"}).status_code == 200


@pytest.mark.parametrize(("method", "path", "options"), [
    ("GET", "config", {"headers": {"Range": "bytes=0-1,2-3"}}),
    ("GET", "static/img/logo.svg", {"headers": {"Range": "bytes=0-1,5-6,1-2"}}),
    ("POST", "gradio_api/call/v2/none", {"json": {"facts": "sandbox"}}),
    ("POST", "gradio_api/call/v2/beta", {"json": {"facts": 7, "none": "a secret"}}),
    ("POST", "gradio_api/call/none", {"json": {"data": []}}), ("POST", "gradio_api/queue/join", {"json": WRONG}),
    ("POST", "gradio_api/queue/join", {"content": b"\xff\xfe", "headers": JSON}),
    ("POST", "gradio_api/queue/join", {"content": b"", "headers": JSON}),
    ("POST", "gradio_api/upload", {"content": NAMED, "headers": {"Content-Type": FORM}}),
    ("POST", "gradio_api/upload", {"content": b"no form", "headers": {"Content-Type": "multipart/form-data"}}),
    ("GET", "gradio_api/file=%00", {}), ("GET", "gradio_api/heartbeat/" + "x" * 100, {}),
])  # fmt: skip
def test_no_request_makes_the_app_fail(address, method, path, options, caplog):
    with caplog.at_level(logging.ERROR):
        assert httpx.request(method, f"{address}{path}", **options).status_code < 500
    assert all("secret" not in line for line in caplog.messages)


@pytest.mark.parametrize(
    ("host", "own"),
    [("127.0.0.1:7860", True), ("localhost", True), ("[::1]:7860", True), ("192.168.0.7", True), ("a.localhost", True),
     ("evil.example", False), ("127.0.0.1.evil.example:7860", False), ("localhost.evil.example", False), ("", False)],
)  # fmt: skip
def test_a_strangers_name_that_leads_here_is_refused(address, monkeypatch, host, own):
    assert is_own_host(host) is own
    if not host:
        return
    assert (httpx.get(f"{address}config", headers={"Host": host}).status_code == 421) is not own
    monkeypatch.setenv("ADAPOP_HOSTS", f"other, {host.partition(':')[0].upper()}")
    assert host.startswith("[") or is_own_host(host)
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")  # as behind a proxy, by any name unless some are given
    monkeypatch.setenv("ADAPOP_HOSTS", "me-app.hf.space")
    assert is_own_host("me-app.hf.space") and is_own_host(host) is own
    monkeypatch.delenv("ADAPOP_HOSTS")
    assert httpx.get(f"{address}config", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("public", ["0", "1"])
def test_a_page_of_another_site_changes_nothing(address, monkeypatch, public):
    """Also by a form, for which browsers ask nobody's leave."""
    foreign = [{"Origin": origin} for origin in ("https://evil.example", "null", "http://127.0.0.1:1", "http://[")]
    foreign += [{"Sec-Fetch-Site": site} for site in ("cross-site", "same-site")]
    monkeypatch.setenv("ADAPOP_PUBLIC", public)
    upload, join = f"{address}gradio_api/upload", f"{address}gradio_api/queue/join"
    for headers in foreign:
        assert httpx.post(upload, files={"files": b"x"}, headers=headers).status_code == 403
        assert httpx.post(join, content=b"{}", headers=headers | {"Content-Type": "text/plain"}).status_code == 403
    own = {"Origin": address.removesuffix("/")}
    for headers in (own, {"Sec-Fetch-Site": "same-origin", "Origin": "https://me-app.hf.space"}, {}):
        assert httpx.post(upload, files={"files": b"x"}, headers=headers).status_code == 200


@pytest.mark.parametrize("accepted", ["br", "br;q=0", "x-br", "gzip;q=0, br;q=0", "identity"])
def test_every_answer_says_its_kind_its_policy_and_its_encoding(address, accepted):
    """An encoding of its own even where it is plain: Gradio would compress it, in the event loop."""
    (path,) = httpx.post(f"{address}gradio_api/upload", files={"files": ("a.svg", b"<svg/>" * 200)}).json()
    for place in ("", "config", "gradio_api/user", "theme.css", "none", f"gradio_api/file={path}"):
        reply = httpx.get(f"{address}{place}", headers={"Accept-Encoding": accepted})
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        policy = "sandbox" if "file=" in place else "object-src 'none'"
        assert policy in reply.headers["Content-Security-Policy"]
        compressed = accepted == "br" and place in ("", "config", "theme.css")
        assert reply.headers["Content-Encoding"] == ("br" if compressed else "identity"), place


def test_the_page_is_that_of_the_host_that_asks(address):
    for host, origin in (("127.0.0.1:9", b"http://127.0.0.1:9"), ("localhost", b"http://localhost")):
        page = httpx.get(address, headers={"Host": host}).content
        assert origin in page and NO_HOST not in page and b"adapop.early()" in page
        assert PAPER_PAGE.encode() in page, "the paper is linked"
    proxy = {"X-Forwarded-Host": "me-app.hf.space", "X-Forwarded-Proto": "https"}
    assert b"https://me-app.hf.space" in httpx.get(address, headers=proxy).content
    forged = {"X-Forwarded-Host": "x'><script>alert(1)</script>"}
    assert b"<script>alert(1)" not in httpx.get(address, headers=forged).content


@pytest.fixture
def as_visitor(address, public):
    """Gives a visitor of the public app by number: a client with an address of its own."""
    return lambda number: httpx.Client(base_url=address, headers={"X-Forwarded-For": f"203.0.113.{number}"})


def test_requests_and_bytes_count_by_visitor_and_all_addresses_of_a_64_are_one(as_visitor, monkeypatch):
    monkeypatch.setenv(WRITTEN.name, "1")
    monkeypatch.setenv("ADAPOP_MAX_REQUEST_MB", "1")
    ada, bob = as_visitor(1), as_visitor(2)
    large = {"files": b"x" * 400_000}
    codes = [who.post("/gradio_api/upload", files=large).status_code for who in (ada, ada, ada, bob)]
    assert codes == [200, 200, 429, 200]
    monkeypatch.setenv(REQUESTS.name, "50")
    assert [ada.get("/gradio_api/queue/status").status_code for _ in range(60)].count(429) >= 8
    assert bob.get("/gradio_api/queue/status").status_code == 200
    neighbours = [{"X-Forwarded-For": f"2001:db8:0:1::{host}"} for host in range(3)]
    sent = [bob.post("/gradio_api/upload", files=large, headers=one).status_code for one in neighbours]
    assert sent == [200, 200, 429]
    assert network_of("2001:db8:0:1::1") == network_of("2001:db8:0:1:ffff::2") != network_of("2001:db8:0:2::1")
    assert network_of("::ffff:203.0.113.1") == network_of("203.0.113.1") == "203.0.113.1"
    assert network_of("testclient") == "testclient"


def test_seconds_of_the_processor_count_by_visitor(as_visitor, worker):
    """Who took too many may still look."""
    eve, bob = as_visitor(21), as_visitor(2)
    call, rows = "/gradio_api/call/v2/beta", {"facts": [{"question": "Who?", "answer": "x"}] * 100}
    assert eve.post(call, json=rows).status_code == 200
    worker.usage.charge(PROCESSOR, PROCESSOR.public + 60, "203.0.113.21")
    refused = eve.post(call, json=rows)
    assert refused.status_code == 429 and PROCESSOR.name in refused.text
    assert eve.get("/gradio_api/queue/status").status_code == bob.post(call, json=rows).status_code == 200


def test_a_space_believes_its_own_proxies_alone(monkeypatch):
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    monkeypatch.delenv("SPACE_ID", raising=False)
    trust_own_proxies()
    assert "FORWARDED_ALLOW_IPS" not in os.environ
    monkeypatch.setenv("SPACE_ID", "me/app")
    trust_own_proxies()
    assert os.environ["FORWARDED_ALLOW_IPS"] == SPACE_PROXIES
    forwarded = [(b"x-forwarded-for", b"6.6.6.6, 198.51.100.7, 10.1.2.4")]
    addresses = []

    async def app(scope, receive, send):
        addresses.append(scope["client"][0])

    scope = {"type": "http", "client": ("10.1.2.3", 1), "headers": forwarded}
    asyncio.run(ProxyHeadersMiddleware(app, SPACE_PROXIES)(scope, None, None))
    assert addresses == ["198.51.100.7"], "the one that the outermost proxy saw, not the forged one"


def test_one_visitors_many_requests_are_one_step_in_each_round_of_the_loop(public):
    """So another visitor's answer comes before all but a few of them."""
    begun = []

    async def app(scope, receive, send):
        begun.append(scope["client"][0])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    async def asked():
        async def send(message):
            pass

        def get(who):
            scope = {"type": "http", "method": "GET", "path": "/gradio_api/user", "headers": [], "client": (who, 1)}
            return asyncio.ensure_future(gate(scope | {"query_string": b""}, None, send))

        gate = Gate(app, Usage(), {})
        await asyncio.gather(*(get("ada") for _ in range(60)), get("bob"))

    asyncio.run(asked())
    assert begun.count("ada") == 60 and begun.index("bob") < 3


# bodies


def sent(address, path, headers, body):
    """The status of a request as it stands here."""
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=20) as line:
        line.sendall(f"POST {path} HTTP/1.1\r\nHost: {place.netloc}\r\n{headers}\r\n\r\n".encode() + body)
        return int(line.recv(100).split()[1])


@pytest.mark.parametrize("path", ["/gradio_api/queue/join", "/gradio_api/upload", "/gradio_api/call/beta"])
def test_a_length_beside_chunks_is_refused(address, public, path):
    lengths = "Content-Length: 5\r\nTransfer-Encoding: chunked"
    assert sent(address, path, f"Content-Type: application/json\r\n{lengths}", b"6\r\n[1, 2]\r\n0\r\n\r\n") == 411


def test_more_bytes_than_a_limit_are_refused_as_they_come(address, public):
    """Nothing of them is sent here: who sends on may find the connection closed before the answer comes."""
    join = f"{address}gradio_api/queue/join"
    assert httpx.post(join, content=iter([b"{}"])).status_code == 411
    assert REQUEST.name in httpx.post(join, content=b"x" * int(REQUEST.public * 1e6 + 1)).text
    for limit, path in ((REQUEST, "call/beta"), (UPLOAD, "upload")):
        size = int(limit.public * 1e6) + 100_000
        headers = f"Content-Type: {FORM}\r\nContent-Length: {size}"
        assert sent(address, f"/gradio_api/{path}", headers, b"") == 413


@pytest.mark.parametrize("body", [
    b"[" * 400_000, b'{"data":' + b"[" * 40 + b"]" * 40 + b"}",
    b'{"data":[' + b"[]," * 100_000 + b"0]}", b"\xff\xfe", b"{",
    b'{"data":[{"path": " HTTP://example.org/a.csv", "meta": {"_type": "gradio.FileData"}}]}',
])  # fmt: skip
def test_a_body_that_no_page_sends_is_refused_in_words(address, public, body):
    reply = httpx.post(f"{address}gradio_api/call/beta", content=body, headers=JSON)
    assert reply.status_code == 400 and reply.text.startswith("This request ")


def test_as_much_as_is_allowed_is_read(address, public):
    rows = [{"question": f"Who? {n}", "answer": "x", "paraphrases": ["a"] * 50} for n in range(200)]
    assert httpx.post(f"{address}gradio_api/call/beta", json={"data": [rows]}).status_code == 200
    deep = {"data": [json.loads("[" * (DEPTH - 2) + "]" * (DEPTH - 2))]}
    assert httpx.post(f"{address}gradio_api/call/beta", json=deep).status_code == 200
    two = [("files", ("a.csv", b"a")), ("files", ("b.csv", b"b"))]
    assert httpx.post(f"{address}gradio_api/upload", files=two).status_code == 400
    assert httpx.post(f"{address}gradio_api/upload", files=two[:1]).status_code == 200


@pytest.mark.skipif(os.name == "nt", reason="the refusal is made with what POSIX has")
def test_an_upload_on_a_full_disk_says_so_and_names_no_path(address, public):
    with no_file_above(1_000):
        reply = httpx.post(f"{address}gradio_api/upload", files={"files": b"x" * 100_000})
    assert reply.status_code == 507 and "full" in reply.text and "/" not in reply.text
    assert httpx.post(f"{address}gradio_api/upload", files={"files": b"x" * 100_000}).status_code == 200


# what is served from memory


class App:
    """Counts what it is asked."""

    def __init__(self, status=200):
        self.asked, self.status = [], status

    async def __call__(self, scope, receive, send):
        self.asked.append((scope["path"], scope["query_string"], dict(scope["headers"])))
        await asyncio.sleep(0.01)
        headers = [(b"content-type", b"text/javascript"), (b"content-length", b"%d" % len(TEXT)), (b"etag", b'"1"')]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": TEXT})


def asked(app, *requests):
    """The replies of the door before an app to requests at once: (method, path, headers)."""

    async def all_at_once():
        transport = httpx.ASGITransport(app=Pages(app), raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            sent = (client.request(method, path, headers=headers) for method, path, headers in requests)
            return await asyncio.gather(*sent)

    return asyncio.run(all_at_once())


def test_many_loads_at_once_render_and_compress_once_whatever_host_they_name(monkeypatch):
    app, compressed = App(), []
    monkeypatch.setitem(pages.ENCODERS, "br", lambda body: compressed.append(1) or brotli.compress(body, quality=1))
    hosts = [{"Host": f"{number % 2}.example", "Accept-Encoding": "br"} for number in range(50)]
    replies = asked(app, *(("GET", "/?run=1", host) for host in hosts))
    assert [one.content for one in replies] == [TEXT.replace(NO_HOST, host["Host"].encode()) for host in hosts]
    assert app.asked == [("/", b"", {b"host": NO_HOST})], "nothing of a request decides what others get"
    assert len(compressed) == 2


def test_a_public_app_makes_what_its_page_leads_to_before_anybody_asks(public, monkeypatch):
    compressed = []
    files = {"/": b'<script src="./assets/a.js">', "/assets/a.js": b'"./b.js", "c.js"', "/assets/b.js": b"1" * 99}
    monkeypatch.setattr(pages, "ENCODERS", dict.fromkeys(("br", "gzip"), lambda body: compressed.append(body) or b"x"))

    async def app(scope, receive, send):
        status, kind = 200 if scope["path"] in files else 404, [(b"content-type", b"text/javascript")]
        await send({"type": "http.response.start", "status": status, "headers": kind})
        await send({"type": "http.response.body", "body": files.get(scope["path"], b"")})

    async def started():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=Pages(app)), base_url="http://a") as client:
            await client.head("/")
            while len(compressed) < 4:
                await asyncio.sleep(0.01)
            return [await client.get("/assets/b.js", headers={"Accept-Encoding": one}) for one in ("br", "gzip")]

    replies = asyncio.run(asyncio.wait_for(started(), 30))
    assert [one.headers["Content-Encoding"] for one in replies] == ["br", "gzip"]
    assert sorted(compressed) == sorted([files["/assets/a.js"], files["/assets/b.js"]] * 2), "nothing on asking"


@pytest.mark.parametrize(("accepted", "name"), [
    ("gzip, deflate", "gzip"), ("identity", "identity"), ("gzip, br", "br"), ("x-br", "identity"),
    ("br;q=0, gzip;q=0.5", "gzip"), ("gzip; q=0, identity", "identity")])  # fmt: skip
def test_a_browser_gets_an_encoding_that_it_names(accepted, name):
    (reply,) = asked(App(), ("GET", "/assets/a.js", {"Accept-Encoding": accepted}))
    assert (reply.headers["Content-Encoding"], reply.content) == (name, TEXT)
    assert "immutable" in reply.headers["Cache-Control"]


def test_what_starts_the_app_is_answered_before_the_page_is_rendered_and_failures_are_not_kept():
    """Gradio asks for the page's head when it starts, waits three seconds for it, and gives up."""
    app = App()
    first, *_ = asked(app, ("HEAD", "/", {}), ("GET", "/", {}), ("GET", "/", {}))
    assert first.status_code == 200 and len(app.asked) == 1
    known, head = asked(App(), ("GET", "/assets/a.js", {"If-None-Match": '"1"'}), ("HEAD", "/assets/a.js", {}))
    assert (known.status_code, head.content) == (304, b"")
    missing = App(404)
    for _ in range(2):
        asked(missing, ("GET", "/assets/a.js", {}))
    assert len(missing.asked) == 2


# the order of a page's events, and its stream


class Queue:
    """Stands for Gradio: `end` says that an event ended, as its stream does."""

    def __init__(self):
        self.begun, self.opened, self.messages = [], 0, asyncio.Queue()

    async def __call__(self, scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"].endswith("join"):
            self.begun.append(scope["name"])
            await send({"type": "http.response.body", "body": b'{"event_id":"%s"}' % scope["name"].encode()})
            return
        self.opened += 1
        while (message := await self.messages.get())["msg"] != "close_stream":
            await self.passed(send, message)
        await self.passed(send, message)
        await send({"type": "http.response.body", "body": b""})

    async def passed(self, send, message):
        content = b"data: " + json.dumps(message, separators=(",", ":")).encode() + b"\n\n"
        await send({"type": "http.response.body", "body": content, "more_body": True})

    def end(self, name, closes=False):
        self.messages.put_nowait({"msg": "process_completed", "event_id": name, "output": {}})
        if closes:
            self.messages.put_nowait({"msg": "close_stream"})


class Sitting:
    """A page at Gradio's queue. told: what its stream said."""

    def __init__(self, gradio):
        self.page, self.told = Page(gradio, {1: "session"}), []

    def sends(self, name, number=1):
        """An event of a function of this number, on its way; the first is the one that takes turns."""
        scope = {"path": "/gradio_api/queue/join", "name": name}
        return asyncio.ensure_future(self.page.join({"fn_index": number}, scope, None, nothing))

    def reads(self):
        """The stream of answers, being read."""

        async def told(message):
            self.told.append(message.get("body", b""))

        return asyncio.ensure_future(self.page.stream({"path": "/gradio_api/queue/data"}, None, told))


async def nothing(*_):
    pass


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


def sit(sitting):
    asyncio.run(asyncio.wait_for(sitting, 5))


def test_the_events_of_a_page_take_turns_and_its_stream_stays_open(monkeypatch):
    monkeypatch.setattr(streams, "OPEN_SECONDS", 0.05)
    gradio = Queue()
    ada, bob = Sitting(gradio), Sitting(gradio)

    async def sitting():
        joins = [ada.sends("a"), ada.sends("b"), ada.sends("free", 2), bob.sends("c")]
        await settle()
        assert gradio.begun == ["a", "free", "c"], "b waits for a; no other event and no other page does"
        reading = ada.reads()
        await settle()
        gradio.end("free")
        gradio.end("a", closes=True)  # Gradio knows of no more events, and b is sent at this moment
        await asyncio.sleep(0.02)
        assert gradio.begun[-1] == "b" and not reading.done() and gradio.opened == 2
        gradio.end("b", closes=True)
        await reading
        await asyncio.gather(*joins[:3])  # nobody reads the other page's answers

    sit(sitting())
    told_of = [json.loads(one[6:]) for one in ada.told if one]
    assert [one.get("event_id") for one in told_of] == ["free", "a", "b", None]
    assert told_of[-1]["msg"] == "close_stream"


@pytest.mark.parametrize("end", ["gone", "told late"])
def test_no_turn_is_kept_by_a_page_that_is_gone_or_an_event_answered_before_its_id_is_told(end):
    """Both seen on a busy machine: the next event of the group waited for two minutes."""
    gradio = Queue()
    ada = Sitting(gradio)

    async def sitting():
        release = asyncio.Event()

        async def late(scope, receive, send):
            if scope["name"] == "a":
                await release.wait()
            await gradio(scope, receive, send)

        if end == "told late":
            ada.reads()
            await settle()
            ada.page.app = late
        joins = [ada.sends("a"), ada.sends("b")]
        await settle()
        if end == "told late":
            gradio.end("a")
            await settle()
            release.set()
            await joins[0]
        else:
            ada.page.app = nothing  # the stream ends without a last message
            await ada.reads()
            ada.page.app = gradio
        await settle()
        assert gradio.begun == ["a", "b"]

    sit(sitting())
