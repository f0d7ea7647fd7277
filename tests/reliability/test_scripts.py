"""Each harness is a script of the checkout: it says in a line what it does, and which options it has."""

import subprocess
import sys

import pytest
from printed import failures

from adapop.paths import ROOT

OPTIONS = {
    "uploads": "--cases", "crashes": "--kills", "load": "--minutes", "visitors": "--visitors",
    "lifetime": "--runs", "misbehaving": "--clients", "attacks": "--only", "fuzz": "--calls",
    "drawing": "--dots",
}  # fmt: skip


PRINTED = f"""\
* Running on local URL: http://127.0.0.1
an event failed: TypeError, File "{ROOT}/adapop/ui/pressure.py", line 111, in _doubt
an event failed: ValueError, File "/site/gradio/queueing.py", line 1, in process_events
a request failed: KeyError, File "/site/starlette/app.py", line 1, in __call__
a run failed
OSError, File "{ROOT}/adapop/service/worker.py", line 1, in _work
a run failed
"""


def test_failures_of_ours_are_told_from_gradios():
    ours, others = failures(PRINTED.splitlines(keepends=True))
    assert [one.split(",")[0].split()[-1] for one in ours] == ["TypeError", "OSError", "failed"], "no place: ours"
    assert [one.split(",")[0].split()[-1] for one in others] == ["ValueError", "KeyError"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "option"), OPTIONS.items())
def test_a_script_runs_from_anywhere_and_says_what_it_does(name, option, tmp_path):
    command = [sys.executable, str(ROOT / "tests" / "reliability" / f"{name}.py"), "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    about = " ".join(done.stdout.split("\n\n")[1].split())
    assert about[0].isupper() and about.endswith("."), about
    assert option in done.stdout
