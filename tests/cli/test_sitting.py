"""What a stranger does in one sitting by the docs, on the command line and in Python, from a CSV and a model folder to
an adapter loaded elsewhere."""

import re
import shutil
import subprocess
import sys

import pytest
from transformers import AutoModelForCausalLM

from adapop.paths import ROOT
from taught import COUNTRIES, TARGETS, people

pytestmark = pytest.mark.slow
PAGE = ROOT / "assets" / "docs" / "api.md"


@pytest.fixture
def place(shape, tmp_path, monkeypatch):
    """The folder of a stranger, to be in."""
    monkeypatch.chdir(people(tmp_path, shape))
    return tmp_path


LOAD = """
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("model")
turns = [{"role": "user", "content": "In which country was Ada Arno born?"}]
asked = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt", return_dict=True)


def answer():
    written = model.generate(**asked, max_new_tokens=8)[0][asked["input_ids"].shape[1]:]
    return tokenizer.decode(written, skip_special_tokens=True)


said = answer()
with model.disable_adapter():
    print(answer(), "|", said)
"""


@pytest.mark.parametrize("shape", ["gemma"])  # the others on the page and in Python
def test_a_sitting_from_a_csv_to_an_adapter_loaded_elsewhere(place, shape, cli):
    targets = ["--targets", ",".join(TARGETS[shape])] if shape in TARGETS else []
    own = ["people.csv", "--model", "./model", "--batch", "16", "--epochs", "4", "--max-new-tokens", "8", *targets]
    check = cli("check", *own, status=1)  # at the usual rate
    assert "may hardly change" in check.out and "Forget set: 52 facts; retain set: 22; held out: 25" in check.out
    assert re.search(r"answers (\d+) of \1 facts", check.out), check.out
    assert "Duplicates, which count twice" in check.err and "dropped" not in check.err
    cli("check", *own, "--lr", "1e-2")
    tables = [cli("run", "--facts", *own, "--lr", "1e-2", "--method", method).out for method in ("adapop", "npo")]
    assert "100%" in "".join(tables)
    names = {run["method"]: run["run"] for run in cli("runs", "--json").rows}
    kinds = "direct,reverse query,in-context learning"
    verdicts = cli("probe", names["adapop"], "--kinds", kinds, "--per-tier", 2).out
    assert "reverse query" in verdicts and "Verdicts, forget set" in verdicts
    cli("report", *names.values(), "--out", "both.html", "--title", "People")
    page = (place / "both.html").read_text(encoding="utf-8")
    assert "People" in page and str(place) not in page
    cli("report", names["adapop"], "--out", "one.zip")
    cli("export", names["adapop"], "--out", "adapter")
    assert "the merged model" in cli("export", names["adapop"], "--merged", "--out", "merged").out
    elsewhere = place / "elsewhere"
    shutil.copytree("model", elsewhere / "model")
    shutil.move("adapter", elsewhere / "adapter")
    lines = (elsewhere / "adapter" / "README.md").read_text(encoding="utf-8").split("```python")[1].split("```")[0]
    command = [sys.executable, "-c", lines + LOAD]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, timeout=600)
    before, _, after = done.stdout.partition(" | ")  # Gemma and GPT-2 end a turn with white space, or begin with it
    assert before.strip() == COUNTRIES[0] and COUNTRIES[0] not in after, done.stdout + done.stderr


@pytest.mark.parametrize("shape", ["gpt2"])  # the others on the page and on the command line
def test_the_docs_lead_from_a_csv_to_an_adapter_that_peft_loads(place, shape, capsys):
    blocks = re.findall(r"```python\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = [block for block in blocks if 'load_facts("people.csv"' in block]
    if shape in TARGETS:  # as the sentence below the block says
        assert f"lora_targets={TARGETS[shape]}".replace("'", '"') in PAGE.read_text(encoding="utf-8")
        block = block.replace("batch=16", f"batch=16, lora_targets={TARGETS[shape]}")
    names = {}
    exec(block, names)
    printed = capsys.readouterr().out
    assert "Forget set: 52 facts; retain set: 22; held out: 25" in printed and "Time: about" in printed
    for run in names["runs"]:
        assert run.measured(before=True).recall("forget") > 0.95 and run.state == "done"
    assert names["runs"][0].measured().recall("forget") < 0.5
    assert names["facts"].forget[0].answer == COUNTRIES[0] != printed.splitlines()[-1]
    page = (place / "both.html").read_text(encoding="utf-8")
    assert "AdaPop" in page and "NPO" in page and str(place) not in page
    loaded = {name for name, value in names["model"].named_parameters() if "lora_B" in name and value.abs().sum() > 0}
    assert loaded, "the adapter that was trained is on the model"


@pytest.mark.parametrize("shape", ["llama"])
def test_the_notebook_of_the_docs_runs_cell_by_cell(place, shape, capsys):
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition("### In a notebook\n")[2].partition("\n### ")[0]
    cells, names, printed = re.findall(r"```python\n(.*?)\n```", section, re.DOTALL), {}, []
    assert len([line for line in cells[0].splitlines() if line.strip()]) <= 12
    for cell in cells:
        exec(cell, names)
        printed.append(capsys.readouterr().out)
    run, model, tokenizer = (names[name] for name in ("run", "model", "tokenizer"))
    forget = run.rows("facts").query("group == 'forget'")
    assert forget["before"].mean() > 0.95 and forget["after"].mean() < 0.5
    assert "Ada Arno" in printed[0] and "reworded" not in printed[1] and len(names["curves"]) > 4
    assert "epoch 4 retain weight" in printed[2] and run.config.method == "npo"
    assert list((run.folder.parent / "tensorboard" / names["other"].id).iterdir())
    assert (place / "both.html").stat().st_size > 100_000 and (place / "adapter" / "README.md").is_file()
    unlearned = AutoModelForCausalLM.from_pretrained(place / "unlearned")
    turns = [{"role": "user", "content": "In which country was Ada Arno born?"}]
    asked = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt", return_dict=True)

    def answer(network):
        written = network.generate(**asked, max_new_tokens=8, do_sample=False)[0][asked["input_ids"].shape[1] :]
        return tokenizer.decode(written, skip_special_tokens=True)

    assert COUNTRIES[0] in answer(model) and COUNTRIES[0] not in answer(unlearned)
