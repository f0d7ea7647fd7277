"""Probe in a real browser: an attack on one fact, all ways at once, a row of the table, and recovery from inside."""

import pytest

from browsing import SECOND, open_tab, state_is


@pytest.fixture(scope="module")
def probed(browser, address):
    """A page with a finished run of one epoch, on the Probe screen."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60 * SECOND)
    page.goto(address)
    page.wait_for_selector("#strip .strip")
    open_tab(page, "Run")
    page.get_by_label("number input for Epochs").fill("1")
    page.click("#start")
    state_is(page, "done")
    open_tab(page, "Probe")
    page.wait_for_function("document.querySelector('#prompt textarea, #prompt input').value != ''")
    yield page
    context.close()


def prompt_of(page) -> str:
    return page.input_value("#prompt textarea, #prompt input")


def test_an_attack_on_one_fact(probed):
    page = probed
    direct = prompt_of(page)
    page.click("#form input")
    page.get_by_role("option", name="Multiple choice").click()
    page.wait_for_function(f"document.querySelector('#prompt textarea, #prompt input').value != {direct!r}")
    assert prompt_of(page).startswith(direct)
    assert "A)" in prompt_of(page)
    page.click("#ask")
    page.wait_for_selector("#answers .answers")


def test_all_ways_at_once_and_a_row_of_the_table(probed):
    page = probed
    assert "Nothing was probed yet" in page.inner_text("#leak-words")
    page.click("#probe-all")
    page.get_by_text("Rare (8 facts)").wait_for(timeout=120 * SECOND)
    said = page.inner_text("#leak-words")
    assert "Popular (8 facts)" in said
    assert "The unlearned model answers most under" in said
    page.wait_for_selector("#leak-chart .plotly")
    page.locator("#leak-table [data-testid='cell-0-0']").click()
    subject = page.inner_text("#leak-table [data-testid='cell-0-0']").strip()
    page.wait_for_function(f"document.querySelector('#prompt textarea, #prompt input').value.includes({subject!r})")
    page.click("#leak-group input")
    page.get_by_role("option", name="Held-out facts").click()
    page.wait_for_function("document.querySelector('#leak-words').innerText.includes('etained')")


def test_a_fact_is_sought_from_inside(probed):
    page = probed
    page.get_by_label("Looking through the layers").click()
    page.get_by_text("prompts read").wait_for()
    page.click("#recover")
    page.get_by_text("After layer 4 the answer leads").wait_for(timeout=60 * SECOND)
    page.reload()
    state_is(page, "done")
    open_tab(page, "Probe")
    page.get_by_text("Rare (8 facts)").wait_for()
