import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from adapop.paths import ASSETS, ROOT, VERSION

LEFT_OUT = (".git", "__pycache__", ".venv*", "tests", "build", "*.egg-info")
BIN = "Scripts" if os.name == "nt" else "bin"


def test_every_package_and_every_asset_is_installed():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    there = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "adapop").rglob("__init__.py")}
    assert set(settings["packages"]) == {*there, "adapop.shipped"}
    assert settings["package-data"] == {"adapop.shipped": ["**"]}


class Outsider:
    """A venv of one's own, which finds the libraries of this one, and a folder to work in."""

    def __init__(self, place: Path) -> None:
        self.venv, self.home = place / "venv", place / "home"
        self.home.mkdir()
        venv.create(self.venv, symlinks=os.name != "nt")
        (packages,) = self.venv.rglob("site-packages")
        (packages / "libraries.pth").write_text("\n".join(path for path in sys.path if "site-packages" in path))
        shutil.copytree(ROOT, place / "tree", ignore=shutil.ignore_patterns(*LEFT_OUT))
        offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
        pip = [sys.executable, "-m", "pip", "--python", str(self.venv / BIN / "python")]
        subprocess.run([*pip, "install", *offline, str(place / "tree")], check=True, capture_output=True, text=True)
        shutil.rmtree(place / "tree")

    def does(self, *command: str, status: int = 0) -> str:
        """What a command of the venv prints."""
        plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
        there = plain | {"ADAPOP_RUNS": str(self.home / "runs"), "HOME": str(self.home)}
        words = [self.venv / BIN / command[0], *command[1:]]
        done = subprocess.run(words, cwd=self.home, env=there, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == status, done.stderr[-3000:]
        return done.stdout


def names_below(folder: Path) -> list[str]:
    """Of its files, but for what Python compiled there."""
    paths = (path for path in folder.rglob("[!.]*") if path.is_file() and path.suffix != ".pyc")
    return sorted(str(path.relative_to(folder)) for path in paths)


@pytest.fixture(scope="module")
def outsider(tmp_path_factory):
    return Outsider(tmp_path_factory.mktemp("outsider"))


@pytest.mark.slow
def test_the_command_is_there_with_all_that_is_shipped(outsider):
    assert outsider.does("adapop", "--version").startswith(f"adapop {VERSION}")
    where = "from adapop.paths import *; print(ROOT); print(ASSETS)"
    root, assets = map(Path, outsider.does("python", "-c", where).splitlines())
    assert root.is_relative_to(outsider.venv)
    assert names_below(assets) == names_below(ASSETS)
    assert outsider.does("python", "-c", "import adapop.ui.page; print('page')") == "page\n"


@pytest.mark.slow
def test_runs_are_made_and_reported_also_of_the_method_of_the_docs(outsider):
    run_pair = ("adapop", "run", "--facts", "pair", "--epochs", "1", "--set", "measure_per_tier=2")
    assert "done in" in outsider.does(*run_pair)
    (run,) = (outsider.home / "runs").iterdir()
    outsider.does("adapop", "report", run.name, "--out", "report.html")
    assert (outsider.home / "report.html").stat().st_size > 100_000
    page = (ROOT / "assets/docs/api.md").read_text(encoding="utf-8")
    (block,) = (one for one in re.findall(r"```python\n(.*?)\n```", page, re.DOTALL) if "class Thresholded" in one)
    (outsider.home / "my_methods.py").write_text(block.partition("\n\nrun = ")[0], encoding="utf-8")
    named = ("--method", "my_methods:Thresholded", "--lr", "2e-3")
    assert "done in" in outsider.does(*run_pair, *named)
