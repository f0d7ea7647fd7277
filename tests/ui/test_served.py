import asyncio
import gzip

import brotli
import pytest

from adapop.ui import served
from adapop.ui.served import PIECE, Served, with_story

TEXT = b"function () {}; " * 20_000


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


def scope_of(path, method="GET", headers=(), **more):
    return {"type": "http", "method": method, "path": path, "scheme": "http", "query_string": b"run=1",
            "headers": [*headers], **more}  # fmt: skip


async def get(app, path, encoding=b"br", method="GET", **headers):
    """(status, headers, the pieces of the body)."""
    messages = []

    async def send(message):
        messages.append(message)

    given = [(b"accept-encoding", encoding), *((name.replace("_", "-").encode(), to) for name, to in headers.items())]
    await app(scope_of(path, method, given), None, send)
    return messages[0]["status"], dict(messages[0]["headers"]), [message.get("body", b"") for message in messages[1:]]


def test_many_loads_at_once_render_and_compress_once(monkeypatch):
    app, rendered, compressed = App(), [], []
    monkeypatch.setitem(served.ENCODERS, "br", lambda body: compressed.append(1) or brotli.compress(body))

    async def all_at_once():
        door = Served(app, rendered.append)
        return await asyncio.gather(*(get(door, "/", host=b"a") for _ in range(50)))

    for status, headers, pieces in asyncio.run(all_at_once()):
        assert (status, headers[b"content-encoding"]) == (200, b"br")
        assert brotli.decompress(b"".join(pieces)) == TEXT
    assert len(app.asked) == len(rendered) == len(compressed) == 1
    assert app.asked[0] == ("/", b"", {b"host": b"a"}), "nothing else of a request decides what all get"


@pytest.mark.parametrize(("encoding", "name"), [
    (b"gzip, deflate", b"gzip"), (b"identity", None), (b"gzip, br", b"br"),
    (b"br;q=0, gzip;q=0.5", b"gzip"), (b"gzip; q=0, identity", None)])  # fmt: skip
def test_a_browser_gets_an_encoding_that_it_names(encoding, name):
    _, headers, pieces = asyncio.run(get(Served(App(), lambda scope: None), "/assets/a.js", encoding))
    unpack = {b"gzip": gzip.decompress, b"br": brotli.decompress, None: bytes}[name]
    assert headers.get(b"content-encoding") == name and unpack(b"".join(pieces)) == TEXT
    assert max(map(len, pieces)) <= PIECE and b"immutable" in headers[b"cache-control"]


def test_pages_and_files_that_a_browser_has():
    app = App()

    async def several():
        door = Served(app, lambda scope: None)
        for host in (b"a", b"b", b"a"):
            await get(door, "/", host=host)
            await get(door, "/assets/a.js", host=host)

    asyncio.run(several())
    assert sorted(path for path, *_ in app.asked) == ["/", "/", "/assets/a.js"]
    door = Served(App(), lambda scope: None)
    assert asyncio.run(get(door, "/assets/a.js", if_none_match=b'"1"'))[0] == 304
    assert b"".join(asyncio.run(get(Served(App(), lambda scope: None), "/assets/a.js", method="HEAD"))[2]) == b""


def test_the_story_s_script_and_its_colours_stand_at_the_end_of_the_page():
    head, end = b'<script>window.gradio_config = {"theme_hash": "0ab1"};</script>', b"</body></html>"
    page = with_story(head + b"<body>" + end)
    assert page.startswith(head) and page.endswith(b"</script>" + end)
    assert b'href="./theme.css?v=0ab1"' in page and b"earlyStory" in page
    assert with_story(TEXT) == TEXT, "an answer that is no page"


def test_one_visitor_is_sent_few_answers_at_once_and_another_does_not_wait(monkeypatch):
    monkeypatch.setattr(served, "SENT_AT_ONCE", 2)
    busy, go_on = [], asyncio.Event()

    async def several():
        door = Served(App(), lambda scope: None)

        async def load(visitor):
            async def send(message):
                if message["type"] == "http.response.body" and message["body"]:
                    busy.append(visitor)
                    await go_on.wait()

            await door(scope_of("/", client=(visitor, 1)), None, send)

        loads = [asyncio.ensure_future(load(visitor)) for visitor in ["ada"] * 5 + ["bob"]]
        await asyncio.sleep(0.2)
        first = sorted(busy)
        go_on.set()
        await asyncio.gather(*loads)
        return first

    assert asyncio.run(several()) == ["ada", "ada", "bob"]


def test_between_two_pieces_others_have_their_turn():
    """Among them the server itself, when a reader has left: else it logs a line for each piece."""
    turns, turn_counts = [], []

    async def send(_):
        turn_counts.append(len(turns))
        asyncio.get_running_loop().call_soon(turns.append, "somebody else")

    asyncio.run(Served(App(), lambda scope: None)(scope_of("/assets/a.js"), None, send))
    assert len(turn_counts) > len(TEXT) // PIECE >= 4
    assert sorted(set(turn_counts[1:])) == turn_counts[1:], "one more before each piece"


def test_failures_are_not_kept_and_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(served, "MOST_BYTES", 2 * len(TEXT))
    missing, app = App(404), App()

    async def several():
        for door in (Served(missing, lambda scope: None), Served(app, lambda scope: None)):
            for name in "abcabc":
                await get(door, f"/assets/{name}", b"identity")
        return door

    door = asyncio.run(several())
    assert len(missing.asked) == 6
    assert len(app.asked) > 3 and len(door._answers) <= 2
