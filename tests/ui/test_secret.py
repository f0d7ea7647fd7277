"""The key of what browsers keep: whole or not there, the same for all processes, and nobody else's to read."""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adapop.errors import RunError
from adapop.paths import ROOT
from adapop.ui.secret import FILE, browser_secret
from refusing import as_nobody

KEY = re.compile("[0-9a-f]{64}")
posix = pytest.mark.skipif(os.name == "nt", reason="rights are POSIX's")
ASK = """
import sys
from pathlib import Path
from adapop.ui.secret import browser_secret
print(browser_secret(Path(sys.argv[1])))
"""


def test_a_key_is_made_once_and_kept(tmp_path):
    key = browser_secret(tmp_path / "runs")
    assert KEY.fullmatch(key) and browser_secret(tmp_path / "runs") == key
    assert browser_secret(tmp_path / "others") != key


@pytest.mark.parametrize("left", [b"", b"abc", b"0" * 63, b"0" * 65, b"Z" * 64, b"0" * 64 + b"\n", b"\xff" * 64])
def test_what_a_crash_left_is_no_key(tmp_path, left):
    (tmp_path / FILE).write_bytes(left)
    key = browser_secret(tmp_path)
    assert KEY.fullmatch(key) and browser_secret(tmp_path) == key


def test_a_crash_while_it_is_written_leaves_none(tmp_path, monkeypatch):
    def crashed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crashed)
    with pytest.raises(KeyboardInterrupt):
        browser_secret(tmp_path)
    assert not (tmp_path / FILE).exists()
    monkeypatch.undo()
    assert KEY.fullmatch(browser_secret(tmp_path))


@posix
def test_only_its_owner_may_read_it(tmp_path):
    old = os.umask(0)
    try:
        key = browser_secret(tmp_path)
        assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
        (tmp_path / FILE).chmod(0o644)
        assert browser_secret(tmp_path) == key
        assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(old)


@pytest.mark.parametrize("left", [None, b""])
def test_two_processes_at_once_agree(tmp_path, left):
    if left is not None:
        (tmp_path / FILE).write_bytes(left)
    command = [sys.executable, "-c", ASK, str(tmp_path)]
    processes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert len({process.communicate(timeout=120)[0] for process in processes}) == 1
    with ThreadPoolExecutor(8) as pool:
        other = tmp_path / "other"
        assert len(set(pool.map(browser_secret, [other] * 8))) == 1


@posix
def test_a_runs_folder_that_cannot_be_used_is_named(tmp_path):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        with as_nobody(), pytest.raises(RunError, match=f"{folder}.* cannot be written to .*ADAPOP_RUNS"):
            browser_secret(Path(folder))
    (tmp_path / "runs").write_text("a file", encoding="utf-8")
    with pytest.raises(RunError, match=r"runs is no folder.*ADAPOP_RUNS"):
        browser_secret(tmp_path / "runs")


@pytest.mark.slow
@posix
def test_the_app_says_so_instead_of_a_traceback(tmp_path):
    (tmp_path / "runs").write_text("a file", encoding="utf-8")
    environment = {**os.environ, "ADAPOP_RUNS": str(tmp_path / "runs")}
    done = subprocess.run(
        [sys.executable, "app.py"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert str(tmp_path / "runs") in done.stderr and "ADAPOP_RUNS" in done.stderr
