"""Reads hostile uploads and checks each: refused in words or read as the file says, within time and memory.

Every file is made in one process and read in another, forked for it alone. The time and peak memory of the second,
with those of the process that reads Parquet for it, are the file's.
"""

import json
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from calling import run_as_command
from hostile import case
from hostile.file import score_of

from adapop import AdaPopError, FactSet
from adapop.facts.files import read_table

DECIMAL = re.compile(r"\d+,\d{1,2}", re.ASCII)  # beside it, every comma of a column may be a decimal mark
SECONDS, BYTES = 5.0, 10**9
PATIENCE = 300  # of wall time, which a busy machine stretches
PROGRESS = 100
READ, NAMED, REFUSED = "read", "read, with problems", "refused"


@dataclass(frozen=True)
class Ended:
    """How the reading of a file ended. outcome: one of the three good ones, or what went wrong. seconds: of processor
    time, with that of the process it started. peak: bytes of memory, of the larger of the two."""

    number: int
    kind: str
    outcome: str
    seconds: float
    peak: int

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return self.outcome not in (READ, NAMED, REFUSED) or self.seconds > SECONDS or self.peak > BYTES


def main(cases: int, processes: int) -> int:
    """Prints what became of the files 0 to cases - 1. Returns 1 if a promise was broken, else 0."""
    begun, ended = time.monotonic(), []
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for end in pool.imap_unordered(ending_of, range(cases)):
            ended.append(end)
            if not len(ended) % PROGRESS:
                print(f"{len(ended):,} of {cases:,}", file=sys.stderr, flush=True)
    counts = Counter("failed" if end.failed else end.outcome for end in ended)
    print(", ".join(f"{count:,} {outcome}" for outcome, count in counts.most_common()))
    print(f"{cases:,} files in {time.monotonic() - begun:.0f} s, of {len({end.kind for end in ended})} kinds")
    slow, large = max(ended, key=lambda end: end.seconds), max(ended, key=lambda end: end.peak)
    print(f"slowest: file {slow.number} ({slow.kind}), {slow.seconds:.2f} s; allowed {SECONDS:.0f} s")
    print(f"largest: file {large.number} ({large.kind}), {large.peak / 1e6:.0f} MB; allowed {BYTES / 1e6:,.0f} MB")
    failed = [end for end in ended if end.failed]
    for end in failed:
        print(f"FAILED: file {end.number} ({end.kind}): {end.outcome}, {end.seconds:.2f} s, {end.peak / 1e6:.0f} MB")
    return int(bool(failed))


def ending_of(number: int) -> Ended:
    """Makes the file of that number, reads it, and compares."""
    with tempfile.TemporaryDirectory() as folder:
        made, reading = Path(folder) / "made.json", Path(folder) / "told.json"
        _forked(lambda: make(number, Path(folder), made), 0)
        about = json.loads(made.read_text(encoding="utf-8"))
        path = Path(folder) / about["name"]
        status, usage = _forked(lambda: _read(path, reading), PATIENCE)
        outcome = f"ended by signal {status}" if status else _judged(about, json.loads(reading.read_text("utf-8")))
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Ended(number, about["kind"], outcome, usage.ru_utime + usage.ru_stime, peak)


def make(number: int, folder: Path, made: Path) -> None:
    """Writes the file, and what it says."""
    about = asdict(case(number))
    (folder / about["name"]).write_bytes(about.pop("content"))
    made.write_text(json.dumps(about), encoding="utf-8")


def _forked(work: Callable[[], None], patience: int) -> tuple[int, resource.struct_rusage]:
    """Does the work in a process of its own, in so many seconds (0: any). Returns the signal that ended it, or 0, and
    what it used."""
    process = os.fork()
    if process == 0:
        signal.alarm(patience)
        try:
            work()
        except BaseException:  # noqa: BLE001  (a forked child must never return into its parent's code)
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status, usage = os.wait4(process, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError("the benchmark itself failed: see above")
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, usage


def _read(path: Path, reading: Path) -> None:
    """Reads a file as the page does, and writes down what was said of it."""
    try:
        table = read_table(path)
        for name in table.columns:
            name.encode()  # as the page sends it
        facts, copy = table.facts(), path.with_name("copy.jsonl")
        facts.write(copy)
        if FactSet.load(copy, facts.name).sha256 != facts.sha256:
            raise ValueError("a set that cannot be written and read again")
        read = [(fact.question, fact.answer, fact.score) for fact in (*facts.forget, *facts.retain)]
        outcome = {"facts": read, "problems": [*map(str, facts.problems)]}
    except AdaPopError as error:
        words = " ".join((str(error), *map(str, getattr(error, "problems", ()))))
        words.encode()
        outcome = {"refused": bool(error.message and error.fix) and str(path.parent) not in words}
    except Exception:  # noqa: BLE001  (that there is none is what is measured)
        outcome = {"failed": traceback.format_exc().strip().splitlines()[-1][:200]}
    reading.write_text(json.dumps(outcome), encoding="utf-8")


def _judged(about: dict, reading: dict) -> str:
    """The outcome, or which promise was broken."""
    if "failed" in reading:
        return reading["failed"]
    if "refused" in reading:
        return REFUSED if reading["refused"] else "refused without a fix, or with the server's path"
    if about["refused"]:
        return "read, though it must be refused"
    if about["says"] is not None:
        comma = any(DECIMAL.fullmatch(score) for *_, score in about["says"])
        says, other = (
            Counter(
                (question, answer, "none" if score.lower() in ("", "nan") else score_of(score, by_comma))
                for question, answer, score in about["says"]
            )
            for by_comma in (False, comma)
        )
        read = Counter((*texts, "none" if score is None else score) for *texts, score in reading["facts"])
        if read - says and read - other:
            return f"read something else than it says: {next(iter(read - says))!r}"[:200]
        if len(reading["facts"]) + len(reading["problems"]) < len(about["says"]):
            return "rows were dropped without a word"
    return NAMED if reading["problems"] else READ


if __name__ == "__main__":
    run_as_command(main, __doc__, cases=(2_000, "how many files"), processes=(os.cpu_count() or 1, "one a core"))
