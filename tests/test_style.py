"""The house rules that a machine can check."""

import subprocess
import sys

import pytest

from adapop.paths import ROOT


@pytest.mark.parametrize("check", [["check"], ["format", "--check"]])
def test_ruff(check):
    command = [sys.executable, "-m", "ruff", *check, "."]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
def test_the_public_api_and_what_it_stands_on_has_sound_types():
    """`mypy`, as pyproject.toml sets it; what it learnt of libraries is kept for the next time, as by hand."""
    command = [sys.executable, "-m", "mypy"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_top_level_is_the_one_we_promised():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    top = {name.split("/")[0] for name in listed.stdout.splitlines()}
    folders = {"adapop", "assets", "tests", ".ci"}
    files = {"app.py", "requirements.txt", "README.md", "LICENSE", "pyproject.toml", ".gitignore", ".gitattributes"}
    assert top <= folders | files
