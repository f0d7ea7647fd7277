"""In a real browser: bad files, a run stopped and resumed, an idle page, the way to it by Tab."""

import re

import pytest

from browsing import HOSTILE, SECOND, logged, open_tab, start_run, stop_run, visit

KEPT = re.compile(r"Epoch (\d+) of 10 is kept")


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


BAD = {"has no question column": f"{HOSTILE},age\nx,1\n"}
BAD["10,000,000 characters"] = f"question,answer\n{'x' * 10_000_000},y\n"


@pytest.mark.parametrize("message", BAD)
def test_bad_files_are_explained_on_the_page(page, tmp_path, message):
    (tmp_path / "own.csv").write_text(BAD[message], encoding="utf-8")
    page.get_by_text("My own facts").click()
    page.set_input_files("#upload input[type=file]", tmp_path / "own.csv")
    page.get_by_text(message).first.wait_for()
    open_tab(page, "Run")
    page.get_by_text("There are no usable facts").wait_for()
    page.wait_for_selector("#start:disabled")


def test_an_idle_page_asks_nothing(browser, address):
    with visit(browser, address) as page:
        asked = []
        page.on("request", lambda request: asked.append(request.url) if "queue/join" in request.url else None)
        for name in ("Pressure", "Run", "Probe", "Compare", "Facts"):
            open_tab(page, name)
            page.wait_for_timeout(SECOND)
        settled, quiet = len(asked), 0
        while quiet < 3 * SECOND:  # what a tab asks for when it opens may take its time
            page.wait_for_timeout(SECOND)
            quiet, settled = (quiet + SECOND, settled) if len(asked) == settled else (0, len(asked))
            assert settled < 60, "a page that nobody touches keeps asking"


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
