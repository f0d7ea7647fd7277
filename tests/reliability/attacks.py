"""Attacks a public app in every way that its door has to withstand, while another visitor asks a small question.

Each attack comes from an address of its own to `python app.py` in a process of its own, for some seconds. Of each it is
printed what was tried, what came of it, whether the promise held, and how long the other visitor waited.
"""

import argparse
import io
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from calling import FORM, JSON_BODY, NOBODY, ROW, Refused, answer, call, megabytes, multipart, sent

from adapop.paths import ROOT
from adapop.runs.examples import ASKED, PREFIX
from adapop.runs.run import Run
from adapop.service.links import link_of
from serving import served

ALONE_SECONDS, MEMORY_SECONDS = 4.0, 3.0
REST_MEGABYTES = 2.0
NOISE = 0.05  # seconds that a busy scheduler adds to any answer
RUN = [ROW | {"group": "forget"}, {"question": "Who wrote the book Emma?", "answer": "Austen", "group": "retain"}]


class Target:
    """The app that is attacked, its folder of runs, the events of its page, and the address that the attack at hand
    comes from."""

    def __init__(self, address: str, process: int, folder: Path) -> None:
        self.address, self.process, self.folder, self.visitor = address, process, folder, "203.0.113.1"
        self.events = [one for one in answer(f"{address}config")["dependencies"] if one["backend_fn"]]

    def send(self, path: str, body: bytes | None = None, headers: Mapping[str, str] = NOBODY) -> tuple[int, bytes]:
        """(status, content) of a request."""
        return sent(self.address + path, body, {"X-Forwarded-For": self.visitor, **headers})

    def post(self, path: str, body: dict) -> int:
        """The status of a JSON body that is sent to Gradio's API."""
        content = json.dumps(body, ensure_ascii=False).encode()
        return self.send(f"gradio_api/{path}", content, JSON_BODY)[0]

    def forges(self, event: dict, data: list) -> int:
        """The status of an event of a page that nobody has open."""
        return self.post("queue/join", {"data": data, "fn_index": event["id"], "session_hash": secrets.token_hex(6)})

    def upload(self, content: bytes) -> tuple[int, str]:
        """(status, the path that the app gives a file)."""
        form = multipart([("a.json", content)])
        code, told = self.send("gradio_api/upload", form, {"Content-Type": FORM})
        return code, json.loads(told)[0] if code == 200 else ""

    def page_reads(self, path: str) -> int:
        """The status of the event by which a forged page has its uploaded file read."""
        uploads = (one for one in self.events if any(kind == "upload" for _, kind in one["targets"]))
        file = {"path": path, "orig_name": "a.json", "meta": {"_type": "gradio.FileData"}}
        return self.forges(next(one for one in uploads if len(one["inputs"]) == 4), ["own", file, "own", None])

    def asks(self, name: str, values: list, patience: float = 60) -> list:
        """What a named endpoint answers, see `call`; raises `Refused`."""
        return call(self.address, name, values, {"X-Forwarded-For": self.visitor}, patience)

    def refused(self, calls: Iterable[tuple[str, list]]) -> list[str]:
        """The names of those calls that were answered, though all should be refused."""
        answered = []
        for name, values in calls:
            with suppress(Refused):
                self.asks(name, values)
                answered.append(name)
        return answered

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
    """40 MB of brackets in chunks beside a small Content-Length."""
    headers = "Content-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked"
    code = target.raw("gradio_api/queue/join", headers, chunked(b"[" * 40_000_000))
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


