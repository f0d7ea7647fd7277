"""The app in a process of its own, until a block ends."""

import os
import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adapop.paths import ROOT

LINES_KEPT = 50  # of the app's output


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
    **environment: str,
) -> Iterator[Served]:
    """Runs `python` with these arguments, its runs in the folder, until the block ends; yields it
    once it serves. environment: further variables. Raises RuntimeError: the app ended without printing an address."""
    there = {**os.environ, "ADAPOP_RUNS": str(folder), "ADAPOP_PUBLIC": "0", **environment}
    command, output = [sys.executable, "-u", *program], deque[str](maxlen=LINES_KEPT)
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
