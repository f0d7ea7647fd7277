import json
import re

import pytest

from adapop import assets
from adapop.config.methods import Method
from adapop.errors import DataError
from adapop.facts.world.language import Relation
from adapop.model.catalogue import Preset
from adapop.paths import ASSETS
from adapop.probes.wording import LANGUAGES, NAMES, QUESTIONS, Translations
from adapop.report.published import Printed, Recall
from raised import raised

RELATIONS = "sandbox/relations.json"
HEAD = "method,setting,source,forget,retain,forget_sd"


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Asserts what is said of a file with the given text."""
    monkeypatch.setattr(assets, "ASSETS", tmp_path)

    def asserted(text, kind, pattern):
        (tmp_path / "file").write_text(text, encoding="utf-8")
        read = assets.read_csv if kind is Recall else assets.read_json
        error = raised(DataError, r"assets/file cannot be used", read, "file", kind)
        assert re.search(pattern, error.message), error.message
        assert "restore it" in error.fix

    return asserted


def changed(name, change):
    content = json.loads((ASSETS / name).read_text(encoding="utf-8"))
    change(content)
    return json.dumps(content)


@pytest.mark.parametrize(("file", "kind", "change", "said"), [
    (RELATIONS, Relation, lambda all: all["city"].pop("unseen"), "city > unseen: Field required"),
    (RELATIONS, Relation, lambda all: all["city"].update(unsen="?"), "city > unsen: Unexpected keyword"),
    (RELATIONS, Relation, lambda all: all["car"].update(kind=None), "car > kind: Input should be a valid string"),
    (RELATIONS, Relation, lambda all: all["car"]["paraphrases"].pop(), "car > paraphrases > 3: Field required"),
    (RELATIONS, Relation, lambda all: all["car"]["statements"].append("{s}"), "car > statements: .*at most 3"),
    ("methods.json", Method, lambda all: all["npo"].pop("about"), "npo > about: Field required"),
    ("methods.json", Method, lambda all: all["rmu"]["settings"].update(lora_layers=[7, "8"]), "> lora_layers"),
])  # fmt: skip
def test_what_is_not_whole_is_named(refused, file, kind, change, said):
    refused(changed(file, change), dict[str, kind], said)


def test_a_damaged_file_is_named_with_its_place(refused):
    for text, pattern in (("{", "Expecting"), ("", "Expecting value"), ("[]", "should be an object"),
                          ('{"a": 1, "a": 2}', "repeated key: a")):  # fmt: skip
        refused(text, dict[str, int], pattern)
    raised(DataError, r"assets/none\.json cannot be used .No such file", assets.read_json, "none.json", dict)
    for line, pattern in {
        "WGA,Llama DUET,main,.1": "line 3 > retain: Field required",
        "WGA,Llama DUET,main,93.9,.2": "line 3 > forget: .*less than or equal to 1",
        "WGA,Llama DUET,main,.1,high": "line 3 > retain: .*valid number",
        "WGA,Llama DUET,main,.1,nan": "line 3 > retain",
        "WGA,Llama TOFU,main,.1,.2": "line 3 > setting: Input should be 'Llama DUET'",
        "WGA,Llama DUET,main,.1,.2,.3,.4": "line 3 > beyond the header",
    }.items():
        refused(f"{HEAD}\nGA,Llama DUET,main,.1,.2,.3\n{line}\n", Recall, pattern)
    text = changed("probes/translations.json", lambda content: content["names"][2]["translated"].pop("German"))
    refused(text, Translations, "Argentina needs a translation into Spanish, French, German")
    text = changed("models.json", lambda models: models[3]["shape"].pop("hidden_size"))
    refused(text, list[Preset], "3: .*shape needs whole numbers above 0 for .*hidden_size")
    text = changed("published/tables.json", lambda tables: tables[1]["rows"][0].pop())
    refused(text, list[Printed], "1: .*has 5 cells, the head 6")


def test_translations_and_binary_files_are_all_there():
    content = json.loads((ASSETS / "probes" / "translations.json").read_text(encoding="utf-8"))
    for entries, table in ((content["questions"], QUESTIONS), (content["names"], NAMES)):
        assert len(table) == sum(len(entry["english"]) for entry in entries)
        assert all(len(row) == len(LANGUAGES) for row in table.values())
    # A Space's repository refuses it else.
    patterns = [line.split()[0] for line in (ASSETS / "space/gitattributes").read_text("utf-8").splitlines()]
    binary = [path for path in ASSETS.rglob("*") if path.is_file() and b"\0" in path.read_bytes()[:8000]]
    assert len(binary) > 5
    assert [path.name for path in binary if not any(path.match(shape) for shape in patterns)] == []
