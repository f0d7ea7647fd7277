"""The harnesses in small, over the app or runs in processes of their own; each is a script of the
checkout that says in a line what it does, and which options it has."""

import multiprocessing
import os
import re
import subprocess
import sys

import fuzz
import pytest
from calling import failures
from crashes import survived
from lifetime import lived

from adapop.paths import ROOT

OPTIONS = {
    "uploads": "--cases", "crashes": "--kills", "visitors": "--visitors",
    "lifetime": "--runs", "attacks": "--only", "fuzz": "--calls",
}  # fmt: skip
PRINTED = f"""\
* Running on local URL: http://127.0.0.1
an event failed: TypeError, File "{ROOT}/adapop/ui/run/pressure.py", line 111, in _doubt
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


# each as `python SCRIPT --help` starts it, in one process, which loads the libraries once
HELPS = """
import runpy, sys
places = [*sys.path[1:]]
for script in sys.argv[1:]:
    sys.argv, sys.path[:] = [script, "--help"], [script.rpartition("/")[0], *places]
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        assert not end.code
    for name in [name for name, one in sys.modules.items() if "/tests/" in (getattr(one, "__file__", None) or "")]:
        del sys.modules[name]  # what puts the checkout into sys.path does so again
    print("=====")
"""


@pytest.mark.slow
def test_a_script_runs_from_anywhere_and_says_what_it_does(tmp_path):
    scripts = [str(ROOT / "tests" / "reliability" / f"{name}.py") for name in OPTIONS]
    command = [sys.executable, "-c", HELPS, *scripts]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for option, said in zip(OPTIONS.values(), done.stdout.split("=====\n")[:-1], strict=True):
        about = " ".join(said.split("\n\n")[1].split())
        assert about[0].isupper() and about.endswith("."), about
        assert option in said


@pytest.mark.slow
def test_nonsense_does_not_make_the_app_fail(capsys):
    assert fuzz.main(calls=150, seed=7) == 0
    output = capsys.readouterr().out
    for line in ("answers .*error", "failures +0 in our code", "the app +answers$"):
        assert re.search(f"^{line}", output, re.MULTILINE), line


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="needs processes that fork")
@pytest.mark.slow
def test_killed_runs_come_to_what_undisturbed_runs_come_to(tmp_path):
    tally = survived(6, 0, tmp_path)
    assert (tally.kills.total(), tally.different) == (6, [])
    assert tally.runs >= 2, "four attempts a run at most, and one may come to its end before its kill"


@pytest.mark.skipif(os.name == "nt", reason="file descriptors are POSIX's")
@pytest.mark.slow
def test_a_process_keeps_nothing_of_the_runs_it_has_done(tmp_path):
    early, *_, late = lived(8, 2, tmp_path)
    assert (early.runs, late.runs) == (2, 8)
    for held in ("threads", "files", "models"):  # fewer, where a test before it has let go of one only now
        assert getattr(late, held) <= getattr(early, held), (early, late)
