import pytest

from adapop.errors import DataError
from adapop.progress import started


@pytest.mark.parametrize("error", [DataError("what", "fix"), ValueError("x"), SystemExit(1)])
def test_every_error_reaches_who_waits_for_it(error):
    def work(progress):
        raise error

    assert started(work)[0].exception(5) is error
