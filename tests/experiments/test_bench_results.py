import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from adapop import paths
from adapop.errors import ConfigError, DataError, RunError
from adapop.experiments.engine import DIED, finished
from adapop.experiments.results import Results
from adapop.facts.catalog import load_raw
from bench_work import doubled, fussy, killed_at_three, slow, temporary
from raised import raised

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
    stored.append({**ROW, "key": "def", "failed": "It broke.\nMend it.", "forget_reworded_rare": None})
    first, second = stored.rows().values()
    assert (first["arm"], first["seed"], first["rate"], first["forget_reworded_rare"]) == (ROW["arm"], 3, 2e-3, 0.25)
    assert first["lam"] == [0.0, 0.125] and first["versions"] == {"torch": "2.13"}
    assert json.loads(first["config"]) == json.loads(ROW["config"])
    assert first["utility"] is None and first["levels"] == []
    assert second["failed"] == "It broke. Mend it." and second["forget_reworded_rare"] is None
    assert len(stored.path.read_text(encoding="utf-8").splitlines()) == 3, "a line a row"
    first, second = (Results(tmp_path / name) for name in ("a.csv", "b.csv"))
    first.append({**ROW, "quick": 0, "seed": 3, "peak_mb": 640})
    (row,) = first.rows().values()
    second.append(row)
    assert second.path.read_bytes() == first.path.read_bytes()
    stored = Results(tmp_path / "main.csv")
    stored.path.write_text("key,arm\n1,2\n", encoding="utf-8")
    raised(DataError, "another version", stored.rows)


@pytest.fixture
def stored(tmp_path):
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


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_row_is_named_by_its_line_and_column(stored, damage):
    stored.append({**ROW, "key": "def", **DAMAGES[damage]})
    error = raised(DataError, "", stored.rows)
    assert f"main.csv, line 3 is damaged ({damage}" in error.message
    assert "Delete the line" in error.fix


@pytest.mark.parametrize("line", [b"", b"a,b", b"," * 400, b"\xff" + b"," * 171, b'"' + b"," * 171])
def test_a_line_that_is_no_row_is_named_by_the_command(stored, tmp_path, cli, line):
    head, row, _ = stored.path.read_bytes().split(b"\n")
    stored.path.write_bytes(b"\n".join([head, line, row, b""]))
    before = stored.path.read_bytes()
    assert "main.csv, line 2 is damaged" in cli("bench", "main", "--table", "--out", tmp_path, status=2).err
    assert stored.path.read_bytes() == before


def test_without_a_checkout_or_git_the_version_is_noted(monkeypatch, tmp_path):
    uncached_commit = paths.commit.__wrapped__  # what is kept is of this checkout
    assert uncached_commit() not in ("", paths.VERSION)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert uncached_commit() == paths.VERSION, "no git at all"
    monkeypatch.undo()
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    assert uncached_commit() == paths.VERSION


def test_every_item_is_done_once_by_long_lived_workers():
    done = list(finished(range(7), doubled, 2))
    assert sorted((one.item, one.result[0]) for one in done) == [(item, 2 * item) for item in range(7)]
    assert {one.error for one in done} == {""}
    workers = {one.result[1] for one in done}
    assert 1 <= len(workers) <= 2 and os.getpid() not in workers
    assert [one.result for one in finished([3], doubled, 1)] == [(6, os.getpid())], "one process is this one"


def test_an_exception_is_its_item_s_alone():
    done = {one.item: one for one in finished(range(4), fussy, 2)}
    assert done[2].error == "ValueError: not this one" and done[2].result is None
    assert [done[item].result for item in (0, 1, 3)] == [0, 1, 3]


def test_if_a_process_is_killed_what_is_done_is_kept_and_the_rest_says_so():
    done = {one.item: one for one in finished(range(6), killed_at_three, 2)}
    assert done.keys() == set(range(6)) and done[3].error == DIED and done[0].result == 0
    assert {one.error for one in done.values()} == {"", DIED}


def test_closing_it_ends_the_work_and_nothing_is_left_behind():
    work = finished(range(20), slow, 2)
    begun = time.monotonic()
    first = next(work)
    work.close()
    assert time.monotonic() - begun < 18, "twenty seconds of work for two"
    (one,) = finished([first.item], temporary, 1)
    assert "adapop-bench-" not in one.result
    one, _ = finished([0, 1], temporary, 2)
    assert "adapop-bench-" in one.result and not Path(one.result).exists()


def test_ray_where_it_is_missing_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    raised(ConfigError, "pip install ray", list, finished([1], doubled, 1, ray=True))
    assert list(finished([], doubled, 1, ray=True)) == []


def test_ray_that_does_not_start_says_so_and_where_to_look(monkeypatch):
    def fails(**options):
        raise Exception("The current node timed out during startup.\nIt has a long trace.")

    joblib = SimpleNamespace(register_ray=None)
    for name, module in {"ray": SimpleNamespace(init=fails), "ray.util": None, "ray.util.joblib": joblib}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    raised(RunError, r"did not start: The current node timed out during startup\. Try again", list,
           finished([1], doubled, 1, ray=True))  # fmt: skip
    monkeypatch.setenv("RAY_ADDRESS", "elsewhere:6379")
    raised(RunError, "Check RAY_ADDRESS", list, finished([1], doubled, 1, ray=True))


@pytest.mark.slow
def test_ray_shares_the_work_between_two_workers_and_gives_what_one_process_gives(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    # a function of the package, which travels to the workers with its assets, as the tests do not
    sets = ["pair", "cities", "sandbox"]

    def read(processes, **where):
        return {one.item: (one.result.sha256, one.error) for one in finished(sets, load_raw, processes, **where)}

    assert read(2, ray=True) == read(1) and len(read(1)) == len(sets)
