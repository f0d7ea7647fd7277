"""The table of waiting times: the sandbox and the app here, each row in its own process."""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from adapop.paths import ROOT

RUN = """
import resource, sys, time
from pathlib import Path
begun = time.perf_counter()
from adapop.config.presets import make_config
from adapop.facts.world import sandbox_facts
from adapop.runs.execute import execute, prepare
from adapop.training.events import ComparedToOracle, EpochDone
imported = time.perf_counter()
run = prepare(make_config(), sandbox_facts(), Path(sys.argv[1]))
first = trained = now = None
for event in execute(run):
    before, now = now, time.perf_counter()
    first = first or now
    if isinstance(event, EpochDone):
        trained = now
    if isinstance(event, ComparedToOracle):
        compared = now - before
done = time.perf_counter()
unit = 1 if sys.platform == "darwin" else 1024  # bytes
megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
print(imported - begun, first - imported, trained - imported, done - imported, compared, megabytes)
"""
FACTS = """
import random, sys, time
from pathlib import Path
count, path = int(sys.argv[1]), Path(sys.argv[2])
rng = random.Random(0)
with open(path, "w", encoding="utf-8") as file:
    file.write("question,answer,subject,relation,score\\n")
    for i in range(count):
        score = rng.lognormvariate(6, 1.5)
        file.write(f"Who wrote the book number {i}?,Author {i % 97},Book {i},author,{score:.1f}\\n")
from adapop.facts.files import read_facts
from adapop.popularity.beta import BetaMap
from adapop.report import figures
from adapop.ui.facts.table import fact_table
from adapop.ui.pressure import pictures
begun = time.perf_counter()
facts = read_facts(path)
table = fact_table(facts, BetaMap(), {})
figures.popularity_strip(facts.forget).to_json()
pictures(facts)
print(time.perf_counter() - begun)
"""
PROBES = """
import sys, time
from dataclasses import replace
from adapop.config.presets import make_config
from adapop.facts.world import sandbox_facts
from adapop.model.loading import adapted_model
from adapop.probes import battery
from adapop.probes.plan import Plan
from adapop.progress import Progress
count, *chunk = map(int, sys.argv[1:])
battery.CHUNK = chunk[0] if chunk else battery.CHUNK
config, sandbox = make_config(), sandbox_facts()
model = adapted_model(config)
def rows(facts):
    chosen = replace(sandbox, forget=sandbox.forget[:facts], retain=(), holdout=(), utility=())
    plan = Plan(max_new_tokens=config.max_new_tokens)
    asked = battery.battery(model, chosen, plan, Progress())
    return sum(isinstance(row, battery.ProbeRow) for row in asked)
rows(1)
begun = time.perf_counter()
print(rows(count), time.perf_counter() - begun)
"""
RECOVERY = """
import time
from adapop.probes.recovery.choice import applicable, recover
from adapop.progress import Progress
from adapop.runs.examples import example
from adapop.runs.execute import load_model
run = example("wga")
model = load_model(run)
for name in applicable(run.facts):
    begun = time.perf_counter()
    recover(name, model, run.facts, run.reply_tokens, Progress(), run.config.model)
    print(name, time.perf_counter() - begun)
"""
PAGE_LIMIT_SECONDS = 120
SETTLED_SECONDS = 5
LINES_KEPT = 50  # of the app's output


def main() -> None:
    """Prints the table. Takes about two minutes."""
    print(f"{'what':<52}{'measured':>12}{'goal':>12}")
    with tempfile.TemporaryDirectory() as folder:
        of_run = printed(RUN, folder)
    imported, first, trained, done, compared, megabytes = map(float, of_run.split())
    for count, goal in ((2_000, "1 s"), (20_000, "5 s")):
        with tempfile.TemporaryDirectory() as folder:
            seconds = float(printed(FACTS, str(count), f"{folder}/facts.csv"))
        _row(f"{count:,} facts read, scored from a column and drawn", f"{seconds:.1f} s", goal)
    _row("engine imported (the app does it in the background)", f"{imported:.1f} s", "")
    _row("first event after the click", f"{first:.1f} s", "2 s")
    _row("5 epochs with measurements and frames", f"{trained:.1f} s", "8 s")
    _row("the same with the full table before and after", f"{done:.1f} s", "")
    added = f"{compared / (done - compared):.0%}"
    _row("what the distance to the oracle adds to that", added, "15 %")
    _row("peak memory of the run", f"{megabytes / 1000:.2f} GB", "1.5 GB")
    rows, batched = map(float, printed(PROBES, "200").split())
    _row("200 facts asked in every form, both models", f"{batched:.1f} s", "30 s")
    alone, one_by_one = map(float, printed(PROBES, "10", "1").split())
    faster = one_by_one / alone / (batched / rows)
    _row("batched against one prompt at a time", f"{faster:.1f} x", "5 x")
    for line in printed(RECOVERY).splitlines():
        name, seconds = line.split()
        _row(f"recovery probe {name}, WGA's example", f"{float(seconds):.1f} s", "10 s")
    seconds, megabytes = _app()
    _row("first page after `python app.py`", f"{seconds:.1f} s", "6 s")
    _row("memory of the app before anybody uses it", f"{megabytes / 1000:.2f} GB", "1 GB")
    size = sum(path.stat().st_size for path in _repository_files())
    _row("size of the repository's files", f"{size / 1e6:.1f} MB", "30 MB")


def printed(code: str, *arguments: str) -> str:
    """The output of a piece of code, run in a process of its own."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _row(what: str, measured: str, goal: str) -> None:
    print(f"{what:<52}{measured:>12}{goal:>12}", flush=True)


@dataclass(frozen=True)
class Served:
    """A running app. address: ends with a slash. process: its id. output: its last lines."""

    address: str
    process: int
    output: deque[str]


@contextmanager
def served(
    folder: Path,
    program: Sequence[str] = ("app.py",),
    lines: int | None = LINES_KEPT,
    **environment: str,
) -> Iterator[Served]:
    """Runs `python` with these arguments, its runs in the folder, until the block ends; yields it
    once it serves. lines: number of last printed lines that are kept; None for all. environment:
    further variables. Raises RuntimeError: the app ended without printing an address."""
    there = {**os.environ, "ADAPOP_RUNS": str(folder), "ADAPOP_PUBLIC": "0", **environment}
    command, output = [sys.executable, "-u", *program], deque[str](maxlen=lines)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    server = subprocess.Popen(command, cwd=ROOT, env=there, **pipes)
    try:
        for line in server.stdout:
            output.append(line)
            if address := re.search(r"http://\S+", line):
                break
        else:
            raise RuntimeError("the app ended without serving a page:\n" + "".join(output))
        # The output must be read: an app blocks once the pipe is full.
        threading.Thread(target=output.extend, args=(server.stdout,), daemon=True).start()
        yield Served(address.group().rstrip("/") + "/", server.pid, output)
    finally:
        server.terminate()
        server.wait()


def _app() -> tuple[float, float]:
    """Seconds from starting the app to its page, and its megabytes once the engine is imported."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as app:
        with urllib.request.urlopen(app.address, timeout=PAGE_LIMIT_SECONDS) as page:
            page.read()
        seconds, held = time.perf_counter() - begun, [0.0]
        while True:
            time.sleep(SETTLED_SECONDS)
            held.append(psutil.Process(app.process).memory_info().rss / 1e6)
            if held[-1] < 1.01 * held[-2]:
                return seconds, held[-1]


def _repository_files() -> list[Path]:
    command = ["git", "ls-files", "-z"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).exists()]
