"""`crashes.py` and `lifetime.py` in small: real processes, real kills, one process for many runs."""

import multiprocessing
import os

import pytest
from crashes import survived
from lifetime import lived

pytestmark = pytest.mark.slow


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="needs processes that fork")
def test_killed_runs_come_to_what_undisturbed_runs_come_to(tmp_path):
    found = survived(6, 0, tmp_path)
    assert (found.kills.total(), found.different) == (6, [])
    assert found.runs >= 2, "four attempts a run at most, and one may come to its end before its kill"


@pytest.mark.skipif(os.name == "nt", reason="file descriptors are POSIX's")
def test_a_process_keeps_nothing_of_the_runs_it_has_done(tmp_path):
    early, *_, late = lived(8, 2, tmp_path)
    assert (early.runs, late.runs) == (2, 8)
    assert (early.threads, early.files, early.models) == (late.threads, late.files, late.models)
