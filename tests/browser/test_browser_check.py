"""A look at the model before a run, in the page: the sandbox's, and one of one's own."""

import json
from dataclasses import asdict, replace

from browsing import open_tab, says, show_advanced, unfold
from taught import own_facts, taught


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

    page.get_by_text("My own facts").click()
    page.set_input_files("#upload input[type=file]", table)
    says(page, "#notes", "7 to forget", "Contradiction: asked twice with different answers")
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
    says(page, "#notes", "5 to forget", "2 facts that the original model cannot answer")
