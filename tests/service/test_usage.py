import contextvars
import threading
import time
from contextlib import ExitStack

import pytest

from adapop.errors import LimitError
from adapop.limits import LIMITS, RUNS_EACH
from adapop.service.queue import TurnQueue
from adapop.service.usage import ACCELERATOR, CROWD, JOBS, REQUESTS, Ledger
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
    monkeypatch.setenv(REQUESTS.limit.name, "30")
    clock, asking = Clock(), ["ada"]
    ledger = Ledger(lambda: asking[0], clock)
    for _ in range(30):
        ledger.spend(REQUESTS)
    raised(LimitError, r"at most 30 \(ADAPOP_REQUESTS_A_MINUTE\). Try again in 60 s", ledger.spend, REQUESTS)
    asking[0] = "bob"
    ledger.spend(REQUESTS)
    asking[0] = "ada"
    ledger.spend(JOBS)
    clock.now = 59.0
    raised(LimitError, "Try again in 1 s", ledger.spend, REQUESTS)
    clock.now = 60.0
    for _ in range(30):
        ledger.spend(REQUESTS)  # what was refused did not count
    monkeypatch.setenv("ADAPOP_PUBLIC", "0")
    monkeypatch.delenv(REQUESTS.limit.name)
    for _ in range(10_000):
        ledger.spend(REQUESTS)  # a local user


def test_all_visitors_together_have_a_limit_that_no_forged_name_gets_round(monkeypatch):
    monkeypatch.setenv("ADAPOP_JOBS_AN_HOUR", "2")
    clock = Clock()
    ledger = Ledger(clock=clock)
    for number in range(2 * CROWD):
        ledger.spend(JOBS, visitor=f"10.0.0.{number}")
    raised(LimitError, "for all together", ledger.spend, JOBS, visitor="a new one")
    clock.now = 3600.0
    ledger.spend(JOBS, visitor="a new one")


def test_an_amount_above_the_limit_is_refused_in_words(monkeypatch):
    monkeypatch.setenv("ADAPOP_REQUESTS_A_MINUTE", "50")
    raised(LimitError, "ADAPOP_REQUESTS_A_MINUTE", Ledger().spend, REQUESTS, 100, "ada")


def test_what_is_known_afterwards_or_held_is_written_down_and_given_back():
    clock = Clock()
    ledger = Ledger(clock=clock)
    ledger.check(ACCELERATOR, "ada")
    ledger.charge(ACCELERATOR, 1_300.0, "ada")
    raised(LimitError, "ADAPOP_SECONDS_AN_HOUR", ledger.check, ACCELERATOR, "ada")
    ledger.check(ACCELERATOR, "bob")
    clock.now = 3600.0
    ledger.check(ACCELERATOR, "ada")
    ledger = Ledger()
    with ExitStack() as held:
        for _ in range(RUNS_EACH.value()):
            held.enter_context(ledger.held(RUNS_EACH, "ada"))
        with pytest.raises(LimitError, match="ADAPOP_RUNS_EACH"), ledger.held(RUNS_EACH, "ada"):
            pytest.fail("one too many")
        with ledger.held(RUNS_EACH, "bob"):
            pass
    with pytest.raises(ZeroDivisionError), ledger.held(RUNS_EACH, "ada"):
        _ = 1 / 0
    for _ in range(3 * RUNS_EACH.value()):
        with ledger.held(RUNS_EACH, "ada"):
            pass


def test_a_stranger_waits_no_longer_because_another_was_refused_often():
    """A refusal takes time in proportion to what was asked in the span, and not more."""
    ledger = Ledger()
    for _ in range(REQUESTS.limit.value()):
        ledger.spend(REQUESTS, visitor="ada")
    began = time.perf_counter()
    for _ in range(300):
        raised(LimitError, "", ledger.spend, REQUESTS, visitor="ada")
        ledger.spend(REQUESTS, visitor="bob")
    assert time.perf_counter() - began < 3


def test_turns_of_those_who_wait():
    line, done, gate = TurnQueue(), [], threading.Event()
    first = line.run(gate.wait, 30)
    runs = [line.run(done.append, f"run {number}") for number in range(3)]
    questions = [line.question(done.append, f"question {number}") for number in range(3)]
    later = line.question(lambda: line.question(done.append, "asked meanwhile"))
    assert line.questions == 4
    gate.set()
    for future in (first, *runs, *questions, later, later.result()):
        future.result(30)
    assert done == ["question 0", "question 1", "question 2", "run 0", "asked meanwhile", "run 1", "run 2"]
    line, done, gate = TurnQueue(), [], threading.Event()
    first = line.question(gate.wait, 30, visitor="ada")
    much = [line.question(done.append, f"ada {number}", visitor="ada") for number in range(4)]
    two = [(who, number) for number in range(2) for who in ("bob", "cy")]
    little = [line.question(done.append, f"{who} {number}", visitor=who) for who, number in two]
    run = line.run(done.append, "run")
    late = line.question(lambda: line.question(done.append, "late", visitor="eve"), visitor="dan")
    gate.set()
    for future in (first, *much, *little, run, late, late.result(30)):
        future.result(30)
    assert done[:5] == ["bob 0", "cy 0", "ada 0", "bob 1", "cy 1"], "ada has had one: the one at work"
    assert done.index("late") < done.index("ada 2"), "who comes last does not wait for all of another's"
    assert done[-2:] == ["run", "ada 3"], "and no more than what waited comes before a run"


def test_an_error_reaches_who_waits_and_the_line_goes_on_in_each_ones_context():
    visitor, line = contextvars.ContextVar("visitor"), TurnQueue()
    failed = line.run(lambda: 1 / 0)
    visitor.set("ada")
    ada = line.question(visitor.get)
    visitor.set("bob")
    bob = line.run(visitor.get)
    raised(ZeroDivisionError, "", failed.result, 30)
    assert (ada.result(30), bob.result(30)) == ("ada", "bob")
