from dataclasses import replace

import pytest

from adapop.config.presets import make_config
from adapop.remark import duration
from adapop.runs.pace import WORDS, Left, Pace, Wait, left_of, pace_of, wait_behind
from adapop.runs.run import create_run
from adapop.service import jobs
from adapop.service.worker import Worker
from adapop.training.events import Measured, RunDone, RunFailed, RunStarted, RunStopped, Saved
from run_events import START, step
from tiny_runs import tiny_config


def start(time: float, epochs: int = 3, steps: int = 4, resumed_from: int = 0) -> RunStarted:
    return replace(START, time=time, epochs=epochs, steps=steps, resumed_from=resumed_from)


def epoch(number: int, begun: float, step_seconds: float, end: float, steps: int = 4) -> list:
    """An epoch's steps, the first at `begun`, then one in so many seconds; it is saved so long after the last."""
    done = [step(number, place, begun + step_seconds * (place - 1)) for place in range(1, steps + 1)]
    last = done[-1].time
    tables = Measured(run="r", epoch=number, rows=(), time=last + end / 2)
    return [*done, tables, Saved(run="r", epoch=number, time=last + end)]


EVENTS = [
    start(9),
    *(step(1, number, 10 + 2 * number) for number in range(3)),
    Saved(run="r", epoch=1, time=19),
    start(99, resumed_from=1),  # much later
    *(step(2, number, 100 + 2 * number) for number in range(3)),
    Saved(run="r", epoch=2, time=111),
    RunDone(run="r", epoch=2, seconds=12.0, time=117),
]


def test_a_run_that_came_to_its_end_shows_its_pace():
    assert pace_of(EVENTS) == Pace(step=2, epoch=6, end=6)
    stopped, one_step = [*EVENTS[:-1], RunStopped(run="r", epoch=2, time=117)], [*EVENTS[:2], EVENTS[4], EVENTS[-1]]
    resumed = [*EVENTS[:4], start(20, epochs=1, resumed_from=1), Saved(run="r", epoch=1, time=21), EVENTS[-1]]
    for unknown in ([], EVENTS[:-1], stopped, one_step, resumed):
        assert pace_of(unknown) is None


def test_pauses_and_earlier_slices_do_not_count():
    again = start(1000, epochs=2, resumed_from=2)
    assert pace_of([*EVENTS[:-1], again, RunDone(run="r", epoch=2, seconds=6.0, time=1006)]).end == 6
    # Ten times slower than before, a day later; of what follows an epoch nothing else is known
    # than from before.
    again = [*ONE, start(90_000, resumed_from=1), step(2, 1, 90_500), step(2, 2, 90_600)]
    assert left_of(again) is None
    again.append(step(2, 3, 90_700))
    assert left_of(again) == Left(5 * 100 + 2 * 20, "epochs")
    again += [step(2, 4, 90_800), Saved(run="r", epoch=2, time=91_000)]
    assert left_of(again) == Left(4 * 100 + 200, "epochs"), "seen since, so what was before is forgotten"
    died = [*ONE[:-1], start(90_000, resumed_from=1), Saved(run="r", epoch=1, time=90_001), step(2, 1, 90_500)]
    died += [step(2, 2, 90_600), step(2, 3, 90_700)]
    assert left_of(died) == Left(5 * 100, "steps"), "what began before that is no step's time"
    slices = [*ONE, start(500, resumed_from=1), *epoch(2, 530, 10, 20), start(900, resumed_from=2)]
    assert left_of(slices) is None
    slices += epoch(3, 930, 10, 20)
    assert left_of(slices[:-3]) == Left(10 + 20, "epochs") and left_of(slices) is None
    events = [
        event for number in range(3) for event in epoch(number + 1, 60 + number * 15, step_seconds=0, end=5, steps=1)
    ]
    assert left_of([start(0, steps=1), *events]) is None, "none is left"
    assert left_of([start(0, epochs=9, steps=1), *events]) == Left(6 * 10 + 6 * 5, "epochs")


