"""A look at the model before a run, in the page."""

import pytest

from browsing import open_tab

pytestmark = pytest.mark.slow


def test_the_page_says_what_the_model_knows_before_a_run(page):
    open_tab(page, "Run")
    page.click("#check")
    page.locator("#check-words").get_by_text("The model answers 48 of 48 facts").wait_for()
    assert "s a step" in page.inner_text("#check-words")
