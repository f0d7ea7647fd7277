"""The tour's two runs, AdaPop's and WGA's: made once on an installation, shown to every visitor, stopped by none."""

from __future__ import annotations

import json
import threading
import time
from collections import namedtuple
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING

from adapop.config.presets import make_config
from adapop.errors import AdaPopError
from adapop.facts.catalog import load_facts
from adapop.facts.fact import Fact
from adapop.facts.world import sandbox_facts
from adapop.probes.plan import Plan
from adapop.probes.prompts import DIRECT, REWORDED, ProbeRow, direct
from adapop.probes.rewordings import reworded
from adapop.runs import files
from adapop.runs.run import Run
from adapop.service.worker import Worker
from adapop.ui.access import known_run
from adapop.ui.run.screen import seen_of
from adapop.ui.tour.story import Story, TwoFacts, guard_of, outcome_of, reworded_of, rows_of, training_of

if TYPE_CHECKING:
    from adapop.probes.ask import Asked

METHODS = {"adapop": "AdaPop", "wga": "WGA"}
SEED, EPOCHS = 0, 5
FRESH_SECONDS = 0.5  # many visitors look at the same runs
NOTE = ".tour.json"
OVER = ("failed", "stopped", "stopping", "interrupted", "expired")


# a story with the runs it is of. over: nothing more will come. until: when it is to be told anew
_Told = namedtuple("_Told", "runs story over until")


class TourRuns:
    """One for an app. Everything returns at once but `start`, which waits until the engine is imported."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._lock = threading.Lock()
        self._asked: dict[tuple[str, str], Future] = {}
        self._last: _Told | None = None
        rare, popular = load_facts("pair").forget
        beta = make_config().beta
        self.pair = TwoFacts(rare, popular, beta(rare.score), beta(popular.score))

    def start(self) -> None:
        """Makes the runs that are missing, failed, or of another version; goes on with what was interrupted.

        Raises:
            AdaPopError: a run cannot be prepared.
        """
        with self._lock:
            noted = self._noted()
            runs = {method: self._sound(method, noted.get(method)) or self._made(method) for method in METHODS}
            if {method: run.id for method, run in runs.items()} != noted:
                self._note(runs)
            for run in runs.values():
                # asked first: a run that leaves the queue has said how it ended
                if self._worker.ahead_of(run) is None and run.state != "done":
                    self._worker.enqueue(run)  # the process that worked on it is gone
            self._asked = {key: future for key, future in self._asked.items() if not _failure(future)}

    def run(self, method: str) -> Run | None:
        """The run of a method, None if there is none."""
        return known_run(self._worker, self._noted().get(method))

    def asked(self) -> list[Asked]:
        """What both models of AdaPop's run said to the popular fact's question and its rewordings; empty so far."""
        run = self.run("adapop")
        future = self._asked.get((run.id, self.pair.popular.id)) if run else None
        return future.result() if future and future.done() and not future.exception() else []

    def story(self) -> Story:
        """What is known by now. Has the runs that are done asked what the story still lacks."""
        with self._lock:
            runs = {method: self.run(method) for method in METHODS}
            if self._last and self._last.runs == runs and (self._last.over or time.monotonic() < self._last.until):
                return self._last.story
            story = self._told(runs)
            over = story.complete and bool(self.asked())
            self._last = _Told(runs, story, over, time.monotonic() + FRESH_SECONDS)
            return story

    def _told(self, runs: dict[str, Run | None]) -> Story:
        """The story from the runs' folders. awaited, trouble: of the first run that has any."""
        outcomes, awaited, troubles, parts = {}, [], [], {}
        for method, run in runs.items():
            now, readable, events = seen_of(self._worker, run.id if run else "", "ready")
            if readable and method == "adapop":
                parts = {"training": training_of(events), "guard": guard_of(events, readable.config)}
            if now.state in OVER or (run and not readable):
                troubles.append(f"{METHODS[method]}: {now.label}. {now.detail}")
            elif now.state != "done":
                awaited.append((f"{METHODS[method]}: {now.label.lower()}, {now.detail or '…'}", now.percent))
            elif found := self._probes(readable):
                outcomes[method] = outcome_of(readable, found, self.pair)
                if method == "adapop":
                    parts["reworded"] = reworded_of(rows_of(found, self.pair.popular))
            elif failure := self._ask(readable):
                troubles.append(f"{METHODS[method]}: {failure}")
            else:
                awaited.append((f"{METHODS[method]}: every question is asked again in other words", 100))
            if now.state == "done" and method == "adapop" and (failure := self._ask(readable, self.pair.popular)):
                troubles.append(failure)
        text, percent = awaited[0] if awaited else ("", 0)
        return Story(self.pair, **parts, **outcomes, awaited=text, percent=percent, trouble=" ".join(troubles))

    def _ask(self, run: Run, fact: Fact | None = None) -> str:
        """Has one fact asked of a run, or else all it should have forgotten, unless that is under way. Returns why it
        failed, empty if it did not."""
        key = (run.id, fact.id if fact else "")
        if not fact and key in self._asked and self._asked[key].done() and not _failure(self._asked[key]):
            del self._asked[key]  # somebody has since probed the run in another way, and so replaced what was found
        if key not in self._asked:
            if fact:
                prompts = [direct(fact), *reworded(fact)]
                texts, golds = [prompt.text for prompt in prompts], [prompt.gold for prompt in prompts]
                self._asked[key] = self._worker.ask(run, texts, golds)
            else:
                plan = Plan((DIRECT, REWORDED), ("forget",), max_new_tokens=run.config.max_new_tokens)
                self._asked[key], _ = self._worker.probe(run, plan)
        return _failure(self._asked[key])

    def _probes(self, run: Run) -> list[ProbeRow] | None:
        """What its facts to forget said directly and reworded; None while one is missing: a visitor's own probing of
        the run asks less."""
        try:
            found = run.probes() or []
        except AdaPopError:  # of another version
            return None
        rows = [row for row in found if isinstance(row, ProbeRow) and row.group == "forget"]
        direct, others = ([row for row in rows if row.kind == kind] for kind in (DIRECT, REWORDED))
        asked = {row.fact_id for row in direct} & {row.fact_id for row in others}
        return [*direct, *others] if asked >= {fact.id for fact in run.facts.forget} else None

    def _sound(self, method: str, name: str | None) -> Run | None:
        """A run as it would be made today that has not failed, None otherwise."""
        run = known_run(self._worker, name)
        if run is None or not run.shared:
            return None
        try:
            wanted = make_config(method, epochs=EPOCHS, seed=SEED)
            same = run.config == replace(wanted, system=run.config.system)  # that was settled when it was prepared
            ours = run.facts.sha256 == sandbox_facts().sha256
            return run if same and ours and run.state not in ("failed", "stopped", "stopping") else None
        except AdaPopError:  # of another version
            return None

    def _made(self, method: str) -> Run:
        run = self._worker.submit(make_config(method, epochs=EPOCHS, seed=SEED), sandbox_facts())
        run.share()
        return run

    def _noted(self) -> dict[str, str]:
        path = self._worker.root / NOTE
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def _note(self, runs: dict[str, Run]) -> None:
        text = json.dumps({method: run.id for method, run in runs.items()})
        files.write_text(self._worker.root / NOTE, text)


def _failure(future: Future) -> str:
    """Why it failed, empty if it did not or is not done."""
    return str(future.exception() or "") if future.done() else ""
