"""How long one waits: unknown until it was seen, then by what was seen."""

import pytest

from adapop.config.presets import make_config
from adapop.runs.pace import Pace, pace_of
from adapop.runs.run import create_run
from adapop.service.worker import Worker
from adapop.training.events import RunDone, RunStopped, Saved, StepDone


def step(epoch: int, number: int, time: float) -> StepDone:
    return StepDone(
        run="r", epoch=epoch, step=number, forget_loss=0.0, nll_forget=0.0, nll_by_tier={}, nll_retain=None,
        gradient_norm=0.0, learning_rate=0.1, time=time,
    )  # fmt: skip


EVENTS = [
    *(step(1, number, 10 + 2 * number) for number in range(3)),
    Saved(run="r", epoch=1, time=19),
    *(step(2, number, 100 + 2 * number) for number in range(3)),  # it was resumed much later
    Saved(run="r", epoch=2, time=111),
    RunDone(run="r", epoch=2, seconds=12.0, time=117),
]


def test_a_run_that_came_to_its_end_shows_its_pace():
    assert pace_of(EVENTS) == Pace(step=2, epoch=6, end=6)


@pytest.mark.parametrize(
    "events",
    [[], EVENTS[:-1], [*EVENTS[:-1], RunStopped(run="r", epoch=2, time=117)], [EVENTS[0], EVENTS[3], EVENTS[-1]]],
    ids=["nothing", "at work", "stopped", "one step an epoch"],
)
def test_what_was_not_seen_is_unknown(events):
    assert pace_of(events) is None


def test_a_set_of_another_size_and_a_resumed_run(small, tmp_path):
    run = create_run(make_config(epochs=3), small, None, tmp_path)  # 32 facts, 16 a step
    pace = Pace(step=2, epoch=5, end=7)
    assert pace.left(run) == 3 * (2 * 2 + 5) + 7
    run.checkpoint(1).mkdir()
    assert pace.left(run) == 2 * (2 * 2 + 5) + 7


def test_the_worker_says_how_many_and_how_long(tiny, tmp_path):
    worker = Worker(tmp_path)
    first, second = (worker.submit(make_config(epochs=50), tiny) for _ in range(2))
    wait = worker.wait_of(second)
    assert (wait.ahead, wait.seconds) == (1, None)
    assert worker.wait_of(first).ahead == 0
    for run in (second, first):
        run.request_stop()
    done = worker.submit(make_config(epochs=1), tiny)
    worker.ask(done, ["Who?"], [""]).result(120)
    assert worker.wait_of(done) is None
    first, second = (worker.submit(make_config(epochs=50), tiny) for _ in range(2))
    seconds = worker.wait_of(second).seconds
    assert 0 < worker.wait_of(second).seconds <= seconds
    for run in (second, first):
        run.request_stop()
    worker.ask(done, ["Who?"], [""]).result(120)
