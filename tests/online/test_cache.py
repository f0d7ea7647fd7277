"""What is kept on disk: until when it answers, who may use it at once, and what a user hears when the disk does not."""

import sqlite3
import subprocess
import sys
from datetime import date

import pytest

from adapop.errors import ConfigError
from adapop.online import cache as module
from adapop.online.cache import FILE, Cache, Cached
from adapop.paths import ROOT


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "kept" / "here"


def refused(folder, work) -> ConfigError:
    """The error of a use that fails; it names the folder, and hides what SQLite raised."""
    with pytest.raises(ConfigError) as caught:
        work()
    assert str(folder) in caught.value.message and caught.value.__suppress_context__
    return caught.value


@pytest.mark.parametrize("value", [None, 0, 1.5, "", "東京 🗼 \x1f", [], {"a": [1, None, True]}])
def test_a_value_comes_back_as_it_was(folder, value):
    today = date.today().isoformat()
    assert Cache(folder).put(value, "service", "kind") == Cached(value, today)
    assert Cache(folder).get("service", "kind") == Cached(value, today)


def test_what_was_learnt_last_counts_for_all(folder):
    cache = Cache(folder)
    cache.put(1, "a", "b")
    assert [cache.get(*key) for key in (("a",), ("b",), ("a", "b", ""), ("a b",), ('a", "b',), ())] == [None] * 6
    cache.put("old", "key")
    with sqlite3.connect(folder / FILE) as rows:
        rows.execute("UPDATE known SET date = '2020-01-02'")
    assert cache.get("key") == Cached("old", "2020-01-02")
    cache.put("new", "key")
    assert cache.get("key") == Cached("new", date.today().isoformat())
    first, second = Cache(folder), Cache(folder)
    first.put(1, "key")
    assert second.get("key").value == 1
    second.put(2, "key")
    assert first.get("key").value == 2


def test_refresh_answers_only_what_it_learnt_itself(folder):
    Cache(folder).put("old", "key")
    Cache(folder).put("old", "other")
    fresh = Cache(folder, refresh=True)
    assert fresh.get("key") is None
    fresh.put("new", "key")
    assert (fresh.get("key").value, fresh.get("other")) == ("new", None)
    assert (Cache(folder).get("key").value, Cache(folder).get("other").value) == ("new", "old")


@pytest.mark.slow
def test_processes_can_write_at_once(folder):
    code = """import sys; from pathlib import Path; from adapop.online.cache import Cache
cache = Cache(Path(sys.argv[1])); [cache.put(i, sys.argv[2], str(i)) for i in range(40)]"""
    workers = [subprocess.Popen([sys.executable, "-c", code, folder, name], cwd=ROOT) for name in "abc"]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    cache = Cache(folder)
    assert all(cache.get(name, str(i)).value == i for name in "abc" for i in range(40))


def test_a_value_that_is_no_json_is_not_kept(folder):
    cache = Cache(folder)
    cache.put(1, "key")
    with pytest.raises(TypeError):
        cache.put({1, 2}, "key")
    assert cache.get("key").value == 1


# --- a disk that does not do its part


def test_a_folder_that_cannot_be_made_is_named_but_not_to_strangers(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "cache"
    assert "Set ADAPOP_CACHE" in refused(folder, lambda: Cache(folder)).fix
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    with pytest.raises(ConfigError, match="cache cannot be used") as caught:
        Cache(folder)
    assert str(tmp_path) not in str(caught.value)


def test_a_file_that_is_no_cache_is_to_be_deleted(folder):
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(b"this is no SQLite file, though it is long enough to be one" * 100)
    assert f"delete {folder / FILE}" in refused(folder, lambda: Cache(folder)).fix
    (folder / FILE).unlink()
    Cache(folder).put(1, "key")


def test_damage_that_shows_only_later_is_to_be_deleted(folder):
    cache = Cache(folder)
    for i in range(200):
        cache.put("x" * 500, str(i))
    content = bytearray((folder / FILE).read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    (folder / FILE).write_bytes(content)
    damaged = Cache(folder)
    for use in (lambda: damaged.get("7"), lambda: damaged.put(1, "7"), lambda: damaged.get_all(["7"])):
        assert f"delete {folder / FILE}" in refused(folder, use).fix


def test_a_cache_that_another_program_holds(folder, monkeypatch):
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.05)
    cache = Cache(folder)
    cache.put(1, "key")
    holder = sqlite3.connect(folder / FILE)
    holder.execute("BEGIN EXCLUSIVE")
    for use in (lambda: cache.get("key"), lambda: cache.put(2, "key"), lambda: Cache(folder)):
        assert "wait for that to end" in refused(folder, use).fix
    holder.rollback()
    holder.close()
    assert cache.get("key").value == 1 and cache.put(2, "key").value == 2


def test_a_full_disk(folder):
    cache = Cache(folder)
    cache.put(1, "key")
    cache._rows.execute("PRAGMA max_page_count = 1")  # a disk cannot be filled here; SQLite says the same of both
    assert "Make room" in refused(folder, lambda: cache.put("x" * 100_000, "key")).fix
    assert cache.get("key").value == 1
    fresh = Cache(folder, refresh=True)
    fresh._rows.execute("PRAGMA max_page_count = 1")
    refused(folder, lambda: fresh.put("x" * 100_000, "key"))
    assert fresh.get("key") is None, "what could not be kept is not known after a refresh"
