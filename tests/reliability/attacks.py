"""Attacks a public app in every way that its door has to withstand, while another visitor asks a small question.

Each attack comes from an address of its own to `python app.py` in a process of its own, for some seconds. Of each it is
printed what was tried, what came of it, whether the promise held, and how long the other visitor waited.
"""

import argparse
import json
import os
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from calling import FORM, JSON_BODY, ROW, Stranger, call, megabytes, multipart

from adapop.experiments.speed.waiting import served
from scripted import Reply, ScriptedServer

# seconds that another visitor may wait for a small answer; or as many times its longest wait just before, while nothing
# was tried, as other programs may keep the machine busy; but never more than the last
LONGEST_WAIT, TIMES, NEVER_MORE = 1.0, 3.0, 5.0
ALONE_SECONDS = 5.0
MEMORY_SECONDS = 15.0  # until memory is back
GROWTH = 200.0  # megabytes that the app may have more afterwards
HUB_SECONDS = 6.0  # after which a slow Hub answers


class Target(Stranger):
    """The app that is attacked, and the address that the attack at hand comes from."""

    def __init__(self, address: str, process: int) -> None:
        super().__init__(address, "203.0.113.1")
        self.process = process

    def raw(self, path: str, headers: str, chunks: Iterator[bytes]) -> int:
        """The status of a request that no client would send; 0 where the connection was closed without one."""
        place = urlsplit(self.address)
        with socket.create_connection((place.hostname, place.port), timeout=60) as line:
            sender = f"Host: {place.netloc}\r\nX-Forwarded-For: {self.visitor}\r\n"
            try:
                line.sendall(f"POST /{path} HTTP/1.1\r\n{sender}{headers}\r\n\r\n".encode())
                for chunk in chunks:
                    line.sendall(chunk)
                return int(line.recv(64).split()[1])
            except (OSError, IndexError):
                return 0


def chunked(content: bytes, size: int = 65_536) -> Iterator[bytes]:
    """The content in HTTP's chunks."""
    for start in range(0, len(content), size):
        piece = content[start : start + size]
        yield b"%x\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def both_lengths(target: Target) -> tuple[str, bool]:
    """20 MB of brackets in chunks beside a small Content-Length."""
    headers = "Content-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked"
    code = target.raw("gradio_api/queue/join", headers, chunked(b"[" * 20_000_000))
    return f"answered {code or 'by closing'}", code in (0, 400, 411, 413)


def many_files(target: Target) -> tuple[str, bool]:
    """60 files of 2 MB in one upload that says it has 100 bytes, and 999 small ones in another."""
    headers = f"Content-Type: {FORM}\r\nContent-Length: 100\r\nTransfer-Encoding: chunked"
    large = target.raw("gradio_api/upload", headers, chunked(multipart([("a.csv", b"a" * 1_900_000)] * 60)))
    form = multipart([(f"{number}.csv", b"a") for number in range(999)])
    small, _ = target.send("gradio_api/upload", form, {"Content-Type": FORM})
    return f"answered {large or 'by closing'} and {small}", large in (0, 400, 411, 413) and small in (400, 413)


def nested(target: Target) -> tuple[str, bool]:
    """Bodies of 0.4 MB of brackets, as many as are let in."""
    bodies = [b"[" * 400_000, b'{"a":' * 80_000, b'{"data":[' + b"[]," * 133_000 + b"0]}"]
    codes = Counter(target.send("gradio_api/call/beta", bodies[n % 3], JSON_BODY)[0] for n in range(12))
    return f"answered {dict(codes)}", 200 not in codes


def slow_hub(target: Target) -> tuple[str, bool]:
    """Endpoints that need a set of the Hub, which answers after some seconds."""
    data = {"check": "duet", "beta": "duet", "start_run": "rwku", "score": "duet"}
    codes = Counter(target.post(f"call/{name}", {"data": [facts]}) for name, facts in data.items())
    time.sleep(HUB_SECONDS)
    return f"answered {dict(codes)}", set(codes) == {200}


def heavy_rows(target: Target) -> tuple[str, bool]:
    """`check` with 200 rows of combining marks."""
    rows = [{"question": "e" + "\u0301" * 1_000 + str(n), "answer": "x"} for n in range(200)]
    codes = Counter(target.post("call/check", {"data": [rows]}) for _ in range(6))
    return f"answered {dict(codes)}", True


def shipped_files(target: Target) -> tuple[str, bool]:
    """40 connections that load the page's largest script, compressed, again and again."""
    from gradio.routes import BUILD_PATH_LIB

    largest = max(Path(BUILD_PATH_LIB).glob("*.js"), key=lambda path: path.stat().st_size).name
    codes = repeated(lambda: target.send(f"assets/{largest}", None, {"Accept-Encoding": "br"})[0], 40, 8.0)
    return f"answered {dict(codes)}", codes[200] > 0


def pages(target: Target) -> tuple[str, bool]:
    """240 page loads at once, and with names of their own."""
    with ThreadPoolExecutor(240) as hands:
        codes = Counter(hands.map(lambda _: target.send("")[0], range(240)))
        forged = {"X-Forwarded-Host": "evil.example"}
        codes += Counter(hands.map(lambda n: target.send(f"?run={n}", None, forged)[0], range(240)))
    return f"answered {dict(codes)}", codes[200] >= 240


