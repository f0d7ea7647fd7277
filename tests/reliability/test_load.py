"""`load.py` in small: three programs at once for some seconds, over the app in a process of its own."""

import re

import load
import pytest

pytestmark = pytest.mark.slow


def test_three_programs_at_once_lose_and_mix_up_nothing(capsys):
    assert load.main(clients=3, minutes=0.1) == 0
    said = capsys.readouterr().out
    assert re.search(r"^start_run +3 ", said, re.MULTILINE)
    assert re.search(r"^lost +0$", said, re.MULTILINE)
    assert re.search(r"^wrong +0$", said, re.MULTILINE)
    assert re.search(r"^last runs +3 of 3 ", said, re.MULTILINE)
    assert re.search(r"^memory +\d+", said, re.MULTILINE)
