"""What a stranger does in one sitting on the page: a CSV and a model folder, a look, a run, a race, and what goes
home."""

import io
import zipfile

from browsing import PROMPT, open_tab, says, show_advanced, state_is, unfold, upload, write_table
from taught import TARGETS, own_facts, taught

# of one of these questions, for two seconds: the run's end selects another fact
CAME_TO_REST = """questions => {
  const { value } = document.querySelector("#prompt textarea, #prompt input");
  if (window.waitedWith !== value) [window.waitedWith, window.waitedSince] = [value, Date.now()];
  return questions.includes(value) && Date.now() - window.waitedSince > 2000;
}"""


def test_own_facts_and_an_own_model_from_upload_to_race_and_download(page, tmp_path):
    """GPT-2's shape, which needs the most settings; the others are met on the command line and in Python."""
    from playwright.sync_api import expect

    facts = own_facts()
    folder = str(taught("gpt2", tmp_path / "model", [*facts.forget, *facts.retain, *facts.holdout]))
    members = [(fact, group) for group in ("forget", "retain", "holdout") for fact in getattr(facts, group)]
    rows = [[fact.question, fact.answer, f"{fact.score:,.0f}", group] for fact, group in members]
    table = write_table(tmp_path / "towns.csv", [["question", "answer", "score", "group"], *rows])

    upload(page, table, "Forget set: 6;")
    open_tab(page, "Run")
    page.fill("#model input", folder)
    page.keyboard.press("Enter")
    says(page, "#preflight", "steps in")
    show_advanced(page)
    unfold(page, "advanced")
    expect(page.locator("#knob-batch input")).to_have_value("1")  # what suits so few facts has come
    page.fill("#knob-lora_targets input, #knob-lora_targets textarea", ",".join(TARGETS["gpt2"]))
    page.fill("#knob-further textarea", "max_new_tokens=8\nbatch=2")
    says(page, "#altered", "max_new_tokens=8", "batch=2")
    page.click("#check")
    says(page, "#check-words", "the model answers 6 of 6 facts", "s a step")
    page.get_by_label("Learning rate").first.fill("0.01")
    page.get_by_label("Learning rate").first.blur()
    page.click("#start:not([disabled])")
    state_is(page, "done")

    open_tab(page, "Probe")
    answers = {fact.question: fact.answer for fact in facts.forget}
    page.wait_for_function(CAME_TO_REST, arg=[*answers])  # and no longer a question of the example
    question = page.input_value(PROMPT)
    page.click("#ask")
    says(page, "#answers", question, answers[question])
    assert page.input_value(PROMPT) == question

    open_tab(page, "Compare")
    page.click("#race-form > button")
    for _ in range(2):
        page.locator("#contestants [aria-label^='Remove'], #contestants .token-remove").nth(1).click()
    page.fill("#race-rate textarea", "0.01")
    page.locator("#race-rate textarea").blur()
    says(page, "#race-plan", "2 runs, one after the other, on towns", f"with {folder}")
    says(page, "#race-plan", "AdaPop 0.01, NPO 0.01")
    page.click("#race-check")
    says(page, "#race-check-words", "the model answers 6 of 6 facts")
    page.click("#race")
    says(page, "#race-progress", "2 of 2 runs finished")
    says(page, "#recorded-words", "There are no recorded runs of these methods on this model")

    open_tab(page, "Run")
    page.fill("#title-export input, #title-export textarea", "Ours <b>")
    page.click("#make-export")
    with page.expect_download() as taken:
        page.locator("#download-export:visible").click()
    archive = zipfile.ZipFile(io.BytesIO(taken.value.path().read_bytes()))
    assert {"report.html", "adapter/adapter_model.safetensors", "config.json"} <= {*archive.namelist()}
    for name in ("report.html", "config.json", "adapter/adapter_config.json"):
        assert str(tmp_path) not in archive.read(name).decode(), name
    assert "<h1>Ours &lt;b&gt;</h1>" in archive.read("report.html").decode()
    assert "PeftModel.from_pretrained" in archive.read("report.html").decode(), "as tests/cli/test_sitting.py does"
