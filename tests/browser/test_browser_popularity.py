import json
from threading import Event

import pytest

from adapop.service.worker import Worker
from adapop.ui.facts.upload import UploadEvents
from browsing import (
    HOSTILE,
    PATIENCE,
    SECOND,
    choose,
    launched,
    open_pressure,
    open_tab,
    paste,
    says,
    show_advanced,
    typed_cell,
    upload,
    visit,
    write_table,
)
from little_wikidata import FRANCE, PARIS, PRINCE, STATES, TEXAS, LittleWikidata
from scripted import Reply

CELL = "#fact-table [data-testid='cell-{}-{}']"


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Three facts about places: one Wikidata knows, one it does not, one of hostile text."""
    rows = [["a", "Paris", "France", "3000"], ["b", "Nowhere", "Utopia", "100"], ["c", HOSTILE, HOSTILE, "500"]]
    rows = [[key, f"Where is {place}?", land, place, "country", score] for key, place, land, score in rows]
    head = ["id", "question", "answer", "subject", "relation", "score"]
    return write_table(tmp_path_factory.mktemp("places") / "places.csv", [head, *rows])


@pytest.fixture(scope="module")
def places_page(browser, address, places):
    """A page with these facts, on Facts, and one after another what is looked up."""
    with visit(browser, address) as page:
        upload(page, places, "Forget set: 3;")
        page.get_by_text("Look popularity up").click()
        yield page


def cell_is(page, row: int, column: int, text: str) -> None:
    cell = json.dumps(CELL.format(row, column))
    page.wait_for_function(f"document.querySelector({cell}).innerText.trim() == {json.dumps(text)}")


def test_wikidata_scores_what_it_knows_and_leaves_the_rest_unknown(places_page, wikidata):
    page = places_page
    wikidata.answer = LittleWikidata(PRINCE, PARIS, TEXAS, FRANCE, STATES)
    page.click("#look-up")
    says(page, "#look-up-status", "1 of 3 facts have a score", "Unknown (2)")
    page.get_by_text("Without a score: 2").wait_for()
    cell_is(page, 0, 0, "Where is Paris?")
    page.click(CELL.format(0, 0))
    says(page, "#detail", "sitelinks 3", "Score 3,000 (column score)", "Q90", "statement found")
    open_tab(page, "Run")
    page.get_by_text("2 facts have no score. Decide on Facts").wait_for()
    page.wait_for_selector("#start:disabled")


def test_a_look_up_that_fails_says_so_and_keeps_the_scores(places_page, wikidata):
    page = places_page
    open_tab(page, "Facts")
    wikidata.answer = lambda asked: Reply(status=302, headers={"Location": "http://127.0.0.1:1/"})
    choose(page, "#proxy", "Wikidata")
    # the last test's answers are cached, so a set that was not asked about is needed
    page.get_by_label("One pair").click()
    page.get_by_text("Forget set: 2;").wait_for()
    page.click("#look-up")
    says(page, "#look-up-status", "sends us to another address", "left as they were")
    cell_is(page, 0, 2, "124")
    page.get_by_label("Invented people").click()
    page.locator("#look-up-status").get_by_text("sends us").wait_for(state="hidden")


def test_counts_of_a_text_are_compared_with_the_given_scores(places_page, tmp_path):
    page = places_page
    page.get_by_text("My own facts").click()
    says(page, "#notes", "Forget set: 3;")
    text = tmp_path / "text.txt"
    text.write_text("Paris is in France.\n" * 3 + "Nowhere is in Utopia.\n" * 30, encoding="utf-8")
    choose(page, "#proxy", "Counts in a text of mine")
    page.set_input_files("#scores input[type=file]", text)
    says(page, "#scores", "⇣")  # the server has the text: it can be downloaded
    page.click("#look-up")
    page.get_by_text("3 of 3 facts have a score").wait_for()
    show_advanced(page)
    page.get_by_text("Do two sources agree?").click()
    says(page, "#agreement-words", "both score 3 facts", "Nowhere")
    page.wait_for_selector("#agreement-chart .plotly")
    choose(page, "#proxy", "The scores that came with the set")
    for _ in range(2):  # they come back twice
        page.click("#look-up")
        page.get_by_text("The scores that came with the set.").last.wait_for()
        cell_is(page, 0, 2, "100")
        cell_is(page, 0, 6, "column score")


def test_a_look_up_that_ends_after_another_set_was_picked_changes_nothing(page, tmp_path):
    text = tmp_path / "long.txt"
    text.write_text("Hamlet is by Shakespeare.\n" * 1_500_000, encoding="utf-8")
    page.get_by_text("Look popularity up").click()
    choose(page, "#proxy", "Counts in a text of mine")
    page.set_input_files("#scores input[type=file]", text)
    says(page, "#scores", "⇣")
    page.click("#look-up")
    page.get_by_text("of 256 facts done").wait_for()
    page.get_by_label("One pair").click()
    page.wait_for_selector("#look-up:not([disabled])")
    page.wait_for_timeout(2 * SECOND)
    says(page, "#notes", "Forget set: 2;")
    cell_is(page, 0, 6, "exposures in pretraining")


def test_a_file_that_comes_before_what_is_said_of_none_stays(browser, monkeypatch, places, tmp_path):
    """To choose "My own facts" asks for the file that is there, and opens the window in which one is chosen. "No file
    yet", said after a file, would empty its set: the file is read after that answer, however late it is."""
    chosen_again, file_is_there = UploadEvents.chosen_again, Event()

    def late(*values):
        file_is_there.wait(PATIENCE / SECOND)
        return chosen_again(*values)

    monkeypatch.setattr(UploadEvents, "chosen_again", late)
    with launched(Worker(tmp_path / "runs")) as address, visit(browser, address) as page:
        page.get_by_text("My own facts").click()
        assert page.locator("#upload").is_hidden()
        with page.expect_request_finished(lambda request: "/upload?" in request.url):
            page.set_input_files("#upload input[type=file]", places)
        file_is_there.set()
        page.get_by_text("Forget set: 3;").wait_for()
        page.wait_for_timeout(2 * SECOND)
        says(page, "#notes", "Forget set: 3;")


