"""How often a visitor may ask, all visitors together, and in what order the one thread works."""

import contextvars
import threading

import pytest

from adapop.errors import LimitError
from adapop.limits import LIMITS
from adapop.service.queue import TurnQueue
from adapop.service.rates import ASK, CROWD, JOB, RUN, Admission


@pytest.fixture(autouse=True)
def public(monkeypatch):
    for limit in LIMITS:
        monkeypatch.delenv(limit.name, raising=False)
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")


class Clock:
    """Seconds that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_visitor_who_asks_too_often_waits_and_the_others_do_not():
    clock, asking = Clock(), ["ada"]
    admission = Admission(lambda: asking[0], clock)
    for _ in range(30):
        admission.admit(ASK)
    with pytest.raises(LimitError, match=r"at most 30 \(ADAPOP_ASKS_A_MINUTE\). Try again in 60 s"):
        admission.admit(ASK)
    asking[0] = "bob"
    admission.admit(ASK)
    asking[0] = "ada"
    admission.admit(RUN)
    clock.now = 59.0
    with pytest.raises(LimitError, match="Try again in 1 s"):
        admission.admit(ASK)
    clock.now = 60.0
    admission.admit(ASK)


def test_all_visitors_together_have_a_limit_that_no_forged_name_gets_round(monkeypatch):
    monkeypatch.setenv("ADAPOP_JOBS_AN_HOUR", "2")
    clock = Clock()
    admission = Admission(clock=clock)
    for number in range(2 * CROWD):
        admission.admit(JOB, f"10.0.0.{number}")
    with pytest.raises(LimitError, match="for all together"):
        admission.admit(JOB, "a new one")
    clock.now = 3600.0
    admission.admit(JOB, "a new one")


def test_what_is_refused_does_not_count():
    clock = Clock()
    admission = Admission(clock=clock)
    for second in range(90):
        clock.now = float(second)
        if second < 30:
            admission.admit(ASK)
        elif second < 60:
            with pytest.raises(LimitError):
                admission.admit(ASK)
        else:
            admission.admit(ASK)


def test_a_local_user_asks_as_often_as_they_like(monkeypatch):
    monkeypatch.setenv("ADAPOP_PUBLIC", "0")
    admission = Admission()
    for _ in range(10_000):
        admission.admit(ASK)


def test_questions_and_runs_take_turns():
    line, done, gate = TurnQueue(), [], threading.Event()
    first = line.run(gate.wait, 30)
    runs = [line.run(done.append, f"run {number}") for number in range(3)]
    asked = [line.question(done.append, f"question {number}") for number in range(3)]
    later = line.question(lambda: line.question(done.append, "asked meanwhile"))
    assert line.questions == 4
    gate.set()
    for future in (first, *runs, *asked, later, later.result()):
        future.result(30)
    assert done == ["question 0", "question 1", "question 2", "run 0", "asked meanwhile", "run 1", "run 2"]


def test_an_error_reaches_who_waits_and_the_line_goes_on_in_each_ones_context():
    visitor = contextvars.ContextVar("visitor")
    line = TurnQueue()
    failed = line.run(lambda: 1 / 0)
    visitor.set("ada")
    ada = line.question(visitor.get)
    visitor.set("bob")
    bob = line.run(visitor.get)
    with pytest.raises(ZeroDivisionError):
        failed.result(30)
    assert (ada.result(30), bob.result(30)) == ("ada", "bob")
