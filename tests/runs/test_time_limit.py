"""A run is bounded while it works: it stops when its seconds are used up, and keeps its last epoch."""

from types import SimpleNamespace

import pytest

from adapop.cli.printing import event_text
from adapop.runs import execute as engine
from adapop.runs.execute import execute, prepare
from adapop.service.leases import Leases
from adapop.service.visitor_limits import ACCELERATOR
from adapop.service.worker import Worker
from adapop.training.events import RunStopped, Saved, StepDone
from adapop.ui.run.state import RunSeen, log_lines, view
from interrupting import assert_same_run, config_of
from tiny_runs import ran, tiny_config
from waiting import wait_until


@pytest.fixture
def clock(monkeypatch):
    """The seconds by which a run measures its limit, set by hand."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(engine, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def test_a_run_stops_in_the_step_after_its_seconds_and_goes_on_to_the_same_numbers(bare, clock, tmp_path):
    run, seen = prepare(config_of(), bare, tmp_path / "bounded"), []
    for event in execute(run, seconds=10):
        seen.append(event)
        if isinstance(event, StepDone) and (event.epoch, event.step) == (3, 1):
            clock.seconds = 10
    last = seen[-1]
    assert isinstance(last, RunStopped) and (last.epoch, last.out_of_time) == (2, True)
    assert isinstance(seen[-2], StepDone) and run.state == "stopped" and run.chosen_epoch == 2
    assert not run.stop_requested, "so it can be resumed as it is"
    assert event_text(last) == "stopped: its time was used up; epoch 2 is kept"
    assert log_lines([last], run.config) == ["Stopped: its time on the accelerator was used up; epoch 2 is kept."]
    assert view(RunSeen(tuple(run.events()))).detail.startswith("Its time on the accelerator was used up. Epoch 2 of 3")
    list(execute(run))
    assert_same_run(run, ran(config_of(), bare, tmp_path / "whole"))


def test_a_measurement_is_bounded_too_and_a_run_without_time_loads_no_model(bare, clock, tmp_path):
    run = prepare(config_of(), bare, tmp_path)
    for event in execute(run, seconds=1):
        if isinstance(event, Saved) and event.epoch == run.config.epochs:
            clock.seconds = 2
    assert run.events()[-1].out_of_time and run.measured() is None and run.last_epoch == run.config.epochs
    fresh = prepare(config_of(), bare, tmp_path)
    (stopped,) = execute(fresh, seconds=0)
    assert (stopped.epoch, stopped.out_of_time) == (0, True)


def test_a_user_who_stops_a_bounded_run_is_not_told_that_its_time_was_used_up(bare, tmp_path):
    run = prepare(config_of(), bare, tmp_path)
    for event in execute(run, seconds=1e6):
        if isinstance(event, Saved):
            run.request_stop()
    assert isinstance(run.events()[-1], RunStopped) and not run.events()[-1].out_of_time


def test_a_visitors_run_takes_no_more_than_is_left_of_the_hour(bare, tmp_path, monkeypatch):
    monkeypatch.setenv("ADAPOP_SECONDS_AN_HOUR", "1")
    worker = Worker(tmp_path, sender=lambda: "ada")
    run = worker.submit(tiny_config(epochs=1000, measure="off", frames=0), bare)
    wait_until(lambda: worker.ahead_of(run) is None)
    assert run.events()[-1].out_of_time and worker.usage.left(ACCELERATOR, "ada") < 0.5


def test_a_run_on_a_lent_gpu_asks_for_no_more_leases_than_its_seconds_allow(bare, tmp_path):
    run, leases = prepare(config_of(), bare, tmp_path), Leases(None)
    leases.note_request(run)
    leases.train(run, seconds=0.0)
    assert run.events()[-1].out_of_time and not run.last_epoch
    leases.train(run)
    assert run.state == "done"
