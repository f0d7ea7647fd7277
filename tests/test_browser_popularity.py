"""Facts and Pressure in a real browser: scores looked up and stopped, proxies compared, anchors dragged."""

import json

import pytest
from test_wikidata import FRANCE, PARIS, PRINCE, STATES, TEXAS, LittleWikidata

from browsing import HOSTILE, SECOND, open_tab, write_table
from scripted import Reply

CELL = "#fact-table [data-testid='cell-{}-{}']"


@pytest.fixture
def uploaded(page, tmp_path):
    """The page with three facts about places: one Wikidata knows, one it does not, one of hostile text."""
    rows = [["id", "question", "answer", "subject", "relation", "score"]]
    rows += [["a", "Where is Paris?", "France", "Paris", "country", "3000"]]
    rows += [["b", "Where is Nowhere?", "Utopia", "Nowhere", "country", "100"]]
    rows += [["c", f"Where is {HOSTILE}?", HOSTILE, HOSTILE, "country", "500"]]
    page.get_by_text("My own facts").click()
    page.set_input_files("#upload input[type=file]", write_table(tmp_path / "places.csv", rows))
    page.get_by_text("3 to forget").wait_for()
    page.get_by_text("Look popularity up").click()
    return page


def cell_is(page, row: int, column: int, text: str) -> None:
    cell = json.dumps(CELL.format(row, column))
    page.wait_for_function(f"document.querySelector({cell}).innerText.trim() == {json.dumps(text)}")


def choose_proxy(page, name: str) -> None:
    page.click("#proxy input")
    page.get_by_role("option", name=name).click()


def test_wikidata_scores_what_it_knows_and_leaves_the_rest_unknown(uploaded, wikidata):
    page = uploaded
    wikidata.answer = LittleWikidata(PRINCE, PARIS, TEXAS, FRANCE, STATES)
    page.click("#look-up")
    page.get_by_text("1 of 3 facts have a score").wait_for()
    assert "Unknown: 2" in page.inner_text("#look-up-status")
    page.get_by_text("Without a score: 2").wait_for()
    page.click(CELL.format(0, 0))
    page.get_by_text("sitelinks 3").wait_for()
    detail = page.inner_text("#detail")
    assert "column score: 3,000" in detail
    assert "Q90" in detail
    assert "statement found" in detail
    open_tab(page, "Run")
    page.get_by_text("2 facts have no score. Decide on tab 1").wait_for()
    page.wait_for_selector("#start:disabled")


def test_a_look_up_that_fails_says_so_and_keeps_the_scores(uploaded, wikidata):
    page = uploaded
    wikidata.answer = lambda asked: Reply(status=302, headers={"Location": "http://127.0.0.1:1/"})
    choose_proxy(page, "Wikidata")
    # the last test's answers are cached, so a set that was not asked about is needed
    page.get_by_label("One pair").click()
    page.get_by_text("2 to forget").wait_for()
    page.click("#look-up")
    page.get_by_text("sends us to another address").wait_for()
    assert "left as they were" in page.inner_text("#look-up-status")
    assert page.inner_text(CELL.format(0, 2)).strip() == "124"


def test_a_look_up_can_be_stopped(page, wikidata):
    wikidata.answer = lambda asked: Reply(status=429, headers={"Retry-After": "60"})
    page.get_by_text("Look popularity up").click()
    page.click("#look-up")
    page.get_by_text("waiting 60 s").wait_for()
    page.click("#stop-look-up")
    page.get_by_text("Stopped. What was found is kept").wait_for()
    page.wait_for_selector("#look-up:not([disabled])")


def test_counts_of_a_text_are_compared_with_the_given_scores(uploaded, tmp_path):
    page = uploaded
    text = tmp_path / "text.txt"
    text.write_text("Paris is in France.\n" * 3 + "Nowhere is in Utopia.\n" * 30, encoding="utf-8")
    choose_proxy(page, "Counts in a text of mine")
    page.set_input_files("#scores input[type=file]", text)
    page.get_by_text("text.txt").wait_for()
    page.click("#look-up")
    page.get_by_text("3 of 3 facts have a score").wait_for()
    page.get_by_text("Do two proxies agree?").click()
    page.get_by_text("have both scored 3 facts").wait_for()
    assert "Nowhere" in page.inner_text("#agreement-words")
    page.wait_for_selector("#agreement-chart .plotly")
    choose_proxy(page, "The scores that came with the set")
    page.click("#look-up")
    page.get_by_text("The scores that came with the set.").last.wait_for()
    cell_is(page, 0, 2, "100")


def test_a_score_set_by_hand(uploaded):
    page = uploaded
    page.click(CELL.format(1, 0))
    page.locator("#detail input").fill("167")
    page.get_by_text("Set this score").click()
    page.wait_for_function(
        "document.querySelector(`#fact-table [data-testid='cell-1-3']`).innerText.trim() == 'edited'"
    )
    assert page.inner_text(CELL.format(1, 4)).strip() == "0.999"


