import json

import pytest

from adapop import paths
from adapop.cli import main
from adapop.errors import DataError
from adapop.experiments.results import Results

ROW = {
    "key": "abc", "arm": "WGA, α of AdaPop", "method": "wga", "preset": "paper", "scores": "given", "seed": 3,
    "rate": 2e-3, "quick": 1, "failed": "", "forget_reworded_rare": 0.25, "lam": [0.0, 0.125],
    "seconds": 2.5, "peak_mb": 640,
    "config": json.dumps({"a": 1, "text": 'a "quoted", line'}, indent=2), "commit": "c5d+",
    "versions": {"torch": "2.13"},
}  # fmt: skip
DAMAGES = {
    "forget_reworded_rare is 'high'": {"forget_reworded_rare": "high"},
    "forget_reworded_rare is 'nan'": {"forget_reworded_rare": float("nan")},
    "forget_reworded_rare is '7'": {"forget_reworded_rare": 7}, "seed is ''": {"seed": None},
    "seed is 'inf'": {"seed": float("inf")}, "rate is ''": {"rate": None}, "lam is '{\"a\": 1}'": {"lam": {"a": 1}},
    "lam is '[\"a\"]'": {"lam": ["a"]},
    "shares is '{\"forget/direct/all\": 1}'": {"shares": {"forget/direct/all": 1}},
    "versions is '[1]'": {"versions": [1]}, "config is 'x'": {"config": "x"},
    f"lam is {'[' * 59!r}"[:-1]: {"lam": "[" * 50_000},
}  # fmt: skip


def test_a_row_comes_back_as_it_was_and_other_columns_are_not_touched(tmp_path):
    stored = Results(tmp_path / "new" / "main.csv")
    stored.append(ROW)
    stored.append({**ROW, "key": "def", "failed": "The loss is\nnot finite. Lower it.", "forget_reworded_rare": None})
    first, second = stored.rows().values()
    assert (first["arm"], first["seed"], first["rate"], first["forget_reworded_rare"]) == (ROW["arm"], 3, 2e-3, 0.25)
    assert first["lam"] == [0.0, 0.125] and first["versions"] == {"torch": "2.13"}
    assert json.loads(first["config"]) == json.loads(ROW["config"])
    assert first["utility"] is None and first["levels"] == []
    assert second["failed"] == "The loss is not finite. Lower it." and second["forget_reworded_rare"] is None
    assert len(stored.path.read_text(encoding="utf-8").splitlines()) == 3, "a line a row"
    first, second = (Results(tmp_path / name) for name in ("a.csv", "b.csv"))
    first.append({**ROW, "quick": 0, "seed": 3, "peak_mb": 640})
    (row,) = first.rows().values()
    second.append(row)
    assert second.path.read_bytes() == first.path.read_bytes()
    stored = Results(tmp_path / "main.csv")
    stored.path.write_text("key,arm\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="another version"):
        stored.rows()


@pytest.fixture
def stored(tmp_path):
    """A file of one row."""
    stored = Results(tmp_path / "main.csv")
    stored.append(ROW)
    return stored


@pytest.mark.parametrize("left", [0, 1, 40, 200])
def test_a_torn_last_line_is_dropped_and_written_over(stored, left):
    whole = stored.path.read_bytes()
    stored.append({**ROW, "key": "def"})
    stored.path.write_bytes(stored.path.read_bytes()[: len(whole) + left])
    assert list(stored.rows()) == ["abc"]
    stored.append({**ROW, "key": "ghi"})
    assert list(stored.rows()) == ["abc", "ghi"]
    assert stored.path.read_bytes().startswith(whole)
    stored.append({**ROW, "seconds": 9})
    assert stored.rows()["abc"]["seconds"] == 9, "the same key again takes the place of the first"
    stored.path.write_text("key,ar", encoding="utf-8")
    assert stored.rows() == {}, "a torn head"
    stored.append(ROW)
    assert list(stored.rows()) == ["abc"]


@pytest.mark.parametrize("said", DAMAGES)
def test_a_damaged_row_is_named_by_its_line_and_column(stored, said):
    stored.append({**ROW, "key": "def", **DAMAGES[said]})
    with pytest.raises(DataError) as caught:
        stored.rows()
    assert f"main.csv, line 3 is damaged ({said}" in caught.value.message
    assert "Delete the line" in caught.value.fix


@pytest.mark.parametrize("line", [b"", b"a,b", b"," * 400, b"\xff" + b"," * 171, b'"' + b"," * 171])
def test_a_line_that_is_no_row_is_named_by_the_command(stored, tmp_path, capsys, line):
    head, row, _ = stored.path.read_bytes().split(b"\n")
    stored.path.write_bytes(b"\n".join([head, line, row, b""]))
    before = stored.path.read_bytes()
    assert main(["bench", "main", "--table", "--out", str(tmp_path)]) == 2
    assert "main.csv, line 2 is damaged" in capsys.readouterr().err
    assert stored.path.read_bytes() == before


def test_without_a_checkout_or_git_the_version_is_noted(monkeypatch, tmp_path):
    asked = paths.commit.__wrapped__  # what is kept is of this checkout
    assert asked() not in ("", paths.VERSION)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert asked() == paths.VERSION, "no git at all"
    monkeypatch.undo()
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    assert asked() == paths.VERSION