def foreign(target: Target) -> tuple[str, bool]:
    """Another's run by a guessed id and by a read-only link, pages of other sites, a foreign host, tricks of paths."""
    (reply,) = call(target.address, "start_run", [RUN], {"X-Forwarded-For": "198.51.100.9"})
    guessed = reply["run"][:-1] + ("0" if reply["run"][-1] != "0" else "1")
    link = link_of(Run(target.folder / reply["run"]))
    answers = target.refused((name, [guessed]) for name in ("stop", "status", "report"))
    answers += target.refused(
        (name, [one, "Who?"]) for one in (guessed, link) for name in ("probe", "tokens", "samples")
    )
    answers += target.refused([("stop", [link])])
    (seen,) = target.asks("status", [link])
    form, site = multipart([("a.csv", b"a")]), {"Origin": "https://evil.example"}
    codes = Counter([target.send("gradio_api/upload", form, {"Content-Type": FORM} | site)[0],
                     target.send("gradio_api/queue/join", b"{}", JSON_BODY | site)[0]])  # fmt: skip
    for path in ("file=/etc/passwd", "file=../../../etc/passwd", "file=http://169.254.169.254/", "proxy=http://a.b/"):
        codes[target.send(f"gradio_api/{path}")[0]] += 1
    codes[target.send("config", None, {"Host": "evil.example"})[0]] += 1
    named = {"path": "http://169.254.169.254/", "meta": {"_type": "gradio.FileData"}}
    codes[target.post("call/beta", {"data": [named]})] += 1
    (still,) = call(target.address, "status", [reply["run"]], {"X-Forwarded-For": "198.51.100.9"})
    held = not answers and not set(codes) & {200, 500} and "stop" not in still["state"] and seen["state"] != "expired"
    return f"answered {answers} of 10 calls, the link shows a run {seen['state']!r}, others {dict(codes)}", held


def payloads(target: Target) -> tuple[str, bool]:
    """Scripts in every column of a file, as a run's facts, question and title: the report has them as text alone."""
    script = "<script>window.hacked=1</script>"
    columns = "question", "answer", "subject", "relation", "domain"
    rows = [RUN[0] | {name: f"{script}{name}" for name in columns}, RUN[1]]
    code, path = target.upload(json.dumps(rows).encode())
    with urllib.request.urlopen(target.address + f"gradio_api/file={path}") as file:
        policy, kind = file.headers["Content-Security-Policy"], file.headers["X-Content-Type-Options"]
    (started,) = target.asks("start_run", [rows, "wga", "paper", None, 1])
    while target.asks("status", [started["run"]])[0]["state"] in ("queued", "starting", "running", "measuring"):
        time.sleep(0.5)
    target.asks("probe", [started["run"], f"{script}asked"], 120)
    (made,) = target.asks("report", [started["run"], f"{script}title"], 120)
    content = target.send(f"gradio_api/file={made['path']}")[1]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        pages = [name for name in archive.namelist() if name.endswith(".html")]
        report = "".join(archive.read(name).decode() for name in pages)
    raw, all_told = report.count(script), report.count("window.hacked=1")
    held = "sandbox" in policy and kind == "nosniff" and not raw and all_told > 1
    return f"file's policy {policy!r}, {kind}; of {all_told} scripts in the report {raw} stand; uploaded {code}", held


def assets(target: Target) -> tuple[str, bool]:
    """60 connections that load the page's largest script with every kind of Accept-Encoding."""
    page = sent(target.address, None, {"Accept-Encoding": "identity"})[1].decode()
    names = set(re.findall(r"assets/[\w.-]+\.js", page))
    largest = max(names, key=lambda name: len(sent(target.address + name, None)[1]))
    kinds, turn = ("br", "br;q=0", "x-br", "gzip;q=0", "gzip", "identity"), iter(range(10**9))

    def load() -> int:
        return target.send(largest, None, {"Accept-Encoding": kinds[next(turn) % len(kinds)]})[0]

    codes = repeated(load, 60, 8.0)
    return f"{largest} answered {dict(codes)}", codes[200] > 0


def pages(target: Target) -> tuple[str, bool]:
    """240 page loads at once, each with an event of its own, half of them by a name of their own."""
    before = megabytes(target.process)
    event = next(one for one in target.events if [kind for _, kind in one["targets"]] == ["load"])

    def visit(number: int) -> int:
        forged = {"X-Forwarded-Host": f"evil{number}.example"} if number % 2 else {}
        code = target.send("", None, forged)[0]
        target.forges(event, [None] * len(event["inputs"]))
        return code

    with ThreadPoolExecutor(240) as hands:
        codes = Counter(hands.map(visit, range(240)))
    time.sleep(MEMORY_SECONDS)
    more = megabytes(target.process) - before
    return f"answered {dict(codes)}, {more:+,.0f} MB of at most +100", codes[200] > 0 and more <= 100