def test_columns_can_be_told_apart_by_hand(page, tmp_path):
    rows = [
        ["what is asked", "right", "hits"],
        ["Who wrote Emma?", "Austen", "12"],
        ["Who wrote Ulysses?", "Joyce", "8"],
    ]
    page.get_by_text("My own facts").click()
    page.set_input_files("#upload input[type=file]", write_table(tmp_path / "odd.csv", rows))
    page.get_by_text("has no question column").wait_for()
    for field, column in (("question", "what is asked"), ("answer", "right"), ("score", "hits")):
        choice = page.locator("#columns").get_by_label(field, exact=True)
        choice.click()
        choice.fill(column)
        page.locator("#columns [role=option]", has_text=column).last.wait_for()
        page.keyboard.press("Enter")
        page.wait_for_timeout(0.3 * SECOND)
    page.get_by_text("2 to forget").wait_for()
    cell_is(page, 0, 2, "8")


def test_a_look_up_that_ends_after_another_set_was_picked_changes_nothing(page, tmp_path):
    text = tmp_path / "long.txt"
    text.write_text("Hamlet is by Shakespeare.\n" * 1_500_000, encoding="utf-8")
    page.get_by_text("Look popularity up").click()
    choose_proxy(page, "Counts in a text of mine")
    page.set_input_files("#scores input[type=file]", text)
    page.get_by_text("long.txt").wait_for()
    page.click("#look-up")
    page.get_by_text("of 256 facts done").wait_for()
    page.get_by_label("One pair").click()
    page.wait_for_selector("#look-up:not([disabled])", timeout=60 * SECOND)
    page.wait_for_timeout(2 * SECOND)
    assert "2 to forget" in page.inner_text("#notes")
    assert page.inner_text(CELL.format(0, 3)).strip() == "exposures in pretraining"


def test_the_scores_that_came_with_the_set_come_back_twice(uploaded, tmp_path):
    page = uploaded
    text = tmp_path / "text.txt"
    text.write_text("Paris is in France.\n", encoding="utf-8")
    choose_proxy(page, "Counts in a text of mine")
    page.set_input_files("#scores input[type=file]", text)
    page.get_by_text("text.txt").wait_for()
    page.click("#look-up")
    page.get_by_text("3 of 3 facts have a score").wait_for()
    choose_proxy(page, "The scores that came with the set")
    for _ in range(2):
        page.click("#look-up")
        cell_is(page, 0, 2, "100")
        cell_is(page, 0, 3, "column score")


def test_ones_own_file_is_still_there_after_another_set(uploaded):
    page = uploaded
    page.get_by_label("One pair").click()
    page.get_by_text("2 to forget").wait_for()
    page.get_by_text("My own facts").click()
    page.get_by_text("3 to forget").wait_for()


def test_what_the_model_does_not_know_can_be_left_out(uploaded):
    page = uploaded
    page.get_by_label("Invented facts").click()
    page.get_by_text("32 to forget").wait_for()
    page.click("#known")
    page.get_by_text("of 32 facts").wait_for(timeout=60 * SECOND)
    knows = int(page.inner_text("#known-words").split("answers ")[1].split(" of")[0])
    assert 0 < knows < 32
    page.click("#drop-unknown")
    page.get_by_text(f"{knows} to forget").wait_for()
    page.get_by_text(f"{32 - knows} facts that the original model cannot answer").wait_for()
    page.get_by_label("Sandbox world").click()
    page.get_by_text("256 to forget").wait_for()
    page.click("#known")
    page.get_by_text("answers 256 of 256 facts").wait_for(timeout=60 * SECOND)


def anchor_is(page, which: int, score: float) -> None:
    page.wait_for_function(
        f"document.querySelectorAll('#anchors input')[{2 * which}].value == {json.dumps(str(score))}"
    )


def test_anchors_are_dragged_and_moved_by_keys(page):
    open_tab(page, "Pressure")
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
    assert float(page.locator("#anchors input").nth(1).input_value()) < 1.5
    page.get_by_role("button", name="Paper's anchors").click()
    anchor_is(page, 0, 100)
    page.get_by_text("a = 58.7, b = 0.796").wait_for()
    page.locator("#beta-curve .anchor").nth(1).focus()
    page.keyboard.press("ArrowRight")
    anchor_is(page, 1, 3300)
    page.get_by_text("b = 0.7745").wait_for()
    page.keyboard.press("ArrowLeft")
    anchor_is(page, 1, 3000)
    page.click("#quantiles")
    anchor_is(page, 1, 3766)


def test_what_if_moves_the_facts_off_the_curve(page):
    open_tab(page, "Pressure")
    page.wait_for_selector("#beta-curve .fact")
    where = "() => [...document.querySelectorAll('#beta-curve .fact')].map((fact) => fact.getAttribute('transform'))"
    before = page.evaluate(where)
    page.get_by_label("scores inverted").click()
    page.wait_for_function(f"JSON.stringify(({where})()) != {json.dumps(json.dumps(before, separators=(',', ':')))}")
    page.get_by_label("WGA: β = 1 for all").click()
    page.wait_for_function("!document.querySelector('#beta-curve .anchor')")
    page.get_by_text("close to one fixed β for all").wait_for()
