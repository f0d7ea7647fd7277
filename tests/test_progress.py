import pytest

from adapop.errors import DataError, NetworkError, Stopped
from adapop.progress import started


def test_a_stop_is_no_failure_of_a_service():
    assert not issubclass(Stopped, NetworkError)


@pytest.mark.parametrize("error", [DataError("what", "fix"), ValueError("x"), SystemExit(1)])
def test_every_error_reaches_who_waits_for_it(error):
    def work(progress):
        raise error

    assert started(work)[0].exception(5) is error
