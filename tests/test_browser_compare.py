"""The fifth screen in a real browser: a race that outlives a reload, and what it shows."""

import csv

import pytest

from browsing import HOSTILE, SECOND, open_tab, write_table

FACTS = [
    ["id", "question", "answer", "subject", "score"],
    ["a", "Who wrote the book Hamlet?", "Shakespeare", "Hamlet", "3766"],
    ["b", "Who wrote the book Cymbeline?", "Shakespeare", HOSTILE, "70"],
    [HOSTILE, f"Who is {HOSTILE}?", HOSTILE, HOSTILE, "500"],
]


def race_is_over(page):
    page.get_by_text("The race is over: 2 of 2 runs came to the end.").wait_for(timeout=180 * SECOND)
    page.wait_for_selector("#compare-table table")


def test_race_outlives_a_reload_and_is_compared(page, tmp_path):
    page.get_by_text("My own facts").click()
    page.set_input_files("#upload input[type=file]", write_table(tmp_path / "mine.csv", FACTS))
    page.get_by_text("3 to forget").wait_for()
    open_tab(page, "Compare")
    page.get_by_text("Nothing has raced yet").wait_for()
    assert not page.is_visible("#compare-table")
    for _ in range(2):  # AdaPop with its scores shuffled, then WGA
        page.locator("#contestants .token-remove").nth(1).click()
    page.get_by_label("number input for Epochs each").fill("1")
    page.click("#race")
    page.wait_for_selector("#race-progress .strip")
    page.reload()
    open_tab(page, "Compare")
    race_is_over(page)
    assert page.locator("#race-progress .strip.done").count() == 2
    assert not page.is_visible("#race-empty")

    page.wait_for_selector("#compare-gap .main-svg")
    page.wait_for_selector("#compare-cost .main-svg")
    table = page.inner_text("#compare-table")
    assert "1 AdaPop" in table
    assert "2 NPO" in table
    assert "→0 popular − rare, direct" in table
    assert "no evidence that popularity" in page.inner_text("#compare-warnings")
    assert "95 % over facts" in page.inner_text("#compare-ranges")
    settings = page.inner_text("#compare-settings")
    assert "method" in settings
    assert "npo" in settings
    page.click("#differ-first input")
    page.get_by_role("option", name="2 NPO").click()
    page.get_by_text("but for seeds they are the same").wait_for()
    page.locator("#compare-cost-twin summary").click()
    assert "where all began" in page.inner_text("#compare-cost-twin")
    page.locator("#compare-gap-twin summary").click()
    assert "2 NPO" in page.inner_text("#compare-gap-twin")

    page.click("#make-comparison")
    page.wait_for_selector("#download-comparison-table")
    with page.expect_download() as download:
        page.click("#download-comparison-table")
    with open(download.value.path(), encoding="utf-8", newline="") as file:
        assert {row["method"] for row in csv.DictReader(file)} == {"adapop", "npo"}


def test_published_numbers_are_a_layer_of_their_own(page):
    open_tab(page, "Compare")
    page.locator("#contestants .token-remove").nth(1).click()
    page.locator("#contestants .token-remove").nth(1).click()
    page.get_by_label("number input for Epochs each").fill("1")
    page.click("#race")
    race_is_over(page)
    assert not page.is_visible("#published-layer")
    page.check("#published input")
    page.wait_for_selector("#published-recall .main-svg")
    said = page.inner_text("#published-layer")
    assert "Nothing in this part was measured here" in said
    assert "0.043 ± 0.007" in page.inner_text("#published-beside")
    ours = page.inner_text("#compare-table")
    assert "0.043" not in ours.split("utility")[0], "none of theirs is among ours"


def test_stop_keeps_what_is_finished_and_stopping_twice_is_stopping_once(page):
    open_tab(page, "Compare")
    page.get_by_label("number input for Epochs each").fill("10")
    page.click("#duel")
    page.wait_for_selector("#race-progress .strip.running")
    page.eval_on_selector("#stop-race", "button => { button.click(); button.click() }")
    page.get_by_text("The race is over: 0 of 3 runs came to the end.").wait_for()
    assert page.is_enabled("#race")
    assert not page.is_enabled("#stop-race")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_screen_is_no_wider_than_the_window(browser, address, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(address)
    page.wait_for_selector("#strip .strip")
    open_tab(page, "Compare")
    page.wait_for_selector("#race-empty")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
