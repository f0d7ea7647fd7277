"""Each harness is a script of the checkout: it says in a line what it does, and which options it has."""

import subprocess
import sys

import pytest

from adapop.paths import ROOT

OPTIONS = {
    "uploads": "--cases",
    "crashes": "--kills",
    "load": "--minutes",
    "visitors": "--visitors",
    "lifetime": "--runs",
    "misbehaving": "--clients",
    "fuzz": "--calls",
    "drawing": "--dots",
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "option"), OPTIONS.items())
def test_a_script_runs_from_anywhere_and_says_what_it_does(name, option, tmp_path):
    command = [sys.executable, str(ROOT / "tests" / "reliability" / f"{name}.py"), "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    about = " ".join(done.stdout.split("\n\n")[1].split())
    assert about[0].isupper() and about.endswith("."), about
    assert option in done.stdout
