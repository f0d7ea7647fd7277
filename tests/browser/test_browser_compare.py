import csv
import re

import pytest

from adapop.report.recorded import COMMAND
from browsing import HOSTILE, SECOND, choose, open_tab, says, show_advanced, unfold, upload, visit, write_table

FACTS = [
    ["id", "question", "answer", "subject", "score", "group"],
    ["a", "Who wrote the book Hamlet?", "Shakespeare", "Hamlet", "3766", "forget"],
    ["b", "Who wrote the book Cymbeline?", "Shakespeare", HOSTILE, "70", "forget"],
    [HOSTILE, f"Who is {HOSTILE}?", HOSTILE, HOSTILE, "500", "forget"],
    ["d", "Who wrote the book Emma?", "Austen", "Emma", "500", "retain"],
    ["e", "Who wrote the book Ulysses?", "Joyce", "Ulysses", "500", "holdout"],
    ["f", "What is one plus two?", "three", "", "", "utility"],
]


@pytest.fixture(scope="module")
def page(browser, address, tmp_path_factory):
    """A page with a race of AdaPop and NPO over facts of its own, which was reloaded in the middle."""
    with visit(browser, address) as page:
        upload(page, write_table(tmp_path_factory.mktemp("own") / "mine.csv", FACTS), "Forget set: 3;")
        open_tab(page, "Compare")
        unfold(page, "compare-numbers")
        says(page, "#compare-table", "WGA, recorded")  # full on arrival
        unfold(page, "compare-models")
        says(page, "#compare-by-model", "Gemma 3 270M")
        says(page, "#example-fields", "python -m adapop sandbox build --part states")
        page.click("#race-form > button")
        for _ in range(2):  # AdaPop with its scores shuffled, then WGA
            page.locator("#contestants .token-remove").nth(1).click()
        page.get_by_label("number input for Epochs").fill("1")
        page.click("#race:not([disabled])")
        page.wait_for_selector("#race-progress .strip")
        page.reload()
        open_tab(page, "Compare")
        page.get_by_text("2 of 2 runs finished.").wait_for(timeout=240 * SECOND)
        unfold(page, "compare-numbers")
        page.wait_for_selector("#compare-table table")
        yield page


WATCH_TEXTS = """(() => {
  window.drawn = new Map();
  const fill = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    window.drawn.set(this.canvas, (window.drawn.get(this.canvas) ?? new Set()).add(String(text)));
    return fill.call(this, text, ...place);
  };
})()"""


def test_on_a_phone_the_fields_stand_on_one_line_with_two_numbers_and_intervals_are_seen_in_the_dark(browser, address):
    phone = {"width": 390, "height": 844}
    with visit(browser, address, "?tab=facts", viewport=phone, color_scheme="dark") as page:
        page.evaluate(WATCH_TEXTS)
        open_tab(page, "Compare")
        canvases = page.locator("#example-fields canvas")
        canvases.nth(1).wait_for()
        both = "[...document.querySelectorAll('#example-fields canvas')].map((one) => window.drawn?.get(one))"
        page.wait_for_function(
            f"{both}.length === 2 && {both}.every((texts) => texts?.has('100') && texts.has('1,000'))"
        )
        tops = "all => all.map((one) => one.getBoundingClientRect().top)"  # in one step: what comes above moves both
        first, second = canvases.evaluate_all(tops)
        assert first == pytest.approx(second, abs=1)
        whisker = page.locator("#compare-gap .xerror").first
        whisker.wait_for(state="attached")
        ink = "getComputedStyle(document.querySelector('.chart-title p')).color"
        assert whisker.evaluate("one => getComputedStyle(one).stroke") == page.evaluate(ink)


def test_race_outlives_a_reload_and_is_compared(page):
    page.locator("#race-progress .strip.done").nth(1).wait_for(state="attached")  # folded once all is over
    page.wait_for_selector("#race-empty", state="hidden")
    assert page.locator("#race-fields canvas").count() == 2, "each contestant's dots"
    page.click("#present")
    heights = [page.locator("#race-fields .entrant").nth(number).bounding_box()["height"] for number in range(2)]
    page.click("#present")
    assert all(200 < height < 500 for height in heights), "as tall as its dots: the Story's scenes alone fill a window"
    page.locator("#race-fields").get_by_role("button", name="Equal forgetting").click()
    says(page, "#race-fields .scrubber .when", "% answered")
    for title in page.locator("#race-fields h3").all_inner_texts():
        assert re.search(r": (≈ )?rare \d+.%, popular \d+.% answered", title), title
    unfold(page, "curves-fold")
    for picture in ("#race-curves", "#compare-gap", "#compare-cost"):
        page.wait_for_selector(f"{picture} .main-svg")
    says(page, "#compare-table", "AdaPop 1", "NPO 2", "popular minus rare, asked as trained")
    says(page, "#compare-kept", "held-out facts (never trained on)")
    assert not page.is_visible("#compare-inside-table"), "what needs explaining is folded away"
    page.click("#compare-inside > button")
    says(page, "#compare-inside-table", "KL: how far the predictions moved")
    page.click("#compare-inside > button")
    says(page, "#compare-warnings", "no evidence that popularity")
    unfold(page, "compare-words")
    says(page, "#compare-ranges", "over facts")
    unfold(page, "compare-differ")
    says(page, "#compare-settings", "method", "npo")
    choose(page, "#differ-first", "NPO 2")
    page.get_by_text("They differ in no setting but the seed.").wait_for()
    page.locator("#compare-gap-twin summary").click()
    says(page, "#compare-gap-twin", "NPO 2")
    unfold(page, "compare-home")
    page.click("#make-comparison")
    page.wait_for_selector("#download-comparison-table")
    with page.expect_download() as download:
        page.click("#download-comparison-table")
    with open(download.value.path(), encoding="utf-8-sig", newline="") as file:
        assert {row["method"] for row in csv.DictReader(file)} == {"adapop", "npo"}


def test_recorded_and_published_results_are_layers_laid_over_the_race(page):
    show_advanced(page)
    page.locator("#recorded").get_by_label("none").click()
    page.get_by_text("NPO, recorded").first.wait_for(state="detached")
    columns = page.locator("#compare-table thead th").count()
    page.get_by_label("these methods").click()
    says(page, "#recorded-words", "do not compare them")
    for chart in ("compare-gap", "compare-cost"):
        assert COMMAND in page.locator(f"#{chart}-twin").text_content()
    page.get_by_text("NPO, recorded").first.wait_for()
    assert page.locator("#compare-table thead th").count() > columns
    page.locator("#recorded").get_by_label("none").click()
    page.get_by_text("NPO, recorded").first.wait_for(state="detached")
    unfold(page, "compare-paper")
    assert not page.is_visible("#published-layer")
    page.check("#published input")
    page.wait_for_selector("#published-recall .main-svg")
    says(page, "#published-layer", "Only the columns headed “ours” were measured here")
    says(page, "#published-beside", "4.3 ± 0.7%")
    ours = page.inner_text("#compare-table")
    assert "4.3 ±" not in ours, "none of theirs is among ours"
