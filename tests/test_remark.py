"""Remarks as data, and how values stand in their sentences, which other tests know by kind and values alone."""

import json
import re
from dataclasses import asdict
from itertools import product
from string import Formatter

import pytest

from adapop.assets import as_kind
from adapop.facts.files import read_facts
from adapop.paths import ROOT
from adapop.remark import ONE, SENTENCES, TERMS, Remark, sentences
from fact_files import write
from raised import raised

FEW = Remark("few_steps", {"steps": 1, "rate": 1e-9})
# a few of the sentences, for how values are written in them
WORDING = (
    ("rows_are_lists", {"count": 1}, "The rows are lists (1): the first of them names the columns."),
    ("attack_prompts", {"count": 1200}, "Attack prompts: 1,200. They are used for probing and are not trained on."),
    ("facts_left_out", {"facts": 1}, "1 fact that the original model cannot answer was left out."),
    ("facts_left_out", {"facts": 2}, "2 facts that the original model cannot answer were left out."),
    ("retain_from_set", {"facts": 1, "name": "x"}, "1 fact to retain comes from x."),
    ("several_answers", {"rows": 1, "row": 2},
     "1 row, row 2, has several right answers. The first is trained, and all are accepted."),
    ("several_answers", {"rows": 1200, "row": 2},
     "1,200 rows, the first being row 2, have several right answers. The first is trained, and all are accepted."),
    (
        "scores_are_exposures",
        {"factor": 4.0},
        "Score: how often pretraining showed the fact, times 4 to match Wikidata's scale.",
    ),
    ("two_clusters", {"low": 69.0, "below": 141, "above": 2364.0, "high": 3763},
     "The scores form two clusters, 69 to 141 and 2,364 to 3,763, with nothing between them, so there are no facts of "
     "medium popularity."),
    ("memory_of_step", {"bytes": 3 * 2**30}, "Memory: a step took 3.0 GiB of the GPU's."),
)  # fmt: skip
HOSTILE = (
    "{facts} {0} {} {{name}} {name.__class__!r:>9999} %s %(name)s $name", "\0\x1b[31m\u202e\r\n\u2028\t",
    "<img src=x onerror=alert(1)>${window.hacked=1}`", "x" * 10_000, "{", "}",
)  # fmt: skip


def code() -> str:
    """All modules of the package but those that hold the sentences."""
    modules = (path for path in (ROOT / "adapop").rglob("*.py") if path.parent.name != "remark")
    return "".join(path.read_text(encoding="utf-8") for path in modules)


def sample(template: str, count: int) -> dict:
    """A value for each name in a sentence: a number where it is written as one or counts something."""
    fields = [(name, spec) for _, name, spec, _ in Formatter().parse(template) if name]
    words = {*TERMS["page"], *ONE} - {"first"}
    values = {name: float(count) if spec else count if name.endswith("s") else "It" for name, spec in fields}
    return {name: value for name, value in values.items() if name not in words}


@pytest.mark.parametrize("kind", SENTENCES)
def test_every_sentence_is_whole_for_one_and_for_several_and_for_every_reader(kind):
    for count, reader in product((1, 2), ("page", "command", "program")):
        text = Remark(kind, sample(SENTENCES[kind], count)).text(reader)
        assert not re.search(r"[{}]|  |^[a-z]", text), text


@pytest.mark.parametrize(("kind", "values", "sentence"), WORDING)
def test_how_values_are_written(kind, values, sentence):
    note = Remark(kind, values)
    assert [note.text(reader) for reader in ("page", "command", "program")] == [sentence] * 3
    assert str(note) == f"{note}" == sentence


def test_sentences_belong_to_kinds_and_name_settings():
    made = set(re.findall(r'Remark\(\s*"(\w+)"', code()))
    assert len(made) > 50 and made <= SENTENCES.keys()
    unused = {kind for kind in SENTENCES if f'"{kind}"' not in code()}
    kinds = ("damaged", "damaged_elsewhere")
    damaged = {f"{group}_{kind}" for group in ("utility", "retain", "holdout") for kind in kinds}
    assert unused == damaged, "made from parts"
    page, command = FEW.text(), FEW.text("command")
    assert page.startswith("1 step at rate 1e-09 may hardly") and "--" not in page
    assert "the learning rate (--lr) or the epochs (--epochs)" in command
    assert "Raise learning_rate or epochs" in FEW.text("program") == str(FEW)
    texts = [Remark("no_score", {"facts": count}).text() for count in (1, 2)]
    assert texts[0].startswith("1 fact has no score.") and texts[1].startswith("2 facts have no score.")
    assert sentences(["as it is", FEW]) == ["as it is", page]


@pytest.mark.parametrize("content", [{"kind": "none"}, {"kind": "few_steps", "values": {"steps": 1}}, "x"])
def test_what_a_log_holds_is_a_remark_or_refused(content):
    raised(ValueError, "", as_kind, content, Remark)
    raised(ValueError, "", as_kind, {"kind": "few_steps", "values": {"steps": 1, "rate": "much"}}, str | Remark)
    assert as_kind({"kind": "controller_idle", "values": {}}, str | Remark) == Remark("controller_idle")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_value_of_any_letters_is_shown_as_it_is(text):
    note = Remark("retain_from_set", {"facts": 3, "name": text})
    assert str(note) == f"3 facts to retain come from {text}."
    assert as_kind(json.loads(json.dumps(asdict(note))), str | Remark) == note and hash(note) == hash(note)


def test_what_a_file_says_is_quoted_and_truncated_in_its_notes(tmp_path):
    hostile = [text.replace("\0", "")[:1_900] for text in HOSTILE]
    rows = [{"question": text, "answer": answer, text[:200]: "x"} for text in hostile for answer in ("{a}", text)]
    facts = read_facts(write(tmp_path, "facts.json", rows))
    notes = {note.kind: note for note in facts.notes}
    assert not facts.problems and {"different_answers", "no_score_column"} <= notes.keys()
    assert notes["different_answers"].values["questions"] == len(hostile)
    assert repr(hostile[0][:59] + "…") in str(notes["different_answers"]) and "'{a}'" in str(notes["different_answers"])
    assert all(note.text().isprintable() and len(note.text()) < 2_000 for note in facts.notes)