def one_file_again(target: Target) -> tuple[str, bool]:
    """One upload that takes long to read, read by forged pages for ten seconds."""
    row = {"question": "Who?", "answer": "x", "paraphrases": ["a"] * 390_000}
    code, path = target.upload(json.dumps([row]).encode())
    codes = repeated(lambda: target.page_reads(path), 8, 10.0)
    return f"uploaded {code}, read {dict(codes)}", code == 200 and codes[200] > 0


def memory_of_pages(target: Target) -> tuple[str, bool]:
    """One upload of 2 MB of small objects, read by sixty pages of one visitor."""
    before = megabytes(target.process)
    rows = [{"question": f"Who is {n}?", "answer": "x", "extra": [{}] * 4_000} for n in range(120)]
    _, path = target.upload(json.dumps(rows).encode()[:2_000_000])
    codes = Counter(target.page_reads(path) for _ in range(60))
    time.sleep(MEMORY_SECONDS)
    more = megabytes(target.process) - before
    return f"read {dict(codes)}, {more:,.0f} MB more", more < GROWTH


ATTACKS = (
    both_lengths, many_files, nested, slow_hub, heavy_rows, shipped_files, pages, one_file_again, memory_of_pages,
)  # fmt: skip


def repeated(way: Callable[[], int], hands: int, seconds: float) -> Counter:
    """How often which status came, of so many hands for so long."""
    ends = time.monotonic() + seconds

    def work(_: int) -> Counter:
        codes = Counter()
        while time.monotonic() < ends:
            codes[way()] += 1
        return codes

    with ThreadPoolExecutor(hands) as pool:
        return sum(pool.map(work, range(hands)), Counter())


def watch(address: str, answers: Connection) -> None:
    """Asks a small question over and over, as another visitor; hands over the seconds that each answer took."""
    sender = {"X-Forwarded-For": "198.51.100.7"}
    while True:
        began = time.monotonic()
        try:
            call(address, "beta", [[ROW], "paper"], sender, 60)
            answers.send(time.monotonic() - began)
        except (OSError, ValueError):
            answers.send(float("inf"))
        time.sleep(0.1)


class Watcher:
    """Another visitor, a process of its own, so that this one's work does not hold it up."""

    def __init__(self, address: str) -> None:
        context = get_context("spawn")
        self._answers, sent = context.Pipe(duplex=False)
        context.Process(target=watch, args=(address, sent), daemon=True).start()
        self._answers.recv()

    def during(self, work: Callable[[], object]) -> tuple[object, list[float]]:
        """(what the work gives, the seconds that each answer took that came while it went on or a moment after)."""
        while self._answers.poll():
            self._answers.recv()
        result = work()
        waits = []
        while self._answers.poll():
            waits.append(self._answers.recv())
        return result, [*waits, self._answers.recv()]  # the one that it waits for at the end counts too


def main(names: list[str]) -> int:
    """Prints what came of each attack. Returns 1 if a promise did not hold or the other visitor waited too long."""
    broken, worst, began = 0, 0.0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ScriptedServer() as hub:
        hub.answer = lambda asked: Reply("", 404, seconds=HUB_SECONDS)
        here = {"ADAPOP_PUBLIC": "1", "HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0"}
        here["GRADIO_TEMP_DIR"] = f"{folder}/gradio"
        with served(Path(folder), lines=None, **here) as app:
            target = Target(app.address, app.process)
            call(app.address, "beta", [[ROW], "paper"], {}, 120)
            watcher = Watcher(app.address)
            os.nice(10)  # strangers' computers are others
            for number, attack in enumerate([one for one in ATTACKS if not names or one.__name__ in names], 1):
                target.visitor = f"203.0.113.{number}"
                alone = max(watcher.during(lambda: time.sleep(ALONE_SECONDS))[1])
                allowed = min(NEVER_MORE, max(LONGEST_WAIT, TIMES * alone))
                printed, before = len(app.output), megabytes(app.process)
                (outcome, held), waits = watcher.during(lambda attack=attack: attack(target))
                held = held and max(waits) < allowed
                broken += not held
                print(f"{attack.__name__:<16}{'held' if held else 'BROKEN':<8}{' '.join(attack.__doc__.split())}")
                waited = f"another waited {median(waits):.2f} s, at worst {max(waits):.2f} s of {allowed:.2f} s"
                memory = f"memory {before:,.0f} to {megabytes(app.process):,.0f} MB"
                logged = f"{len(app.output) - printed} lines logged"
                print(f"{'':<24}{outcome}; {waited} (alone {alone:.2f} s); {memory}; {logged}", flush=True)
                worst = max(worst, *waits)
            time.sleep(MEMORY_SECONDS)
            print(f"{broken} broken; the worst wait of another visitor {worst:.2f} s; {time.monotonic() - began:.0f} s")
            print(f"memory at the end {megabytes(app.process):,.0f} MB; load {os.getloadavg()[0]:.1f}")
    return int(broken > 0)


if __name__ == "__main__":
    command = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    command.add_argument("--only", nargs="*", default=[], help="names of attacks; default all")
    sys.exit(main(command.parse_args().only))
