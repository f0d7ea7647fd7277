"""`bench`: the experiments on the sandbox, and how fast training and the app are."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from adapop.cli import printing
from adapop.cli.options import retain_of
from adapop.cli.scores import chosen_columns
from adapop.config.settings import read_settings
from adapop.errors import ConfigError
from adapop.facts.catalog import load_facts, model_of
from adapop.facts.fact import SANDBOX
from adapop.facts.retain import RETAIN
from adapop.popularity.calibration import calibrated

if TYPE_CHECKING:
    from adapop.experiments.run import Engine, Place

NAMES = (
    "main", "rates", "ablation", "coefficients", "scores", "proxies", "epochs", "levels", "worlds",
    "alpha", "forgetting", "metrics", "tuned", "real", "speed",
)  # fmt: skip
SEEDS = 3
REAL = ("smollm2", "cities")  # the model and the facts of `bench real`


def bench(options: argparse.Namespace) -> int:
    """`bench NAME`: runs what is missing of an experiment and prints its tables. Exit status 1 if
    something failed.

    Raises:
        ConfigError: options do not go together.
    """
    if options.name != "speed" or options.facts or options.model:
        return _experiment(options)
    from adapop.experiments.speed import real, table

    if options.real:
        real.main(options.quick)
    else:
        table.main(options.sandbox)
    return 0


def _experiment(options: argparse.Namespace) -> int:
    from adapop.experiments.engine import finished, finished_on_ray
    from adapop.experiments.run import Place, add_distance, as_markdown, run, write
    from adapop.runs.run import runs_root

    tuned, real = options.name == "tuned", options.name == "real"
    usual = 5 if tuned else SEEDS
    first = int(tuned or real)  # the trials have seen seed 0
    count = (1 if options.quick else usual) if options.seeds is None else options.seeds
    first = first if options.first_seed is None else options.first_seed
    if min(count, options.processes, options.trials) < 1 or first < 0:
        raise ConfigError(
            "There is nothing to do.",
            "--seeds, --processes and --trials are at least 1, --first-seed at least 0.",
        )
    folder = (options.out or runs_root().parent / "bench").resolve()
    place = Place(options.name, folder, tuple(range(first, first + count)), options.quick)
    engine = partial(finished_on_ray if options.ray else finished, processes=options.processes)
    if options.distance and (real or options.facts or options.model):
        raise ConfigError(
            "--distance needs an oracle, which shipped worlds alone have.", "Leave it out."
        )
    if real or options.facts or options.model:
        place = _own(options, place)
    elif options.set or options.retain or options.columns or options.drop_bad or options.anchors:
        raise ConfigError(
            "--set, --retain, --columns, --drop-bad and --anchors go with --facts or --model.",
            "Leave them out, or name one of those.",
        )
    report, errors = partial(printing.say, file=sys.stderr, flush=True), {}
    if tuned:
        place, errors = _searched(options, place, engine, report)
    if not options.table:
        errors |= (add_distance if options.distance else run)(place, engine, report)
    printing.say(as_markdown(place) if options.table or options.distance else write(place))
    for title, error in errors.items():
        printing.say(f"not done: {title}: {error}", file=sys.stderr)
    if not options.table:
        printing.say(f"\nrows, tables and figures: {place.file('.*')}", file=sys.stderr)
    return int(bool(errors))


def _searched(
    options: argparse.Namespace, place: Place, engine: Engine, report: Callable[[str], None]
) -> tuple[Place, dict[str, str]]:
    """The place of the winners, once the trials that are missing are made; and what could not be
    done."""
    from adapop.experiments import tuned
    from adapop.experiments.spaces import SEARCHES

    names = options.arms or tuple(SEARCHES)
    if unknown := set(names) - SEARCHES.keys():
        raise ConfigError(
            f"No search is called {', '.join(sorted(unknown))}.", f"Use {', '.join(SEARCHES)}."
        )
    tuned.places_named(options.world)  # a wrong name is said before the searches
    there = replace(place, name="tuned" if options.world == SANDBOX else f"tuned-{options.world}")
    ground, errors = None, {}
    if options.anew:
        there, ground = replace(there, name=f"{there.name}-anew"), tuned.searched_on(options.world)
    folder = (there if options.anew else place).file("-trials")
    if not options.table and not options.distance:
        errors = tuned.run_searches(
            names, folder, options.trials, options.quick, engine, report, ground
        )
    own = tuned.experiment(folder, options.trials, names, options.world, options.anew)
    return replace(there, own=own), errors


def _own(options: argparse.Namespace, place: Place) -> Place:
    """The place on the facts and the model that the options name."""
    from adapop.experiments import real
    from adapop.experiments.custom_data import placed

    if options.name == real.NAME:
        model, source = options.model or REAL[0], options.facts or REAL[1]
    else:
        model = options.model or model_of(options.facts)
        source = options.facts or model_of(model)
    chosen = {"columns": chosen_columns(options), "drop_bad": options.drop_bad}
    facts = load_facts(source, model, retain=retain_of(options), **chosen)
    printing.print_notes(facts, False)
    changes = read_settings(options.set or [])
    if options.anchors is not None:
        changes["beta"] = calibrated(options.anchors, facts)
    if options.name == real.NAME:
        return real.placed(place, facts, model, options.asking, changes, options.arms or ())
    return placed(place, facts, model, changes)


def add_options(command: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    command.add_argument("name", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    command.add_argument(
        "--quick", action="store_true", help="two epochs on an eighth of the facts: does it work?"
    )
    command.add_argument(
        "--facts",
        help="main, rates, forgetting, ablation, coefficients, scores, epochs, alpha: on these "
        "facts, which "
        "need rewordings; real: default cities",
    )
    command.add_argument(
        "--model",
        help="the same: on this model, by name or path, a sweep at the paper's rates; real: "
        "default smollm2",
    )
    command.add_argument(
        "--asking",
        default="text-examples",
        help="real: text-examples, or chat, in the model's own words",
    )
    command.add_argument(
        "--retain",
        help=f"with --facts: the facts to retain: {', '.join(RETAIN)}, or a file of them",
    )
    command.add_argument(
        "--columns", help="with them: which column holds what: question=prompt,answer=reply"
    )
    command.add_argument(
        "--drop-bad",
        action="store_true",
        help="with them: leave out facts with scores that are none",
    )
    command.add_argument(
        "--anchors",
        help="with them: quantiles, or score:beta,score:beta, but where an arm says its",
    )
    command.add_argument(
        "--set", action="append", metavar="NAME=VALUE", help="with them: a setting of every run"
    )
    command.add_argument(
        "--seeds", type=int, help=f"how many seeds; default {SEEDS}, of tuned 5, with --quick 1"
    )
    command.add_argument(
        "--first-seed", type=int, help="the first of them; default 0, of tuned and real 1"
    )
    command.add_argument(
        "--processes",
        type=int,
        default=os.cpu_count() or 1,
        help="default: one a core; each loads the model",
    )
    command.add_argument(
        "--out", type=Path, help="folder of results; default: bench, beside the runs"
    )
    command.add_argument(
        "--ray", action="store_true", help="on Ray: the cluster of $RAY_ADDRESS, or this machine"
    )
    command.add_argument(
        "--table", action="store_true", help="run nothing, print the tables of the rows in --out"
    )
    command.add_argument(
        "--distance",
        action="store_true",
        help="add the distance to the oracle to rows without; run nothing else",
    )
    command.add_argument(
        "--trials", type=int, default=40, help="tuned: of each arm, at seed 0; default 40"
    )
    command.add_argument(
        "--arms", nargs="+", help="tuned, real: these alone: methods, or presets of AdaPop"
    )
    command.add_argument(
        "--world",
        default=SANDBOX,
        help="tuned: the winners as they are in another world, such as people, or in three",
    )
    command.add_argument(
        "--anew",
        action="store_true",
        help="tuned, with --world people: searched there, not the sandbox's winners",
    )
    command.add_argument(
        "--sandbox", action="store_true", help="speed: of the sandbox alone, with waiting times"
    )
    command.add_argument(
        "--real", action="store_true", help="speed: of smollm2 on cities, with --quick on few"
    )
