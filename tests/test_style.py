"""The house rules that a machine can check."""

import subprocess
import sys

import pytest

from adapop.paths import ROOT

LONGEST_FILE = 300
MOST_LINES = 44_400


@pytest.mark.parametrize("check", [["check"], ["format", "--check"]])
def test_ruff(check):
    command = [sys.executable, "-m", "ruff", *check, "."]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_files_stay_readable():
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / "adapop").rglob("*.py")}
    assert lines
    assert {str(path): count for path, count in lines.items() if count > LONGEST_FILE} == {}
    assert sum(lines.values()) <= MOST_LINES, "delete before you add, see assets/docs/house.md"
    assert f"{MOST_LINES:,}" in (ROOT / "assets" / "docs" / "house.md").read_text(encoding="utf-8")


def test_the_top_level_is_the_one_we_promised():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    top = {name.split("/")[0] for name in listed.stdout.splitlines()}
    folders = {"adapop", "assets", "tests", ".ci"}
    files = {"app.py", "requirements.txt", "README.md", "LICENSE", "pyproject.toml", ".gitignore", ".gitattributes"}
    assert top <= folders | files
