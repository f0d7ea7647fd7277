import asyncio
import json
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.datastructures import Headers

from adapop.limits import REQUEST, UPLOAD
from adapop.ui.body import DEPTH, VALUES_A_MEGABYTE, _fits, _OneFile
from raised import raised
from refusing import no_file_above

pytestmark = pytest.mark.usefixtures("public")
FORM = "multipart/form-data; boundary=x"


def sent(address, path, headers, body):
    """The status of a request as it stands here."""
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=20) as line:
        line.sendall(f"POST {path} HTTP/1.1\r\nHost: {place.netloc}\r\n{headers}\r\n\r\n".encode() + body)
        return int(line.recv(100).split()[1])


@pytest.mark.parametrize("path", ["/gradio_api/queue/join", "/gradio_api/upload", "/gradio_api/call/beta"])
def test_a_length_beside_chunks_is_refused(address, path):
    lengths = "Content-Length: 5\r\nTransfer-Encoding: chunked"
    assert sent(address, path, f"Content-Type: application/json\r\n{lengths}", b"6\r\n[1, 2]\r\n0\r\n\r\n") == 400


def test_more_bytes_than_a_limit_are_refused_as_they_come(address):
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
])  # fmt: skip
def test_a_body_that_no_page_sends_is_refused_in_words(address, body):
    reply = httpx.post(f"{address}gradio_api/call/beta", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 400 and reply.text.startswith("This request ")


@pytest.mark.parametrize("path", ["queue/join", "cancel", "call/beta"])
def test_an_empty_body_is_answered(address, path):
    assert httpx.post(f"{address}gradio_api/{path}", content=b"", timeout=10).status_code in (400, 422)


def test_as_much_as_is_allowed_is_read(address):
    rows = [{"question": f"Who? {n}", "answer": "x", "paraphrases": ["a"] * 50} for n in range(200)]
    assert httpx.post(f"{address}gradio_api/call/beta", json={"data": [rows]}).status_code == 200
    deep = json.loads("[" * DEPTH + "]" * DEPTH)
    assert _fits(deep, 100) and not _fits([deep], 100)
    assert _fits([0] * 98, 99) and not _fits([0] * 99, 99)
    assert VALUES_A_MEGABYTE * REQUEST.public > 200 * 100, "200 rows of lists fit"
    two = [("files", ("a.csv", b"a")), ("files", ("b.csv", b"b"))]
    assert httpx.post(f"{address}gradio_api/upload", files=two).status_code == 400
    assert httpx.post(f"{address}gradio_api/upload", files=two[:1]).status_code == 200


@pytest.mark.skipif(os.name == "nt", reason="the refusal is made with what POSIX has")
def test_an_upload_on_a_full_disk_says_so_and_names_no_path(address):
    with no_file_above(1_000):
        reply = httpx.post(f"{address}gradio_api/upload", files={"files": b"x" * 100_000})
    assert reply.status_code == 507 and "full" in reply.text and "/" not in reply.text
    assert httpx.post(f"{address}gradio_api/upload", files={"files": b"x" * 100_000}).status_code == 200


def test_a_file_that_does_not_come_whole_leaves_nothing(tmp_path):
    async def stream():
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\n' + b"a" * 1000
        raise ConnectionError

    form = _OneFile(Headers({"Content-Type": FORM}), stream(), upload_dir=tmp_path, max_file_size=10_000)
    raised(ConnectionError, "", asyncio.run, form.parse())
    assert list(Path(tmp_path).iterdir()) == []
