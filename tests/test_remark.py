"""Remarks: the kinds that the code makes are those that have a sentence, and settings are named as the reader does."""

from pathlib import Path

import pytest

from adapop.assets import as_kind, read_json
from adapop.remark import Remark, sentences

SENTENCES = read_json("remarks.json", dict[str, dict[str, str]])["sentences"]
FEW = Remark("few_steps", {"steps": 1, "rate": 1e-9})


def test_sentences_belong_to_kinds_and_name_settings():
    code = "".join(path.read_text(encoding="utf-8") for path in (Path(__file__).parents[1] / "adapop").rglob("*.py"))
    unused = {kind for kind in SENTENCES if f'"{kind}"' not in code}
    assert unused == {"utility_damaged", "retain_damaged", "holdout_damaged"}, "made from a group's name"
    page, command = FEW.text(), FEW.text("command")
    assert page.startswith("1 step at 1e-09 will hardly") and "--" not in page
    assert "the learning rate (--lr) or the epochs (--epochs)" in command
    assert "Raise learning_rate or epochs" in FEW.text("program")
    texts = [Remark("no_score", {"facts": count}).text() for count in (1, 2)]
    assert texts[0].startswith("1 fact has no score.") and texts[1].startswith("2 facts have no score.")
    assert sentences(["as it is", FEW]) == ["as it is", page]


@pytest.mark.parametrize("content", [{"kind": "none"}, {"kind": "few_steps", "values": {"steps": 1}}, "x"])
def test_what_a_log_holds_is_a_remark_or_refused(content):
    with pytest.raises(ValueError):
        as_kind(content, Remark)
    with pytest.raises(ValueError):
        as_kind({"kind": "few_steps", "values": {"steps": 1, "rate": "much"}}, str | Remark)
    assert as_kind({"kind": "controller_idle", "values": {}}, str | Remark) == Remark("controller_idle")
