"""`load.py`, `fuzz.py` and `misbehaving.py` in small, over the app in a process of its own."""

import re

import fuzz
import load
import misbehaving
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


def test_nonsense_makes_the_app_neither_fail_nor_quote(capsys):
    assert fuzz.main(calls=150, seed=7) == 0
    said = capsys.readouterr().out
    assert re.search(r"^answers .*error", said, re.MULTILINE)
    assert re.search(r"^failures +0 in our code", said, re.MULTILINE)
    assert re.search(r"^tracebacks +0$", said, re.MULTILINE)


def test_one_that_misbehaves_in_every_way_costs_others_no_answer(capsys):
    """How long the others wait is left to the command: three clients are too few to tell."""
    misbehaving.main(clients=3, minutes=0.2)
    said = capsys.readouterr().out
    for what in ("lost", "wrong", "failures", "tracebacks"):
        assert re.search(rf"^{what} +0\b", said, re.MULTILINE), said
    ways = re.findall(r"^  (.+?) +([\d,]+) times, ([\d,]+) as far as it can$", said, re.MULTILINE)
    assert len(ways) == 9
    assert [way for way, _, met in ways if met == "0"] == []