def one_upload(target: Target) -> tuple[str, bool]:
    """One upload of 2 MB, read by sixty forged pages of one visitor."""
    texts = {"question": "Who?" + "q" * 1_900, "answer": "x", "paraphrases": ["p" * 700] * 9}
    rows = [texts | {"subject": f"{number}"} for number in range(200)]
    _, path = target.upload(json.dumps(rows).encode())
    target.page_reads(path)
    time.sleep(MEMORY_SECONDS)
    before = megabytes(target.process)
    codes = Counter(target.page_reads(path) for _ in range(60))
    time.sleep(MEMORY_SECONDS)
    more = megabytes(target.process) - before
    return f"read {dict(codes)}, {more:+,.0f} MB of at most +50", bool(path) and more <= 50


def flood(target: Target) -> tuple[str, bool]:
    """One visitor sends events of all kinds for ten seconds, by sixty hands."""
    turn = iter(range(10**9))

    def send() -> int:
        event = target.events[next(turn) % len(target.events)]
        return target.forges(event, [None] * len(event["inputs"]))

    codes = repeated(send, 60, 10.0)
    return f"answered {dict(codes)}", 500 not in codes


def streams(target: Target) -> tuple[str, bool]:
    """330 open streams, and 1,000 connections that never say what they want."""
    place, lines, codes, words = urlsplit(target.address), [], Counter(), set()
    try:
        for number in range(1_330):
            line = socket.create_connection((place.hostname, place.port), timeout=10)
            lines.append(line)
            path = f"/gradio_api/heartbeat/slow{number}"
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\n".encode())
            if number < 330:
                line.sendall(f"X-Forwarded-For: {target.visitor}\r\n\r\n".encode())
        time.sleep(3)
        for line in lines[:330]:
            line.settimeout(0.2)
            try:
                head, _, said = line.recv(4096).decode().partition("\r\n\r\n")
                codes[code := int(head.split()[1])] += 1
                words.add(
                    said or (line.recv(4096).decode() if code == 429 else "")
                )  # it may come in a piece of its own
            except (OSError, IndexError):
                codes["open"] += 1
    finally:
        for line in lines:
            line.close()
    refusals = [one for one in words if "ADAPOP_" in one]
    return f"streams {dict(codes)}, refused by {refusals[:1]}", codes[429] > 0 and bool(refusals)


def fifty(target: Target) -> tuple[str, bool]:
    """Fifty visitors at once: page, upload, a run, its state, a question to an example and a report of it."""
    before, example = megabytes(target.process), f"{PREFIX}{ASKED[0]}"

    def visits(number: int) -> tuple[str, float]:
        began, sender = time.monotonic(), {"X-Forwarded-For": f"10.9.0.{number}"}
        try:
            assert sent(target.address, None, sender)[0] == 200
            form = sender | {"Content-Type": FORM}
            assert sent(f"{target.address}gradio_api/upload", multipart([("a.csv", b"a")]), form)[0] == 200
            try:
                (run,) = call(target.address, "start_run", [RUN, "wga", "paper", None, 1], sender, 120)
                call(target.address, "status", [run["run"]], sender, 120)
            except Refused as refusal:
                assert "ADAPOP_MAX_QUEUE" in str(refusal)
            try:
                call(target.address, "probe", [example, "Who?"], sender, 120)
            except Refused as refusal:
                assert "ADAPOP_MAX_WAITING" in str(refusal)
            call(target.address, "report", [example], sender, 120)
        except (AssertionError, OSError, ValueError, Refused) as error:
            return f"{type(error).__name__} {error}"[:80], 0.0
        return "", time.monotonic() - began

    with ThreadPoolExecutor(50) as hands:
        ends = list(hands.map(visits, range(50)))
    lost, more = [words for words, _ in ends if words], megabytes(target.process) - before
    took = f"{median(seconds for _, seconds in ends):.1f} s at the median"
    return f"{len(lost)} lost {lost[:1]}, {took}, {more:+,.0f} MB of at most +500", not lost and more <= 500


@dataclass(frozen=True)
class Attack:
    """An attack. seconds: that another visitor's small answer may take meanwhile at worst, or three times the worst
    just before; None for no bound. times: how many times as long as just before it may take at the median; None for
    no bound."""

    work: Callable[[Target], tuple[str, bool]]
    seconds: float | None = None
    times: float | None = None


