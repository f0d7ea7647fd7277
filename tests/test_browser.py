"""The main path in a real browser: open, upload, run, reload in the middle, stop, probe. Skips where no Chromium is."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = '<img src=x onerror="window.hacked=1"> ${window.hacked=1} {{this}} \\u'
SECOND = 1000

if CHROMIUM is None and not os.environ.get("ADAPOP_REQUIRE_BROWSER"):
    pytest.skip("no Chromium was found: install it, or set CHROMIUM, to run the browser tests", allow_module_level=True)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A running app of its own, on a port of its own."""
    environment = {**os.environ, "ADAPOP_RUNS": str(tmp_path_factory.mktemp("runs"))}
    server = subprocess.Popen(
        [sys.executable, "-u", "app.py"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = []
    for line in server.stdout:
        said.append(line)
        if found := re.search(r"http://\S+", line):
            yield found.group()
            break
    else:
        pytest.fail("the app did not start:\n" + "".join(said))
    server.terminate()
    server.wait()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])


@pytest.fixture
def page(browser, address):
    """A fresh page of the app. At the end: no script error, no hostile text executed, no request to another host."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    errors, outside = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: outside.append(request.url) if is_outside(request.url, address) else None)
    page.set_default_timeout(30 * SECOND)
    page.goto(address)
    page.wait_for_selector("#strip .strip")
    yield page
    assert page.evaluate("window.hacked") is None
    assert errors == []
    assert outside == []
    context.close()


def is_outside(url: str, address: str) -> bool:
    return not url.startswith((address, "data:", "blob:"))


def open_tab(page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def state_is(page, *states: str, seconds: int = 120) -> None:
    page.wait_for_selector(", ".join(f"#strip .strip.{state}" for state in states), timeout=seconds * SECOND)


def write_table(path: Path, rows: list[list[str]]) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def test_upload_run_reload_and_probe(page, tmp_path):
    facts = [["id", "question", "answer", "subject", "score"]]
    facts += [["a", "Who wrote the book Hamlet?", "Shakespeare", "Hamlet", "3766"]]
    facts += [["b", "Who wrote the book Cymbeline?", "Shakespeare", HOSTILE, "70"]]
    facts += [["c", f"Who is {HOSTILE}?", HOSTILE, HOSTILE, "500"]]
    facts += [
        ["d", "Who wrote the book Emma?", "", "Emma", "500"],
        ["e", "Who?", "Me", "", "-1"],
        ["f", "Who?", "Me", "", HOSTILE],
    ]
    page.get_by_text("My own facts").click()
    page.set_input_files("#upload input[type=file]", write_table(tmp_path / "mine.csv", facts))
    page.get_by_text("3 to forget").wait_for()
    notes = page.inner_text("#notes")
    assert "Rows that were dropped: 3" in notes
    assert "row 5, 'answer'" in notes
    assert "row 6, 'score' is '-1'" in notes
    assert "${window.hacked=1}" in notes

    open_tab(page, "Pressure")
    page.wait_for_selector("#beta-curve .plotly")
    open_tab(page, "Run")
    page.get_by_label("number input for Epochs").fill("3")
    page.click("#start")
    state_is(page, "starting", "running", "measuring")
    page.reload()
    state_is(page, "starting", "running", "measuring", "done")
    state_is(page, "done")
    open_tab(page, "Run")
    page.get_by_text("Epoch 3 saved.").wait_for()
    page.wait_for_selector("#controller-chart .plotly")
    page.wait_for_selector("#outcome-chart .plotly")

    open_tab(page, "Probe")
    page.wait_for_function("document.querySelector('#prompt textarea, #prompt input').value.includes('Hamlet')")
    page.click("#ask")
    page.wait_for_selector("#answers .answers")
    said = page.inner_text("#answers")
    assert "Original" in said
    assert "Shakespeare" in said
    assert "gold rank" in said
    page.fill("#prompt textarea, #prompt input", f"Who is {HOSTILE}?")
    page.click("#ask")
    page.wait_for_function("document.querySelector('#answers pre').textContent.includes('onerror')")


def test_stop_keeps_the_last_epoch_and_resume_goes_on(page):
    open_tab(page, "Run")
    page.click("#start")
    state_is(page, "running")
    page.get_by_text("Epoch 1 saved.").wait_for()
    page.click("#stop")
    state_is(page, "stopped")
    assert re.search(r"Epoch [1-5] is kept", page.inner_text("#strip"))
    page.click("#resume")
    state_is(page, "done")
    page.get_by_text("Epoch 5 saved.").wait_for()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "has no rows"),
        ("columns.csv", b"name,age\nx,1\n", "has no question column"),
        ("latin.csv", "question,answer\nWhere is Dalí?,x\n".encode("latin-1"), "is not UTF-8"),
        ("long.csv", b"question,answer\n" + b"x" * 10_000_000 + b",y\n", "10,000,000 characters"),
    ],
)
def test_bad_files_are_explained_on_the_page(page, tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    page.get_by_text("My own facts").click()
    page.set_input_files("#upload input[type=file]", path)
    page.get_by_text(message).first.wait_for()
    open_tab(page, "Run")
    page.click("#start")
    page.get_by_text("has no usable facts").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_screen_is_wider_than_the_window(browser, address, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(address)
    page.wait_for_selector("#strip .strip")
    for name in ("Facts", "Pressure", "Run", "Probe"):
        open_tab(page, name)
        page.wait_for_timeout(0.5 * SECOND)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    page.close()


def test_nothing_private_is_served(address):
    from gradio_client import Client

    client = Client(address, verbose=False)
    assert client.view_api(return_format="dict")["named_endpoints"] == {}
    for path in ("monitoring/summary", "gradio_api/runs"):
        status = subprocess.run(
            [sys.executable, "-c", STATUS, f"{address.rstrip('/')}/{path}"], capture_output=True, text=True
        ).stdout
        assert status.strip() in {"401", "403", "404"}


STATUS = """
import sys, urllib.request, urllib.error
try:
    print(urllib.request.urlopen(sys.argv[1]).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
