"""The queue: one thing at a time, in order, and a run that outlives whoever asked for it."""

import pytest

from adapop.config.presets import make_config
from adapop.errors import DataError
from adapop.service.worker import Worker
from tiny_runs import tiny_config
from waiting import PATIENCE_SECONDS, wait_until


@pytest.fixture
def worker(tmp_path):
    return Worker(tmp_path)


def test_a_run_stopped_while_it_waits_never_trains_and_can_be_resumed(worker, tiny):
    config = tiny_config()
    first, second = worker.submit(config, tiny), worker.submit(config, tiny)
    second.request_stop()
    wait_until(lambda: worker.ahead_of(second) is None)
    assert (first.state, second.state, second.last_epoch) == ("done", "stopped", None)
    second.clear_stop()
    worker.enqueue(second)
    worker.enqueue(second)
    wait_until(lambda: worker.ahead_of(second) is None)
    assert second.state == "done"


def test_a_queue_of_runs_and_looks(worker, tiny, tmp_path):
    from dataclasses import replace

    unscored = replace(tiny, forget=tuple(replace(fact, score=None) for fact in tiny.forget))
    with pytest.raises(DataError, match="no score"):
        worker.submit(make_config(), unscored)
    assert list(tmp_path.iterdir()) == []
    future, progress = Worker(tmp_path).check(make_config(), tiny)
    found = future.result(PATIENCE_SECONDS)
    assert "The model answers 4 of 4 facts" in " ".join(found.lines) and not found.waste
    assert found.pace.step > 0 and progress.text == "Timing a step"
    assert not any(tmp_path.iterdir()), "nothing is left of it"
