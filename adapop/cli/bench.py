"""`bench`: the experiments on the sandbox, and how fast training and the app are."""

import argparse
import os
import sys
from functools import partial
from pathlib import Path

from adapop.cli import printing
from adapop.errors import ConfigError

NAMES = (
    "main", "rates", "ablation", "coefficients", "scores", "proxies", "epochs", "levels", "worlds", "alpha",
    "forgetting", "speed",
)  # fmt: skip
SEEDS = 3


def bench(options: argparse.Namespace) -> int:
    """`bench NAME`: runs what is missing of an experiment and prints its tables. Exit status 1 if something failed."""
    if options.name != "speed":
        return _experiment(options)
    from adapop.experiments.speed import table

    table.main(options.sandbox)
    return 0


def _experiment(options: argparse.Namespace) -> int:
    from adapop.experiments.cluster import finished_on_ray
    from adapop.experiments.engine import finished
    from adapop.experiments.run import Place, run, write

    count = (1 if options.quick else SEEDS) if options.seeds is None else options.seeds
    if count < 1 or options.processes < 1 or options.first_seed < 0:
        raise ConfigError("There is nothing to do.", "--seeds and --processes are at least 1, --first-seed at least 0.")
    seeds = tuple(range(options.first_seed, options.first_seed + count))
    place = Place(options.name, (options.out or bench_root()).resolve(), seeds, options.quick)
    errors = {}
    if not options.table:
        engine = partial(finished_on_ray if options.ray else finished, processes=options.processes)
        errors = run(place, engine, partial(printing.say, file=sys.stderr, flush=True))
    printing.say(write(place, options.against))
    for title, error in errors.items():
        printing.say(f"not done: {title}: {error}", file=sys.stderr)
    printing.say(f"\nrows, tables and figures: {place.file('.*')}", file=sys.stderr)
    return int(bool(errors))


def bench_root() -> Path:
    """Where results go unless told otherwise: beside the runs."""
    from adapop.runs.run import runs_root

    return runs_root().parent / "bench"


def add_options(command: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    command.add_argument("name", choices=NAMES)
    command.add_argument("--quick", action="store_true", help="two epochs on an eighth of the facts: does it work?")
    command.add_argument("--seeds", type=int, help=f"how many seeds; default {SEEDS}, with --quick 1")
    command.add_argument("--first-seed", type=int, default=0, help="the first of them; default 0")
    command.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one a core")
    command.add_argument("--out", type=Path, help="folder of results; default: bench, beside the runs")
    command.add_argument("--ray", action="store_true", help="on Ray: the cluster of $RAY_ADDRESS, or this machine")
    command.add_argument("--against", type=Path, help="folder of the same experiment on other seeds: what differs?")
    command.add_argument("--table", action="store_true", help="run nothing, print the tables of what is there")
    command.add_argument("--sandbox", action="store_true", help="speed: of the sandbox alone, with waiting times")
