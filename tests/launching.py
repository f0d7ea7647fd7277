"""Code and commands in other processes: one of its own, or two as a launcher starts them, and what they left."""

import json
import os
import subprocess
import sys

from adapop.paths import ROOT
from adapop.runs.run import Run

LAUNCH = (
    sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1",
    "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0")  # fmt: skip
SHARDED = (*(word for word in LAUNCH if word != "--multi_gpu"), "--use_fsdp", "--fsdp_version", "2")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def printed(code, *arguments, without=(), **given):
    """What Python prints that runs this code. given: variables of its environment. without: beginnings of those that it
    lacks."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(tuple(without))} | given
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def launched(*command, launcher=LAUNCH):
    """A command in two processes, until both have ended."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*launcher, *map(str, command)], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900,
        check=False)  # fmt: skip


def run_in(folder):
    runs = [path for path in folder.iterdir() if path.is_dir()]
    assert len(runs) == 1, "one run folder, whoever looks"
    return Run(runs[0])


def numbers(run, kind):
    """What the events of a kind say, but for run and time."""
    rows = [dict(vars(event)) for event in run.events() if isinstance(event, kind)]
    return [{name: value for name, value in row.items() if name not in ("run", "time")} for row in rows]


def ended(folder, name, count=2):
    return [json.loads((folder / f"{name}-{rank}.json").read_text(encoding="utf-8")) for rank in range(count)]
