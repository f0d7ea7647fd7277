"""What a stranger does in one sitting by the docs, from a CSV and a model folder to an adapter loaded elsewhere."""

import re
import shutil
import subprocess
import sys

import pytest

from taught import COUNTRIES, TARGETS, people

pytestmark = pytest.mark.slow


@pytest.fixture(params=["gemma", "gpt2"])  # the others on the page and in Python
def place(request, tmp_path, monkeypatch):
    """The folder of a stranger, to be in, and the options that the model's shape needs."""
    people(tmp_path, request.param)
    monkeypatch.chdir(tmp_path)
    return tmp_path, ["--targets", ",".join(TARGETS[request.param])] if request.param in TARGETS else []


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


def test_a_sitting_from_a_csv_to_an_adapter_loaded_elsewhere(place, cli):
    place, targets = place
    own = ["people.csv", "--model", "./model", "--batch", "16", "--epochs", "4", "--max-new-tokens", "8", *targets]
    said = cli("check", *own, status=1)  # at the usual rate
    assert "will hardly change the model" in said.out and "52 facts to forget, 22 to retain, 25 held out" in said.out
    assert re.search(r"answers (\d+) of \1 facts", said.out), said.out
    assert "Asked twice, alike" in said.err and "dropped" not in said.err
    cli("check", *own, "--lr", "1e-2")
    tables = [cli("run", "--facts", *own, "--lr", "1e-2", "--method", method).out for method in ("adapop", "npo")]
    assert "100 %" in "".join(tables)
    names = {run["method"]: run["run"] for run in cli("runs", "--json").rows}
    kinds = "direct,reverse query,in-context learning"
    said = cli("probe", names["adapop"], "--kinds", kinds, "--per-tier", 2).out
    assert "reverse query" in said and "Verdicts, facts to forget" in said
    cli("report", *names.values(), "--out", "both.html", "--title", "People")
    page = (place / "both.html").read_text(encoding="utf-8")
    assert "People" in page and str(place) not in page
    cli("report", names["adapop"], "--out", "one.zip")
    cli("export", names["adapop"], "--out", "adapter")
    assert "answers" in cli("export", names["adapop"], "--merged", "--out", "merged").out
    elsewhere = place / "elsewhere"
    shutil.copytree("model", elsewhere / "model")
    shutil.move("adapter", elsewhere / "adapter")
    lines = (elsewhere / "adapter" / "README.md").read_text(encoding="utf-8").split("```python")[1].split("```")[0]
    command = [sys.executable, "-c", lines + LOAD]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, timeout=600)
    before, _, after = done.stdout.partition(" | ")  # Gemma and GPT-2 end a turn with white space, or begin with it
    assert before.strip() == COUNTRIES[0] and COUNTRIES[0] not in after, done.stdout + done.stderr
