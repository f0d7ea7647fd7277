"""Runs that are killed come to the same numbers, and runs that are over leave nothing in the process."""

import gc
import multiprocessing
import os
import shutil
from dataclasses import replace

import psutil
import pytest
from crashes import survived

from adapop import METHODS, make_config
from adapop.facts.world import sandbox_facts
from adapop.model.adapted import AdaptedModel
from adapop.service import jobs
from adapop.service.worker import Worker
from waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.slow


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="needs processes that fork")
def test_killed_runs_come_to_what_undisturbed_runs_come_to(tmp_path):
    tally = survived(6, 0, tmp_path)
    assert (tally.kills, tally.different) == (6, [])
    assert tally.runs >= 2, "four attempts a run at most, and one may come to its end before its kill"


@pytest.mark.skipif(os.name == "nt", reason="file descriptors are POSIX's")
def test_a_process_keeps_nothing_of_the_runs_it_has_done(tmp_path):
    """The last model that was asked is kept on purpose; threads, files and models may be fewer, where a test before has
    let go of one only now."""
    worker, world, seen = Worker(tmp_path), sandbox_facts(), []
    facts = replace(world, forget=world.forget[:4], retain=world.retain[:4], holdout=(), utility=())
    for method in [*METHODS][:8]:
        run = worker.submit(make_config(method, epochs=1, batch=2, micro_batch=2), facts)
        asked = [facts.forget[0].question], [facts.forget[0].answer]
        worker.ask(run, jobs.ask_models, *asked).result(PATIENCE_SECONDS)
        assert run.state == "done", method
        shutil.rmtree(run.folder)
        gc.collect()
        models = sum(type(thing) is AdaptedModel for thing in gc.get_objects())
        seen.append((psutil.Process().num_threads(), psutil.Process().num_fds(), models))
    assert all(late <= early for early, late in zip(seen[1], seen[-1], strict=True)), seen
