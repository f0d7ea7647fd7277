"""The app, served by this process for the tests of a module."""

import pytest

from adapop.service.worker import Worker
from adapop.ui.visitors import SENDER
from browsing import launched


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    return Worker(tmp_path_factory.mktemp("runs"), sender=SENDER.get)


@pytest.fixture(scope="module")
def address(worker):
    """Where the app over `worker` is served; it ends with a slash."""
    with launched(worker) as url:
        yield url