FIRST = epoch(1, 50, step_seconds=10, end=20)  # 50 s after the start, for what is done once; saved at 100
ONE = [start(0), *FIRST]


@pytest.mark.parametrize(("events", "left"), [
    ([], None),
    (ONE[:3], None),  # two steps
    (ONE[:4], Left(9 * 10, "steps")),
    (ONE[:5], Left(8 * 10, "steps")),
    (ONE[:6], Left(8 * 10, "steps")),  # measured, and not saved yet
    (ONE, Left(8 * 10 + 2 * 20, "epochs")),
    ([*ONE, step(2, 1, 110)], Left(7 * 10 + 2 * 20, "epochs")),
    ([*ONE, *epoch(2, 110, 10, 20)[:5]], Left(4 * 10 + 20 + 10, "epochs")),  # half of what follows is done
    ([*ONE, *epoch(2, 110, 10, 90)[:5]], Left(4 * 10 + 20, "epochs")),  # it takes longer than it did: never below 0
    ([*ONE, *epoch(2, 110, 10, 20), *epoch(3, 170, 10, 20)], None),  # the last tables are left, never timed
    ([*ONE, RunStopped(run="r", epoch=1, time=101)], None),
    ([*ONE, RunFailed(run="r", message="Bang.", time=101)], None),
])  # fmt: skip
def test_what_is_left_by_hand(events, left):
    assert left_of(events) == left


def test_the_pace_of_other_runs(small, tmp_path):
    usual = Pace(step=1, epoch=7, end=30)
    assert left_of(ONE[:3], usual) is None
    assert left_of(ONE[:4], usual) == Left(9 * 10 + 3 * 7 + 30, "all")
    done = [*ONE, *epoch(2, 110, 10, 20), *epoch(3, 170, 10, 20)]
    saved = done[-1].time
    assert left_of(done, usual) == Left(30, "all")
    assert left_of(done, usual, now=saved + 12) == Left(18, "all")
    assert left_of(done, usual, now=saved + 99) == Left(0, "all")
    assert left_of(ONE, now=ONE[-1].time + 99) == left_of(ONE), "a step is under way, not the end of an epoch"
    run = create_run(make_config(epochs=3), small, None, tmp_path)  # 32 facts, 16 a step
    pace = Pace(step=2, epoch=5, end=7)
    assert pace.left(run) == 3 * (2 * 2 + 5) + 7
    run.checkpoint(1).mkdir()
    assert pace.left(run) == 2 * (2 * 2 + 5) + 7


def test_durations_are_said_as_one_would_say_them():
    expected = {0: "1 s", 7.4: "7 s", 12.4: "10 s", 58: "60 s", 101: "2 min", 3600: "60 min", 9100: "2.5 hours",
            7200: "2 hours", 260_000: "3 days"}  # fmt: skip
    assert [duration(seconds) for seconds in expected] == [*expected.values()]
    assert left_of(ONE[:4]).text == f"about 90 s {WORDS['steps']}"
    assert left_of(ONE).text == f"about 2 min {WORDS['epochs']}"


@pytest.mark.slow
def test_the_worker_says_how_many_and_how_long(tiny, tmp_path):
    worker = Worker(tmp_path)
    for timed in (False, True):
        first, second = (worker.submit(make_config(epochs=50), tiny) for _ in range(2))
        wait = worker.wait_of(second)
        assert (wait.seconds or 0) > 0 if timed else (wait.ahead, wait.seconds) == (1, None)
        assert worker.wait_of(first).ahead == 0
        for run in (second, first):
            run.request_stop()
        done = worker.submit(make_config(epochs=4), tiny)  # one step each
        worker.ask(done, jobs.ask_models, ["Who?"], [""]).result(120)
        assert worker.wait_of(done) is None


def test_a_damaged_run_does_not_hide_the_wait_behind_it(tiny, tmp_path):
    run = create_run(tiny_config(), tiny, None, tmp_path)
    (run.folder / "facts.jsonl").write_text("{")
    assert wait_behind([run], {run.config.model: Pace(1.0, 1.0, 1.0)}, began=0.0) == Wait(1, None)
