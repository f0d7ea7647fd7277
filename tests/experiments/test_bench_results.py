"""Rows on disk: nothing lost, half a line is no row, and the commit without which a number is hearsay."""

import json

import pytest

from adapop import paths
from adapop.errors import DataError
from adapop.experiments import results
from adapop.experiments.results import COLUMNS, LISTS, Results

ROW = {
    "key": "abc", "arm": "WGA, α of AdaPop", "method": "wga", "preset": "paper", "scores": "given", "seed": 3,
    "rate": 2e-3, "quick": 1, "failed": "", "forget_reworded_rare": 0.25, "lam": [0.0, 0.125],
    "config": json.dumps({"a": 1, "text": 'a "quoted", line'}, indent=2), "commit": "c5d+",
    "versions": {"torch": "2.13"},
}  # fmt: skip


def test_a_row_comes_back_as_it_was(tmp_path):
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


def test_a_copied_row_is_written_as_the_first(tmp_path):
    """So one experiment's file can be read like the other's, from which its row was copied."""
    first, second = (Results(tmp_path / name) for name in ("a.csv", "b.csv"))
    first.append({**ROW, "quick": 0, "seed": 3, "peak_mb": 640})
    (row,) = first.rows().values()
    second.append(row)
    assert second.path.read_bytes() == first.path.read_bytes()


@pytest.mark.parametrize("left", [0, 1, 40, 200])
def test_a_torn_last_line_is_dropped_and_written_over(tmp_path, left):
    stored = Results(tmp_path / "main.csv")
    stored.append(ROW)
    whole = stored.path.read_bytes()
    stored.append({**ROW, "key": "def"})
    stored.path.write_bytes(stored.path.read_bytes()[: len(whole) + left])
    assert list(stored.rows()) == ["abc"]
    stored.append({**ROW, "key": "ghi"})
    assert list(stored.rows()) == ["abc", "ghi"]
    assert stored.path.read_bytes().startswith(whole)


def test_a_torn_head_is_written_over(tmp_path):
    stored = Results(tmp_path / "main.csv")
    stored.path.write_text("key,ar", encoding="utf-8")
    assert stored.rows() == {}
    stored.append(ROW)
    assert list(stored.rows()) == ["abc"]


def test_the_same_key_again_takes_the_place_of_the_first(tmp_path):
    stored = Results(tmp_path / "main.csv")
    stored.append(ROW)
    stored.append({**ROW, "seconds": 9})
    assert [row["seconds"] for row in stored.rows().values()] == [9]


def test_a_file_with_other_columns_is_not_touched(tmp_path):
    stored = Results(tmp_path / "main.csv")
    stored.path.write_text("key,arm\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="another version"):
        stored.rows()


def test_every_kind_of_column_is_known():
    assert len(COLUMNS) == len(set(COLUMNS))
    assert {*LISTS, *results.TEXTS, *results.RECALLS, *results.INTERNALS} <= set(COLUMNS)


def test_without_a_checkout_or_git_the_version_is_noted(monkeypatch, tmp_path):
    asked = paths.commit.__wrapped__  # what is kept is of this checkout
    assert asked() not in ("", paths.VERSION)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert asked() == paths.VERSION, "no git at all"
    monkeypatch.undo()
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    assert asked() == paths.VERSION
