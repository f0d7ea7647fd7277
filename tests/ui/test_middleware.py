import asyncio
import logging
import os

import httpx
import pytest
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from adapop.errors import LimitError
from adapop.limits import CONNECTIONS, JOBS_AN_HOUR, REQUESTS
from adapop.service.visitor_limits import PROCESSOR, SERVED, Ledger
from adapop.service.worker import Worker
from adapop.ui.api_values import facts_of
from adapop.ui.middleware import SPACE_PROXIES, Gate, is_own_host, trust_own_proxies, visitor
from adapop.ui.visitors import network_of
from browsing import launched
from raised import raised

CLOSED = """run/predict api/predict api/score component_server stream/x stream/x/close vibe-edit vibe-code
process_recording deep_link login monitoring profiling/traces dev/reload call//x call/v2/none/x/y custom_component/x
run-history/connect""".split()
WRONG = {"data": [], "fn_index": 10**9, "session_hash": "x"}
TEXT, FORM = {"Content-Type": "application/json"}, {"Content-Type": "multipart/form-data; boundary=x"}
NAMED = b"--x\r\nContent-Disposition: form-data; name=\"files\"; filename*=utf-8''%ff%fe.csv\r\n\r\na\r\n--x--\r\n"


def test_what_the_app_does_not_need_is_closed(address):
    body = {"data": [], "fn_index": 0, "session_hash": "x", "component_id": 1, "fn_name": "x"}
    for path in (*(f"gradio_api/{name}" for name in CLOSED), "run/predict", "runs", "monitoring"):
        assert httpx.post(f"{address}{path}", json=body).status_code == 404, path
    open_one = f"{address}gradio_api/call/score/"  # a look at what an open one answers
    assert httpx.post(open_one, json={"data": ["no such set"]}).status_code == 200


@pytest.mark.parametrize(("method", "path", "options"), [
    ("GET", "config", {"headers": {"Range": "bytes=0-1,2-3"}}),
    ("GET", "static/img/logo.svg", {"headers": {"Range": "bytes=0-1,5-6,1-2"}}),
    ("POST", "gradio_api/call/v2/none", {"json": {"facts": "sandbox"}}),
    ("POST", "gradio_api/call/v2/beta", {"json": {"facts": 7, "none": "a secret"}}),
    ("POST", "gradio_api/call/none", {"json": {"data": []}}), ("POST", "gradio_api/queue/join", {"json": WRONG}),
    ("POST", "gradio_api/queue/join", {"content": b"\xff\xfe", "headers": TEXT}),
    ("POST", "gradio_api/upload", {"content": NAMED, "headers": FORM}),
    ("POST", "gradio_api/upload", {"content": b"no form", "headers": {"Content-Type": "multipart/form-data"}}),
    ("GET", "gradio_api/file=%00", {}), ("GET", "gradio_api/heartbeat/" + "x" * 100, {}),
])  # fmt: skip
def test_no_request_makes_the_app_fail(address, method, path, options, caplog):
    with caplog.at_level(logging.ERROR):
        assert httpx.request(method, f"{address}{path}", **options).status_code < 500
    assert "secret" not in caplog.text and all("\n" not in line for line in caplog.messages)


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
    monkeypatch.delenv("ADAPOP_HOSTS")
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
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


def test_every_answer_forbids_guessing_its_kind_and_scripts_from_elsewhere(address):
    for path in ("", "config", "gradio_api/user", "theme.css", "none"):
        headers = httpx.get(f"{address}{path}").headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "object-src 'none'" in headers["Content-Security-Policy"]
    (path,) = httpx.post(f"{address}gradio_api/upload", files={"files": ("a.svg", b"<svg/>")}).json()
    assert "sandbox" in httpx.get(f"{address}gradio_api/file={path}").headers["Content-Security-Policy"]


@pytest.fixture
def as_visitor(address, public):
    """Gives a visitor of the public app by number: a client with an address of its own."""
    return lambda number: httpx.Client(base_url=address, headers={"X-Forwarded-For": f"203.0.113.{number}"})