ATTACKS = (
    Attack(both_lengths, 0.5), Attack(many_files, 0.5), Attack(nested, 0.5), Attack(foreign), Attack(payloads),
    Attack(pages, 1.0), Attack(assets, 0.5, times=3.0), Attack(one_upload), Attack(flood, 1.0), Attack(streams, 1.0),
    Attack(fifty),
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
    """Prints a figure of each promise. Returns 1 if one did not hold, or the other visitor waited too long."""
    broken, began = 0, time.monotonic()
    chosen = [attack for attack in ATTACKS if not names or attack.work.__name__ in names]
    with tempfile.TemporaryDirectory() as folder:
        here = {"ADAPOP_PUBLIC": "1", "ADAPOP_HOSTS": "localhost", "HF_HUB_OFFLINE": "1"}
        here |= {"GRADIO_TEMP_DIR": f"{folder}/gradio"}
        with served(Path(folder), **here) as app:
            target = Target(app.address, app.process, Path(folder))
            call(app.address, "beta", [[ROW], "paper"], {}, 120)
            until_at_rest(app.process)
            watcher = Watcher(app.address)
            os.nice(10)  # strangers' computers are others
            for number, attack in enumerate(chosen, 1):
                target.visitor = f"203.0.113.{number}"
                before = watcher.during(lambda: time.sleep(ALONE_SECONDS))[1]
                usual, alone = median(before), max(before)
                (outcome, held), waits = watcher.during(lambda attack=attack: attack.work(target))
                # other programs may keep the machine busy, also while nothing is tried
                bound = max(attack.seconds, 3.0 * alone) if attack.seconds is not None else float("inf")
                held = held and max(waits) <= bound
                held = held and (attack.times is None or median(waits) <= max(NOISE, attack.times * usual))
                broken += not held
                name, about = attack.work.__name__, " ".join(attack.work.__doc__.split())
                print(f"{name:<14}{'held' if held else 'BROKEN':<8}{about}")
                others = f"others {median(waits):.2f} s, at worst {max(waits):.2f} s of {bound:.2f} s"
                others = f"{others}, alone {usual:.2f} s, at worst {alone:.2f} s"
                print(f"{'':<22}{outcome}; {others}", flush=True)
            alive = app.process and megabytes(app.process) > 0
    if not names:
        broken += not alive
        broken += told("three SIGKILLs at any moment, then resuming", survived_kills)
        broken += told("tests of a full disk and of a folder that cannot be written", disk_tests)
    print(f"{broken} broken; {time.monotonic() - began:.0f} s; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return int(broken > 0)


def until_at_rest(process: int) -> None:
    """Returns once an app takes no more memory: after its start it loads its models' library, some 300 MB, which no
    visitor costs."""
    before = 0.0
    while megabytes(process) - before > REST_MEGABYTES:
        before = megabytes(process)
        time.sleep(MEMORY_SECONDS)


def told(what: str, work: Callable[[], tuple[str, bool]]) -> bool:
    """Prints what came of a promise about runs. Returns whether it is broken."""
    outcome, held = work()
    print(f"{'runs':<14}{'held' if held else 'BROKEN':<8}{what}: {outcome}", flush=True)
    return not held


def survived_kills() -> tuple[str, bool]:
    """Kills runs, and compares what they come to."""
    from crashes import survived

    with tempfile.TemporaryDirectory() as folder:
        tally = survived(3, 0, Path(folder))
    return f"{tally.runs} runs, {len(tally.different)} differ", not tally.different


def disk_tests() -> tuple[str, bool]:
    """The tests of disks that are full or read-only."""
    chosen = "full or cannot_be_written or folder_of_runs"
    files = [
        "tests/ui/test_door.py",
        "tests/runs/test_run_files.py",
        "tests/service/test_cleanup.py",
        "tests/ui/test_wiring.py",
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-k", chosen, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip().splitlines()[-1], done.returncode == 0


if __name__ == "__main__":
    command = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    command.add_argument("--only", nargs="*", default=[], help="names of attacks; default all")
    sys.exit(main(command.parse_args().only))
