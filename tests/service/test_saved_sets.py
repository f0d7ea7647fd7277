"""Sets beside the runs: what is kept is what was there, under a name nobody can guess, and nothing else is reached."""

import os
from dataclasses import replace

import pytest

from adapop.facts.fact import Problem
from adapop.runs.listed import all_runs
from adapop.service.saved_sets import delete_set, load_set, save_set


def test_a_set_comes_back_as_it_was(small, tmp_path):
    problem = Problem(4, "answer", "", "is empty", "Fill the cell.")
    edited = replace(small, forget=(replace(small.forget[0], score=None), *small.forget[1:]), problems=(problem,))
    name = save_set(edited, tmp_path)
    assert load_set(name, tmp_path) == edited
    assert save_set(edited, tmp_path) != name
    assert all_runs(tmp_path) == []


def test_reading_a_set_makes_it_young(small, tmp_path):
    name = save_set(small, tmp_path)
    about = tmp_path / "sets" / name / "about.json"
    os.utime(about, (1, 1))
    load_set(name, tmp_path)
    assert about.stat().st_mtime > 1


def test_a_deleted_set_is_gone_and_so_is_no_other(small, tmp_path):
    name, other = save_set(small, tmp_path), save_set(small, tmp_path)
    delete_set(name, tmp_path)
    delete_set(name, tmp_path)
    assert load_set(name, tmp_path) is None
    assert load_set(other, tmp_path) == small


@pytest.mark.parametrize("name", [None, 3, "", "..", "../runs", "a" * 32, "/etc", ["x"], "A" * 32, "0" * 32 + "\n"])
def test_what_is_no_name_of_ours_reaches_nothing(small, tmp_path, name):
    (tmp_path / "about.json").write_text("{}", encoding="utf-8")
    save_set(small, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert load_set(name, tmp_path) is None
    delete_set(name, tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
