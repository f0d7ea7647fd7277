"""Work in the background: watched, stopped, and never lost in silence."""

import time

import pytest

from adapop.errors import DataError, NetworkError, Stopped
from adapop.progress import Progress, started


def test_work_returns_what_it_returns_unless_stopped():
    future, _ = started(lambda progress: 42)
    assert future.result(5) == 42
    progress = Progress()
    progress.stop()
    with pytest.raises(Stopped, match="Stopped"):
        progress.say("more")


def test_what_it_does_can_be_read_meanwhile():
    def work(progress):
        progress.say("half way")
        progress.wait(30)

    future, progress = started(work)
    deadline = time.monotonic() + 5
    while not progress.text and time.monotonic() < deadline:
        assert not future.done()
        time.sleep(0.01)
    assert progress.text == "half way"
    progress.stop()
    error = future.exception(5)
    assert isinstance(error, Stopped) and not isinstance(error, NetworkError), "no service failed"


@pytest.mark.parametrize("error", [DataError("what", "fix"), ValueError("x"), SystemExit(1)])
def test_every_error_reaches_who_waits_for_it(error):
    def work(progress):
        raise error

    assert started(work)[0].exception(5) is error
