"""Probe in a real browser: an attack on one fact, all ways at once, a row of the table, and recovery from inside."""

import pytest

from browsing import PROMPT, open_tab, says, state_is, visit

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def probed(browser, address, visited):
    """A page with a finished run of one epoch, on the Probe screen."""
    with visit(browser, address, storage_state=visited) as page:
        state_is(page, "done")
        open_tab(page, "Probe")
        page.wait_for_function(f"document.querySelector('{PROMPT}').value != ''")
        yield page


def test_the_shipped_example_can_be_asked_before_there_is_a_run(browser, address):
    with visit(browser, address, "?tab=probe") as page:
        page.wait_for_function(f"document.querySelector('{PROMPT}').value != ''")
        says(page, "#probe-recorded", "AdaPop, 5 epochs", "recorded by “python -m adapop sandbox examples”")
        page.click("#ask")
        says(page, "#answers", "Original", "Unlearned", "recorded by")
        page.wait_for_selector("#probe-all:disabled")
        says(page, "#leak-words", "Needs a run of your own")
        says(page, "#recovery-own-only", "Needs a run of your own")
        assert page.locator("#recover").is_hidden()
        page.click("#probe-yourself")
        page.wait_for_selector("#start:not([disabled])")


def prompt_of(page) -> str:
    return page.input_value(PROMPT)


def test_an_attack_on_one_fact(probed):
    page = probed
    direct = prompt_of(page)
    page.click("#form input")
    page.get_by_role("option", name="Multiple choice").click()
    page.wait_for_function(f"document.querySelector('{PROMPT}').value != {direct!r}")
    assert prompt_of(page).startswith(direct)
    assert "A)" in prompt_of(page)
    page.click("#ask")
    page.wait_for_selector("#answers .answers")


def test_all_ways_at_once_and_a_row_of_the_table(probed):
    page = probed
    says(page, "#leak-words", "Not probed yet")
    page.click("#probe-all")
    says(page, "#leak-words", "Rare (8 facts)", "Popular (8 facts)", "The unlearned model answers most under")
    says(page, "#leak-words", "first or second guess of", "among the answers of its relation")
    page.wait_for_selector("#leak-chart .plotly")
    page.locator("#leak-table [data-testid='cell-0-0']").click()
    subject = page.inner_text("#leak-table [data-testid='cell-0-0']").strip()
    page.wait_for_function(f"document.querySelector('{PROMPT}').value.includes({subject!r})")
    page.click("#leak-group input")
    page.get_by_role("option", name="Held-out facts").click()
    page.wait_for_function("document.querySelector('#leak-words').innerText.includes('etained')")


def test_a_fact_is_sought_from_inside(probed):
    page = probed
    page.get_by_label("Looking through the layers").click()
    page.get_by_text("prompts read").wait_for()
    page.click("#recover")
    page.get_by_role("button", name="All numbers").click()
    says(page, "#recovery-table", "4, all", "rank")
    page.reload()
    state_is(page, "done")
    open_tab(page, "Probe")
    page.get_by_text("Rare (8 facts)").wait_for()