def test_facts_are_typed_and_pasted_into_a_grid(page):
    page.get_by_text("My own facts").click()
    says(page, "#notes", "No file yet")
    page.click("#typed-facts > button")
    typed_cell(page, "Question", 1).click()
    for fact in (("Who wrote Hamlet?", "Shakespeare", "3766"), ("Who wrote Emma?", "Austen", "900")):
        for cell in fact:
            page.keyboard.type(cell)
            page.keyboard.press("Tab" if cell != fact[-1] else "Enter")  # which goes back to the question
    page.click("#use-typed")
    says(page, "#notes", "Forget set: 2;")
    rows = [f"What is the capital of country {row}?\tTown {row}\t{row}" for row in range(4, 62)]
    hostile = HOSTILE.replace('"', '""')
    rows = [f'"{hostile}"\tHe\t1\tWho?', '"In two\nlines?"\t"a ""b"""\t2', *rows]
    paste(typed_cell(page, "Question", 3), "\r\n".join(rows) + "\r\n")
    says(page, "#typed-grid", "Pasted: 60 rows")
    for name, row, text in (("Question", 3, HOSTILE), ("Question", 4, "In two lines?"), ("Answer", 4, 'a "b"'),
                            ("Popularity score", 62, "61"), ("Question", 63, "")):  # fmt: skip
        assert typed_cell(page, name, row).input_value() == text
    paste(typed_cell(page, "Question", 63), "Who is it?\tHe\tmany")
    page.click("#use-typed")
    says(page, "#notes", "row 63, 'score'")
    typed_cell(page, "Popularity score", 63).fill("5")
    page.click("#use-typed")
    says(page, "#notes", "Forget set: 63;")
    page.fill("#search textarea, #search input", "img")
    page.locator("#fact-table").get_by_text(HOSTILE).locator("visible=true").first.wait_for()
    paste(typed_cell(page, "Question", 1), "\n".join(["a question?\tan answer\t1"] * 10_000))
    says(page, "#typed-grid", "Nothing was pasted: these are 10,000 lines")
    assert typed_cell(page, "Question", 1).input_value() == "Who wrote Hamlet?"
    page.locator("#typed-grid").get_by_role("button", name="Clear").click()
    paste(typed_cell(page, "Question", 1), 'id;question;answer\nh;Who wrote Hamlet?;"Shakespeare; he"')
    assert typed_cell(page, "answer", 2).input_value() == "Shakespeare; he"
    page.click("#use-typed")
    says(page, "#notes", "Forget set: 1;")


def anchor_is(page, which: int, score: float) -> None:
    box = f"document.querySelectorAll('#anchors input')[{2 * which}]"
    page.wait_for_function(f"{box}.value == {json.dumps(str(score))}")


def test_anchors_are_dragged_and_moved_by_keys(places_page):
    page = places_page
    page.get_by_label("Sandbox world").click()
    says(page, "#notes", "Forget set: 256;")
    open_pressure(page)
    page.wait_for_selector("#beta-curve .anchor")
    grip = page.locator("#beta-curve .anchor").first
    grip.scroll_into_view_if_needed()
    box = grip.locator("path").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 120, y + 20, steps=5)
    page.mouse.up()
    page.wait_for_function("Number(document.querySelectorAll('#anchors input')[0].value) > 120")
    page.wait_for_function("Number(document.querySelectorAll('#anchors input')[1].value) < 1.5")
    show_advanced(page)
    page.click("#paper")
    anchor_is(page, 0, 100)
    says(page, "#beta-curve-twin", "a = 58.7 and b = 0.796")
    page.locator("#beta-curve .anchor").nth(1).focus()
    page.keyboard.press("ArrowRight")
    anchor_is(page, 1, 3300)
    says(page, "#beta-curve-twin", "b = 0.7745")
    page.keyboard.press("ArrowLeft")
    anchor_is(page, 1, 3000)
    page.click("#quantiles")
    anchor_is(page, 1, 3766)


def test_facts_without_popularity_get_a_method_without_scores_in_one_press(page, tmp_path):
    rows = [["group", "question", "answer"]]
    rows += [[group, f"Which badge does {name} wear?", "amber"] for group, names in (("forget", "Abel Bryn"),
             ("retain", "Cato Dara"), ("holdout", "Enid Finn")) for name in names.split()]  # fmt: skip
    upload(page, write_table(tmp_path / "badges.csv", rows), "Forget set: 2;")
    open_tab(page, "Run")
    page.get_by_text("These facts have no popularity scores").wait_for()
    page.wait_for_selector("#start:disabled")
    page.click("#scoreless")
    page.wait_for_function("document.querySelector('#method input').value.startsWith('SatImp')")
    page.wait_for_selector("#start:not(:disabled)")
    page.locator("#scoreless").wait_for(state="hidden")
