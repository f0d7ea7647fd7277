"""The main path in a real browser: open, upload, run, reload in the middle, stop, probe."""

import re
import subprocess
import sys

import pytest

from browsing import (
    HOSTILE,
    PROMPT,
    SECOND,
    logged,
    open_tab,
    run_through_a_reload,
    says,
    start_run,
    state_is,
    stop_run,
    visit,
    write_table,
)

pytestmark = pytest.mark.slow

KEPT = re.compile(r"Epoch (\d+) of 10 is kept")


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
    says(page, "#notes", "scores below 0 or no number: 2", "row 6, 'score' is '-1'")
    page.get_by_label("Leave out rows with bad scores").check()
    says(page, "#notes", "3 to forget", "Rows that were dropped: 3", "row 5, 'answer'", "row 6, 'score' is '-1'")
    says(page, "#notes", "${window.hacked=1}")

    run_through_a_reload(page)
    page.wait_for_selector("#recall-chart .plotly")
    for key in ("Home", "ArrowRight", "Enter"):
        page.locator("#fact-field canvas").press(key)
    says(page, "#fact-field .tip b", f"Who is {HOSTILE}?")
    says(page, "#fact-field .pinned", f"Who is {HOSTILE}?")

    open_tab(page, "Probe")
    page.wait_for_function(f"document.querySelector('{PROMPT}').value.includes('Hamlet')")
    page.click("#ask")
    says(page, "#answers", "Original", "Shakespeare", "rank of the right answer")
    page.fill(PROMPT, f"Who is {HOSTILE}?")
    page.click("#ask")
    page.wait_for_function("document.querySelector('#answers pre').textContent.includes('onerror')")


def test_stop_keeps_the_last_epoch_and_resume_goes_on(page):
    start_run(page, epochs=10, batch=2)  # long enough to be stopped after its first epoch
    logged(page, "Epoch 1 saved.")
    stop_run(page)
    page.get_by_text(KEPT).wait_for()
    kept = int(KEPT.search(page.inner_text("#strip"))[1])
    page.click("#resume")
    logged(page, f"Epoch {kept + 1} saved.")
    stop_run(page)
    page.wait_for_selector("#resume:not([disabled])")
    assert int(KEPT.search(page.inner_text("#strip"))[1]) > kept


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "has no rows"),
        ("columns.csv", b"name,age\nx,1\n", "has no question column"),
        ("latin.csv", "question,answer\nWhere is Dalí?,x\n".encode("latin-1"), "is not UTF-8"),
        ("hostile.csv", f"{HOSTILE},age\nx,1\n".encode(), "has no question column"),
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
    page.get_by_text("There are no usable facts").wait_for()
    page.wait_for_selector("#start:disabled")


def test_nothing_private_is_served(address):
    from gradio_client import Client

    client = Client(address, verbose=False)
    offered = client.view_api(return_format="dict")["named_endpoints"]
    assert list(offered) == [
        "/score",
        "/beta",
        "/check",
        "/start_run",
        "/status",
        "/frames",
        "/stop",
        "/probe",
        "/report",
    ]
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


def test_an_idle_page_asks_nothing(browser, address):
    with visit(browser, address) as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url) if "queue/join" in request.url else None)
        for name in ("Pressure", "Run", "Probe", "Compare", "Facts"):
            open_tab(page, name)
            page.wait_for_timeout(2 * SECOND)
        settled, quiet = len(asked), 0
        while quiet < 3 * SECOND:  # what a tab asks for when it opens may take its time
            page.wait_for_timeout(SECOND)
            quiet, settled = (quiet + SECOND, settled) if len(asked) == settled else (0, len(asked))
            assert settled < 60, "a page that nobody touches keeps asking"


def test_the_page_is_painted_within_two_seconds(browser, address):
    """Once the server is up. The best of three, since the machine may be busy with something else."""
    painted = []
    for _ in range(3):
        with visit(browser, address) as page:
            painted.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
    print(f"first contentful paint after {', '.join(f'{milliseconds:,.0f}' for milliseconds in painted)} ms")
    assert min(painted) < 2 * SECOND


@pytest.mark.parametrize(("query", "begins"), [("?story=1", "#story .choice"), ("?tab=run", "#start:not([disabled])")])
def test_what_begins_is_within_five_stops_of_tab(browser, address, query, begins):
    reached = f"document.activeElement.matches('{begins}')"
    with visit(browser, address, query) as page:
        page.locator(begins).first.wait_for()
        presses = 0
        while not page.evaluate(reached) and presses < 5:
            page.keyboard.press("Tab")
            presses += 1
            if page.evaluate("document.activeElement.matches('.skip')"):
                page.keyboard.press("Enter")
        assert page.evaluate(reached), page.evaluate("document.activeElement.outerHTML.slice(0, 200)")


def test_a_table_of_one_s_own_is_four_presses_from_a_live_run(browser, address, tmp_path):
    cities = {
        "Kyoto": "Japan",
        "Osaka": "Japan",
        "Siena": "Italy",
        "Naples": "Italy",
        "Patras": "Greece",
        "Volos": "Greece",
    }
    rows = [[f"In which country is {city}?", cities[city], f"{10 + len(city)}"] for city in cities]
    table = write_table(tmp_path / "places.csv", [["question", "answer", "score"], *rows])
    with visit(browser, address, tab="", viewport={"width": 1280, "height": 800}) as page:
        open_tab(page, "Facts")
        with page.expect_file_chooser() as chooser:
            page.locator("#set").get_by_text("My own facts").click()
        chooser.value.set_files(table)
        says(page, "#notes", "6 to forget")
        assert page.evaluate("scrollY") == 0
        open_tab(page, "Run")
        start = page.locator("#start:not([disabled])")
        says(page, "#preflight", "6 facts to forget")
        box = start.bounding_box()
        assert page.evaluate("scrollY") == 0 and box["y"] + box["height"] <= 800
        start.click()
        state_is(page, "starting", "running", "measuring", "done")
        state_is(page, "done")
