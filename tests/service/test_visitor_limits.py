import contextvars
import threading

import pytest

from adapop.errors import LimitError
from adapop.limits import LIMITS
from adapop.service import visitor_limits
from adapop.service.visitor_limits import ACCELERATOR, OPEN, REQUESTS, WRITTEN, Usage
from adapop.service.worker import Line
from raised import raised


@pytest.fixture(autouse=True)
def public(monkeypatch):
    for limit in LIMITS:
        monkeypatch.delenv(limit.name, raising=False)
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_visitor_who_asks_too_often_waits_and_the_others_do_not(monkeypatch):
    monkeypatch.setenv(REQUESTS.name, "30")
    clock, asking = Clock(), ["ada"]
    usage = Usage(lambda: asking[0], clock)
    for _ in range(30):
        usage.spend(REQUESTS)
    raised(
        LimitError,
        r"30 requests of a visitor in a minute \(ADAPOP_REQUESTS_A_MINUTE\). Try again in 2 s",
        usage.spend,
        REQUESTS,
    )
    asking[0] = "bob"
    usage.spend(REQUESTS)
    asking[0] = "ada"
    usage.spend(WRITTEN)
    clock.now = 2.0  # one has leaked; what was refused did not count
    usage.spend(REQUESTS)
    raised(LimitError, "Try again in 2 s", usage.spend, REQUESTS)
    clock.now = 62.0
    for _ in range(30):
        usage.spend(REQUESTS)
    raised(LimitError, "Try again in", usage.spend, REQUESTS)
    monkeypatch.setenv("ADAPOP_PUBLIC", "0")
    monkeypatch.delenv(REQUESTS.name)
    for _ in range(10_000):
        usage.spend(REQUESTS)  # a local user


def test_an_amount_above_the_limit_is_refused_in_words(monkeypatch):
    monkeypatch.setenv(REQUESTS.name, "50")
    raised(LimitError, "ADAPOP_REQUESTS_A_MINUTE.*a machine of your own", Usage().spend, REQUESTS, 100, "ada")


def test_what_is_known_afterwards_is_recorded_beyond_the_limit():
    clock = Clock()
    usage = Usage(clock=clock)
    assert usage.left(ACCELERATOR, "ada") == ACCELERATOR.public
    usage.charge(ACCELERATOR, 1_300.0, "ada")
    assert usage.left(ACCELERATOR, "ada") == 0
    raised(LimitError, "ADAPOP_SECONDS_AN_HOUR", usage.check, ACCELERATOR, "ada")
    usage.check(ACCELERATOR, "bob")
    clock.now = 3_600.0
    usage.check(ACCELERATOR, "ada")
    assert usage.left(ACCELERATOR, "ada") == pytest.approx(1_100.0)


def test_visitors_who_used_nothing_lately_are_forgotten(monkeypatch):
    monkeypatch.setattr(visitor_limits, "MOST_BUCKETS", 10)
    clock = Clock()
    usage = Usage(clock=clock)
    for number in range(100):
        clock.now += 61.0
        usage.spend(REQUESTS, 8_000.0, f"visitor {number}")
    assert len(usage._buckets) <= 11


def test_a_visitor_with_too_many_open_requests_or_events_is_refused_and_another_is_not(monkeypatch):
    monkeypatch.setenv(REQUESTS.name, str(2 * OPEN))
    usage = Usage()
    for counted in (usage.open, usage.thread):
        with counted("ada"), counted("ada"):
            raised(LimitError, "allowed at once", counted("ada").__enter__)
            with counted("bob"):
                pass
        with counted("ada"):
            pass
    assert not usage._counts, "what ended is not counted"


def test_turns_of_those_who_wait():
    line, done, gate = Line(), [], threading.Event()
    first = line.run(gate.wait, 30)
    runs = [line.run(done.append, f"run {number}") for number in range(3)]
    questions = [line.question(done.append, f"question {number}") for number in range(3)]
    later = line.question(lambda: line.question(done.append, "asked meanwhile"))
    assert line.questions == 4
    gate.set()
    for future in (first, *runs, *questions, later, later.result()):
        future.result(30)
    assert done == ["question 0", "question 1", "question 2", "run 0", "asked meanwhile", "run 1", "run 2"]


def test_an_error_reaches_who_waits_and_the_line_goes_on_in_each_ones_context():
    visitor, line = contextvars.ContextVar("visitor"), Line()
    failed = line.run(lambda: 1 / 0)
    visitor.set("ada")
    ada = line.question(visitor.get)
    visitor.set("bob")
    bob = line.run(visitor.get)
    raised(ZeroDivisionError, "", failed.result, 30)
    assert (ada.result(30), bob.result(30)) == ("ada", "bob")
