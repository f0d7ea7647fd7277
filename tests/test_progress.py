"""Work in the background: watched, stopped, and never lost in silence."""

import logging
import time

import pytest

from adapop.errors import DataError, NetworkError, Stopped
from adapop.progress import Progress, Task


def test_a_task_returns_what_its_work_returns():
    task = Task(lambda progress: 42)
    assert task.wait(5)
    assert (task.result, task.error) == (42, None)


def test_what_it_does_can_be_read_meanwhile():
    def work(progress):
        progress.say("half way")
        progress.wait(30)

    task = Task(work)
    deadline = time.monotonic() + 5
    while not task.progress.text and time.monotonic() < deadline:
        assert not task.wait(0.01)
    assert task.progress.text == "half way"
    task.stop()
    assert task.wait(5)
    assert isinstance(task.error, Stopped) and not isinstance(task.error, NetworkError), "no service failed"


def test_our_errors_are_kept_as_they_are():
    error = DataError("what", "fix")

    def work(progress):
        raise error

    task = Task(work)
    assert task.wait(5)
    assert task.error is error


def test_a_bug_is_told_without_the_users_words(caplog):
    def work(progress):
        raise ValueError("the user's secret")

    with caplog.at_level(logging.DEBUG):
        task = Task(work)
        assert task.wait(5)
    assert "ValueError" in str(task.error)
    assert "ValueError" in caplog.text
    assert "secret" not in str(task.error) + caplog.text


def test_saying_something_after_a_stop_ends_the_work():
    progress = Progress()
    progress.stop()
    with pytest.raises(Stopped, match="Stopped"):
        progress.say("more")
