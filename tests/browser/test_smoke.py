"""The main path in a real browser, with an attack in every text: upload, score, run, probe and report. That a reload
leads back to a run is shown by test_browser_kept and test_browser_run."""

import zipfile

from browsing import (
    HOSTILE,
    PROMPT,
    logged,
    open_pressure,
    open_tab,
    says,
    show_advanced,
    start_run,
    state_is,
    upload,
    write_table,
)
from little_wikidata import CITY, COUNTRY, FRANCE, PARIS, Item, LittleWikidata

LAND = f"{HOSTILE} land"
NOWHERE = Item("Q66", HOSTILE, links={"P31": (CITY,), "P17": ("Q67",)}, sitelinks=40)
NOLAND = Item("Q67", LAND, links={"P31": (COUNTRY,)}, sitelinks=30)
HEAD = ["id", "question", "answer", "subject", "relation", "score", "group"]
ROWS = [
    ["a", "Where is Paris?", "France", "Paris", "country", "3000", "forget"],
    [HOSTILE, f"Where is {HOSTILE}?", LAND, HOSTILE, "country", "70", "forget"],
    ["c", "Where is Lyon?", "", "Lyon", "country", "500", "forget"],
    ["d", "Where is Nice?", "France", "Nice", "country", HOSTILE, "forget"],
    ["e", "Who wrote the book Emma?", "Austen", "Emma", "author", "500", "retain"],
    ["f", f"Who is {HOSTILE}'s friend?", HOSTILE, HOSTILE, HOSTILE, "500", "retain"],
]


def test_from_an_upload_to_a_report(page, wikidata, tmp_path):
    table = write_table(tmp_path / f"{HOSTILE[:9]}.csv", [HEAD, *ROWS])
    upload(page, table, "1 score is below 0 or not a number", "row 5, 'score' (", "${window.hacked=1}")
    page.get_by_label("Leave out rows with bad scores").check()
    says(page, "#notes", "Forget set: 2;", "row 4, 'answer'", "row 5, 'score' ('", "${window.hacked=1}")

    wikidata.answer = LittleWikidata(PARIS, FRANCE, NOWHERE, NOLAND)
    page.get_by_text("Look popularity up").click()
    page.click("#look-up")
    says(page, "#look-up-status", "2 of 2 facts have a score")

    open_pressure(page)
    page.wait_for_selector("#beta-curve .fact")
    start_run(page, epochs=1)
    state_is(page, "done")
    logged(page, "Epoch 1 saved.")
    page.wait_for_selector("#outcome-chart .plotly")
    for key in ("Home", "ArrowRight", "Enter"):
        page.locator("#fact-field .forget canvas").press(key)
    says(page, "#fact-field .tip b", f"Where is {HOSTILE}?")
    says(page, "#fact-field .pinned", f"Where is {HOSTILE}?")

    open_tab(page, "Probe")
    page.wait_for_function(f"document.querySelector('{PROMPT}').value != ''")
    page.fill(PROMPT, f"Who is {HOSTILE}?")
    page.click("#ask")
    says(page, "#answers", "Original", "rank of the right answer")
    page.wait_for_function("document.querySelector('#answers pre').textContent.includes('onerror')")

    show_advanced(page)
    page.click("#make-report")
    with page.expect_download() as download:
        page.click("#download-report")
    with zipfile.ZipFile(download.value.path()) as archive:
        report, facts = (archive.read(name).decode() for name in ("report.html", "facts.jsonl"))
    assert "2 facts" in report and "<img" not in report.partition("<body>")[2]
    assert "window.hacked=1" in facts
