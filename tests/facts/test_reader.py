"""A large upload is read by another process: the same facts, and its processor time is its visitor's."""

import csv
import json
import time

import pyarrow
import pyarrow.parquet
import pytest

from adapop.errors import DataError, ScoresError
from adapop.facts import reader
from adapop.facts.apart import seconds_worked
from adapop.facts.files import FileTable, read_facts, read_table

ROWS = [
    {"question": f"Who wrote é {n}?", "answer": f"Ada, {n}", "score": n / 3, "split": "train", "note": "x" * 60}
    for n in range(900)
]
ROWS[7] |= {"score": -1, "answer": "it's Ünal's"}


def written(folder, suffix, rows):
    path = folder / f"mine{suffix}"
    if suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text(json.dumps(rows), encoding="utf-8")
    return path


SLOW = [pytest.param(suffix, marks=pytest.mark.slow) for suffix in (".csv", ".parquet")]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".json", *SLOW])
def test_a_large_file_gives_the_facts_that_it_gives_in_this_process(suffix, tmp_path):
    path = written(tmp_path, suffix, ROWS)
    own, began = time.thread_time(), seconds_worked()
    table = reader.table_of(path)
    with pytest.raises(ScoresError) as bad:
        table.facts(drop_bad=False)
    assert [problem.row for problem in bad.value.problems] == [row.row for row in _refused(path).problems]
    # it took a process at least as long as to start, of which this thread did little
    assert seconds_worked() - began > 2 * (time.thread_time() - own) + 0.05
    assert isinstance(table, reader.DistantTable) and table.columns == read_table(path).columns
    for choice in ({"drop_bad": True}, {"columns": {"question": "note", "answer": "answer"}}):
        facts, here = table.facts(**choice), read_table(path).facts(**choice)
        assert facts == here and facts.sha256 == here.sha256 and facts.notes == here.notes and facts.notes
        assert facts.problems == here.problems
    assert reader.facts_of(path, "retain", True) == read_facts(path, group="retain")


def _refused(path):
    with pytest.raises(ScoresError) as caught:
        read_table(path).facts(drop_bad=False)
    return caught.value


def test_a_small_file_needs_no_process(tmp_path):
    path = written(tmp_path, ".json", ROWS[:5])
    assert isinstance(reader.table_of(path), FileTable)
    assert reader.facts_of(path, "retain", True) == read_facts(path, group="retain")


BROKEN = {
    "deep": "[" * 100_000, "torn": '[{"question": "' + "x" * 100_000, "twice": '[{"a": 1, "a": 2}]' + " " * 60_000,
}  # fmt: skip


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_large_file_that_is_no_table_is_refused_in_the_same_words(text, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(DataError) as here:
        read_table(path)
    with pytest.raises(DataError) as there:
        reader.table_of(path)
    assert str(there.value) == str(here.value)
