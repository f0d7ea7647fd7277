import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from adapop.cli import main
from refusing import permissions_obeyed

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the refusals are made with what POSIX has")


@pytest.fixture
def closed(other, monkeypatch):
    """A runs folder with a run that was stopped, of which nothing may be changed."""
    with tempfile.TemporaryDirectory() as folder:  # unlike pytest's, every user may look into it
        root = Path(folder)
        run = Path(shutil.copytree(other.folder, root / other.id))
        log = run / "events.jsonl"
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-3]))
        (run / "lock").unlink(missing_ok=True)
        folders = [root, run, *(path for path in run.rglob("*") if path.is_dir())]
        for path in folders:
            path.chmod(0o555)
        monkeypatch.setenv("ADAPOP_RUNS", folder)
        monkeypatch.setenv("ADAPOP_CACHE", str(root / "cache"))
        yield root
        for path in folders:
            path.chmod(0o755)


@pytest.mark.parametrize("command", [
    ["run", "--epochs", "1"], ["resume", "RUN"], ["run", "--epochs", "1", "--out", "ROOT/here"],
    ["sandbox", "build", "--part", "corpus", "--out", "ROOT/corpus.txt"], ["sandbox", "build", "--out", "ROOT/model"],
    ["report", "RUN", "--out", "ROOT/report.html"], ["report", "RUN", "--out", "ROOT/report.zip"],
    ["score", "sandbox", "--proxy", "column", "--out", "ROOT/facts.csv"]], ids=" ".join)  # fmt: skip
def test_a_read_only_folder_is_named(closed, command, capsys):
    (run,) = closed.iterdir()
    words = [word.replace("ROOT", str(closed)).replace("RUN", run.name) for word in command]
    with permissions_obeyed():
        assert main(words) in (1, 2)
    output = capsys.readouterr()
    assert str(closed) in output.err + output.out, output
    assert "Traceback" not in output.err and "Permission denied" in output.err + output.out


def test_runs_of_a_read_only_folder_are_still_listed_and_asked(closed, cli):
    with permissions_obeyed():
        listing = cli("runs").out
    (run,) = closed.iterdir()
    assert run.name in listing


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the kernel has no full disk")
def test_a_full_disk_is_named_by_the_file_that_found_no_room(cli):
    """A disk that is full names no file itself."""
    said = cli("check", "pair", "--out", "/dev/full", status=2).err
    assert f"error: /dev/full cannot be used ({os.strerror(errno.ENOSPC)})" in said
