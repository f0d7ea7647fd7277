"""Commands in process: what they say, and with which status they end."""

import json
from collections import namedtuple

import pytest

from adapop.cli import main


class Said(namedtuple("Said", "out err")):
    @property
    def rows(self):
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def cli(capsys):
    def said(*words, status=0):
        capsys.readouterr()
        found, captured = main([str(word) for word in words]), capsys.readouterr()
        assert found == status, captured
        return Said(*captured)

    return said
