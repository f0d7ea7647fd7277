"""Sets beside the runs: what is kept is what was there, under a name nobody can guess, and nothing else is reached."""

import os
from dataclasses import replace

import pytest

from adapop.errors import LimitError, RunError
from adapop.facts.fact import Problem
from adapop.runs.listed import all_runs
from adapop.service.cleanup import entries
from adapop.service.saved_sets import delete_set, load_set, save_set
from adapop.service.usage import WRITTEN
from adapop.service.worker import Worker
from refusing import as_nobody
from tiny_runs import tiny_config


def test_a_set_comes_back_until_it_is_deleted_or_damaged(small, tmp_path):
    problem = Problem(4, "answer", "", "is empty", "Fill the cell.")
    edited = replace(small, forget=(replace(small.forget[0], score=None), *small.forget[1:]), problems=(problem,))
    name = save_set(edited, tmp_path)
    assert load_set(name, tmp_path) == edited and save_set(edited, tmp_path) != name
    assert all_runs(tmp_path) == []
    name = save_set(small, tmp_path)
    about = tmp_path / "sets" / name / "about.json"
    os.utime(about, (1, 1))
    load_set(name, tmp_path)
    assert about.stat().st_mtime > 1
    name, other = save_set(small, tmp_path), save_set(small, tmp_path)
    delete_set(name, tmp_path)
    delete_set(name, tmp_path)
    assert load_set(name, tmp_path) is None and load_set(other, tmp_path) == small


def test_what_is_no_name_of_ours_reaches_nothing(small, tmp_path):
    (tmp_path / "about.json").write_text("{}", encoding="utf-8")
    save_set(small, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for name in (None, 3, "", "..", "../runs", "a" * 32, "/etc", ["x"], "A" * 32, "0" * 32 + "\n"):
        assert load_set(name, tmp_path) is None
        delete_set(name, tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_who_wrote_too_much_saves_no_set_and_begins_no_run_and_others_do(small, tmp_path, monkeypatch):
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    monkeypatch.setenv("ADAPOP_WRITTEN_MB_AN_HOUR", "1")
    asking = ["203.0.113.1"]
    worker = Worker(tmp_path, sender=lambda: asking[0])
    worker.ledger.charge(WRITTEN, 0.999, asking[0])  # a kilobyte is left, less than a set has
    worker.save_set(small)
    for refused in (lambda: worker.save_set(small), lambda: worker.submit(tiny_config(), small)):
        with pytest.raises(LimitError, match="ADAPOP_WRITTEN_MB_AN_HOUR"):
            refused()
    assert len(entries(tmp_path)) == 1, "what is refused is not written"
    asking[0] = "203.0.113.2"
    worker.save_set(small)
    first, second = entries(tmp_path)
    assert first.visitor and second.visitor and first.visitor != second.visitor


def test_a_folder_that_cannot_be_written_is_named(small, tmp_path):
    with as_nobody(), pytest.raises(RunError, match="sets"):
        save_set(small, tmp_path)
    assert not (tmp_path / "sets").exists()


@pytest.mark.parametrize("name", ["about.json", "facts.jsonl"])
@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"[" * 100_000, b'{"name": 1, "notes": [], "problems": []}'])
def test_a_damaged_set_is_gone(tiny, tmp_path, name, content):
    saved = save_set(tiny, tmp_path)
    (tmp_path / "sets" / saved / name).write_bytes(content)
    assert load_set(saved, tmp_path) is None
