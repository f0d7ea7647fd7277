import re

import pytest

from adapop.paths import ROOT
from taught import COUNTRIES, TARGETS, people

pytestmark = pytest.mark.slow
PAGE = ROOT / "assets" / "docs" / "api.md"


@pytest.mark.parametrize("shape", ["llama", "gpt2"])  # the others on the page and on the command line
def test_the_docs_lead_from_a_csv_to_an_adapter_that_peft_loads(shape, tmp_path, monkeypatch, capsys):
    people(tmp_path, shape)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = [block for block in blocks if "people.csv" in block]
    if shape in TARGETS:  # as the sentence below the block says
        assert f"lora_targets={TARGETS[shape]}".replace("'", '"') in PAGE.read_text(encoding="utf-8")
        block = block.replace("batch=16", f"batch=16, lora_targets={TARGETS[shape]}")
    names = {}
    exec(block, names)
    said = capsys.readouterr().out
    assert "52 facts to forget, 22 to retain, 25 held out" in said and "Time: about" in said
    for run in names["runs"]:
        assert run.measured(before=True).recall("forget") > 0.95 and run.state == "done"
    assert names["runs"][0].measured().recall("forget") < 0.5
    assert names["facts"].forget[0].answer == COUNTRIES[0] != said.splitlines()[-1]
    page = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert "AdaPop" in page and "NPO" in page and str(tmp_path) not in page
    loaded = {name for name, value in names["model"].named_parameters() if "lora_B" in name and value.abs().sum() > 0}
    assert loaded, "the adapter that was trained is on the model"