def test_requests_and_uploads_count_by_visitor_and_all_addresses_of_a_64_are_one(as_visitor, monkeypatch):
    monkeypatch.setenv(JOBS_AN_HOUR.name, "2")
    ada, bob = as_visitor(1), as_visitor(2)
    codes = [who.post("/gradio_api/upload", files={"files": b"x"}).status_code for who in (ada, ada, ada, bob)]
    assert codes == [200, 200, 429, 200]
    monkeypatch.setenv(REQUESTS.name, "50")
    assert [ada.get("/gradio_api/queue/status").status_code for _ in range(60)].count(429) >= 10
    assert bob.get("/gradio_api/queue/status").status_code == 200
    neighbours = [{"X-Forwarded-For": f"2001:db8:0:1::{host}"} for host in range(3)]
    sent = [bob.post("/gradio_api/upload", files={"files": b"x"}, headers=one).status_code for one in neighbours]
    assert sent == [200, 200, 429]
    assert network_of("2001:db8:0:1::1") == network_of("2001:db8:0:1:ffff::2") != network_of("2001:db8:0:2::1")
    assert network_of("::ffff:203.0.113.1") == network_of("203.0.113.1") == "203.0.113.1"
    assert network_of("testclient") == "testclient"


def test_a_page_that_has_to_be_rendered_counts_as_100_and_again_as_one(as_visitor, monkeypatch):
    monkeypatch.setenv(REQUESTS.name, "130")
    names = [f"own{number}.example" for number in range(3)]
    for host, code in zip([names[0]] * 20 + names[1:], [200] * 20 + [429, 429]):
        assert as_visitor(3).get("/", headers={"X-Forwarded-Host": host}).status_code == code


def test_what_is_sent_counts_by_visitor(as_visitor, monkeypatch):
    monkeypatch.setenv(SERVED.limit.name, "1")
    eve, bob, plain = as_visitor(20), as_visitor(2), {"Accept-Encoding": "identity"}
    page = len(bob.get("/").content)
    codes = [eve.get("/", headers=plain).status_code for _ in range(2_000_000 // page + 2)]
    assert codes[0] == 200 and codes[-1] == 429
    assert [who.get("/theme.css").status_code for who in (eve, bob)] == [429, 200]


def test_seconds_of_the_processor_count_by_visitor(as_visitor, worker):
    """Those of a request's parsing too; who took too many may still look."""
    eve, bob = as_visitor(21), as_visitor(2)
    call, rows = "/gradio_api/call/beta", {"data": [[{"question": "Who?", "answer": "x"}] * 2_000]}
    assert eve.post(call, json=rows).status_code == 200
    assert worker.ledger._account(PROCESSOR).spent["203.0.113.21"] > 0
    worker.ledger.charge(PROCESSOR, PROCESSOR.limit.public, "203.0.113.21")
    refused = eve.post(call, json=rows)
    assert refused.status_code == 429 and PROCESSOR.limit.name in refused.text
    assert eve.get("/gradio_api/queue/status").status_code == bob.post(call, json=rows).status_code == 200


@pytest.mark.slow
def test_only_a_known_proxy_says_who_sends(worker, public, monkeypatch):
    """Of what comes from elsewhere the sender is where the connection comes from."""
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "192.0.2.1")
    with launched(Worker(worker.root / "other", sender=visitor)) as url:
        monkeypatch.setenv(REQUESTS.name, "5")
        forged = [{"X-Forwarded-For": f"203.0.113.{number}"} for number in range(10)]
        codes = {httpx.get(f"{url}gradio_api/queue/status", headers=headers).status_code for headers in forged}
    assert 429 in codes, "however many addresses it invents"


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


def test_a_set_that_has_to_be_fetched_counts_for_programs_too(worker, monkeypatch):
    monkeypatch.setenv(JOBS_AN_HOUR.name, "1")
    fetched = []
    monkeypatch.setattr("adapop.ui.api_values.load_facts", lambda *args, **options: fetched.append(args))
    ledger = Worker(worker.root / "third").ledger
    facts_of(ledger, "duet")
    raised(LimitError, JOBS_AN_HOUR.name, facts_of, ledger, "duet")
    facts_of(ledger, "pair")
    assert len(fetched) == 2


def test_a_visitor_with_too_many_open_connections_is_refused_and_another_is_not(public, monkeypatch):
    monkeypatch.setenv(CONNECTIONS.name, "2")
    answers = []

    async def asked():
        go_on = asyncio.Event()

        async def waits(scope, receive, send):
            await go_on.wait()

        async def get(who):
            async def send(message):
                answers.append((who, message.get("status")))

            scope = {"type": "http", "method": "GET", "path": "/gradio_api/user", "headers": [], "client": (who, 1)}
            await gate(scope, None, send)

        gate = Gate(waits, Ledger())
        tasks = [asyncio.ensure_future(get("ada")) for _ in range(3)] + [asyncio.ensure_future(get("bob"))]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [one for one in answers if one[1]] == [("ada", 429)]
        go_on.set()
        await asyncio.gather(*tasks)
        await get("ada")

    asyncio.run(asked())
    assert [one for one in answers if one[1]] == [("ada", 429)], "what ended is not counted"
