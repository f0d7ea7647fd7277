"""A program that uses the app as many do at once, and checks that every answer is its own."""

import random
import re
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from calling import Refused, call

from adapop import BetaMap, Fact
from adapop.facts.world import sandbox_facts
from adapop.limits import QUEUE
from adapop.probes.prompts import DIRECT

OWN = 4  # facts to forget of each client
QUESTIONS = 4  # of a run that is done; then the next is started
THINKS = 1.0, 3.0  # seconds between two requests
PATIENCE_SECONDS = 240.0
LIMIT = re.compile(r"ADAPOP_\w+")
ENDED = ("done", "stopped")


@dataclass
class Tally:
    """What all clients saw together. seconds: each answer took, by endpoint. refused: by the limit's name. ended: runs
    that were done. longest: the longest line that was told. asked, right: questions, and those that the original
    answered."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: Counter = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    ended: int = 0
    longest: int = 0
    asked: int = 0
    right: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def expect(self, what: str, holds: bool) -> None:
        """Notes an answer that cannot be this client's, or cannot be true."""
        if not holds:
            self.wrong.append(what)


class Client:
    """One of them. number: which; it decides its address, its facts and what it does when."""

    def __init__(self, address: str, number: int, tally: Tally) -> None:
        every = sandbox_facts().forget
        self.facts = [every[(number * OWN + place) % len(every)] for place in range(OWN)]
        self.epochs = 1 + number % 2
        self.state, self._run, self._ahead, self._asked = "", "", QUEUE.public, 0
        self._address, self._number, self._tally = address, number, tally
        self._random = random.Random(number)
        self._headers = {"X-Forwarded-For": f"10.1.{number // 256}.{number % 256}"}

    def work(self, ends: float) -> None:
        """Acts until then (of time.monotonic), then stops its run and waits for its end."""
        while time.monotonic() < ends:
            time.sleep(min(self._random.uniform(*THINKS), max(0.0, ends - time.monotonic())))
            self._act()
        waits = time.monotonic() + PATIENCE_SECONDS
        if self._run and self.state not in ENDED:
            self._stop()
            while self.state not in ENDED and time.monotonic() < waits:
                time.sleep(1.0)
                self._status()

    def _act(self) -> None:
        chance = self._random.random()
        if chance < 0.05:
            self._strangers_run()
        elif chance < 0.2:
            self._beta()
        elif not self._run:
            self._start()
        elif self.state == "done" and chance < 0.8:
            self._probe()
        elif chance < 0.23:
            self._stop()
        else:
            self._status()
        if self.state == "stopped" or self._asked >= QUESTIONS:
            self.state, self._run, self._asked = "", "", 0

    def _said(self, name: str, *values: Any) -> Any:
        """What an endpoint says; None where it refuses or nothing comes, which is noted."""
        began = time.monotonic()
        try:
            (reply,) = call(self._address, name, list(values), self._headers, PATIENCE_SECONDS)
        except Refused as refusal:
            limit = LIMIT.search(str(refusal))
            self._tally.expect(f"{name} said: {refusal}", limit is not None)
            with self._tally.lock:
                self._tally.refused[limit.group() if limit else "none"] += 1
            return None
        except (OSError, ValueError) as error:
            self._tally.lost.append(f"{name}: {type(error).__name__} {error}")
            return None
        self._tally.seconds[name].append(time.monotonic() - began)
        return reply

    def _start(self) -> None:
        rows, chosen = [_row(fact) for fact in self.facts], ("adapop", "paper", None, self.epochs, self._number)
        reply = self._said("start_run", rows, *chosen, "paper", "error", "own")
        if reply:
            self._run, self._ahead = reply["run"], reply["ahead"] or 0
            self._tally.expect("a place beyond the limit of the line", self._ahead < QUEUE.public)
            self._tally.longest = max(self._tally.longest, self._ahead + 1)

    def _status(self) -> None:
        status = self._said("status", self._run)
        if status is None:
            return
        expect, epochs = self._tally.expect, [row["epoch"] for row in status["epochs"]]
        expect("the status of another run", status["run"] == self._run)
        expect("a place further back than before", (status["ahead"] or 0) <= self._ahead)
        expect("an epoch is missing or twice", epochs == list(range(len(epochs))))
        expect("a run has failed", status["state"] not in ("failed", "interrupted", "expired"))
        self._ahead = status["ahead"] or 0
        if status["state"] == "done" and self.state != "done":
            self._tally.ended += 1
            expect("an epoch is lost", len(epochs) == self.epochs + 1)
            place = {"group": "forget", "tier": "all", "form": DIRECT}.items()
            counts = {row["facts"] for row in status["measured"]["before"] if place <= row.items()}
            expect("the facts of another run", counts == {OWN})
        self.state = status["state"]

    def _probe(self) -> None:
        fact = self.facts[self._asked % OWN]
        reply = self._said("probe", self._run, fact.question, fact.answer)
        if reply:
            self._asked += 1
            mine = (reply["prompt"], reply["gold"]) == (fact.question, fact.answer) and fact.question in reply["sent"]
            self._tally.expect("the answer to another question", mine)
            with self._tally.lock:
                self._tally.asked += 1
                self._tally.right += reply["original"]["recall"] == 1.0

    def _stop(self) -> None:
        reply = self._said("stop", self._run)
        if reply:
            self._tally.expect("another run was stopped", reply["run"] == self._run)

    def _beta(self) -> None:
        reply = self._said("beta", [_row(fact) for fact in self.facts], "paper")
        if reply:
            mine = [(fact.question, round(BetaMap()(fact.score), 9)) for fact in self.facts]
            exponents = [(row["question"], round(row["beta"], 9)) for row in reply["facts"]]
            self._tally.expect("the exponents of other facts", mine == exponents)

    def _strangers_run(self) -> None:
        """Tries to stop a run that is not its own; only words may come of it."""
        guess = f"adapop-{self._random.getrandbits(64):016x}"
        try:
            call(self._address, "stop", [guess], self._headers, PATIENCE_SECONDS)
            self._tally.wrong.append("a guessed run was stopped")
        except Refused as refusal:
            self._tally.expect("a guess was not told apart", "There is no run" in str(refusal))
        except (OSError, ValueError) as error:
            self._tally.lost.append(f"stop: {type(error).__name__} {error}")


def at_work(address: str, clients: int, minutes: float, tally: Tally) -> tuple[list[Client], list[threading.Thread]]:
    """So many clients, each in a thread that has begun."""
    crowd = [Client(address, number, tally) for number in range(clients)]
    threads = [threading.Thread(target=one.work, args=(time.monotonic() + 60 * minutes,)) for one in crowd]
    for thread in threads:
        thread.start()
    return crowd, threads


def _row(fact: Fact) -> dict:
    return {"id": fact.id, "question": fact.question, "answer": fact.answer, "score": fact.score}
