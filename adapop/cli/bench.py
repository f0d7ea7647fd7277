"""`bench`: the experiments on the sandbox, and the speed of training and of the app."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from adapop.cli import printing
from adapop.cli.options import retain_of
from adapop.cli.scores import reading_of
from adapop.config.run import read_settings
from adapop.errors import ConfigError
from adapop.facts.catalog import load_facts, model_of
from adapop.facts.fact import SANDBOX
from adapop.facts.retain import RETAIN
from adapop.popularity.calibration import calibrated

if TYPE_CHECKING:
    from adapop.experiments.run import Place

NAMES = (
    "main", "rates", "ablation", "coefficients", "scores", "proxies", "epochs", "levels", "worlds",
    "alpha", "forgetting", "metrics", "survival", "signals", "frontiers", "tuned", "real",
    "speed",
)  # fmt: skip
SEEDS = 3
FRONTIERS = "gemma3-270m"  # the model of `bench frontiers`
REAL = ("smollm2", "cities")  # the model and the facts of `bench real`


def bench(options: argparse.Namespace) -> int:
    """`bench NAME`: makes the missing runs of an experiment and prints its tables. Exit status 1 if
    a run failed. Raises ConfigError: options do not go together."""
    if options.name in ("survival", "signals", "frontiers"):
        return _study(options)
    if options.name != "speed" or options.facts or options.model:
        return _experiment(options)
    from adapop.experiments import speed

    speed.main(options.sandbox, options.real, options.quick)
    return 0


def _study(options: argparse.Namespace) -> int:
    """An experiment whose rows have a form of their own."""
    from adapop.experiments import frontiers, signals_compared, survival, survival_real
    from adapop.experiments.engine import finished
    from adapop.experiments.survival_tables import tables as survival_tables
    from adapop.runs.run import runs_root

    study, tables, make = survival, survival_tables, survival.run
    if options.name == "signals":
        study, tables, make = signals_compared, signals_compared.tables, signals_compared.run
    elif options.name == "frontiers":
        study, tables = frontiers, frontiers.tables
        make = partial(frontiers.run, model=options.model or FRONTIERS)
    elif options.model:
        study, tables = survival_real, survival_real.tables
        make = partial(survival_real.run, models=(options.model,))
    first = study.SEEDS[0] if options.first_seed is None else options.first_seed
    usual = 1 if options.quick else len(study.SEEDS)
    count = usual if options.seeds is None else options.seeds
    folder = (options.out or runs_root().parent / "bench").resolve()
    seeds, errors = tuple(range(first, first + count)), {}
    if not options.table:
        engine = partial(finished, processes=options.processes, ray=options.ray)
        report = partial(printing.say, file=sys.stderr, flush=True)
        errors = make(folder, seeds, engine, options.quick, report)
    if not options.quick:
        rows = study.rows(folder / study.FILE)
        printing.say("\n\n".join(table.as_markdown() for table in tables(rows)))
    _say_errors(errors)
    return int(bool(errors))


def _experiment(options: argparse.Namespace) -> int:
    from adapop.experiments.engine import finished
    from adapop.experiments.run import Place, as_markdown, run, write
    from adapop.experiments.tuned import experiment as recorded_searches
    from adapop.runs.run import runs_root

    tuned, real = options.name == "tuned", options.name == "real"
    usual = 1 if options.quick else SEEDS
    count = usual if options.seeds is None else options.seeds
    # The rates of `bench real` are chosen at seed 0.
    first = int(real) if options.first_seed is None else options.first_seed
    if min(count, options.processes) < 1 or first < 0:
        fix = "--seeds and --processes must be at least 1, --first-seed at least 0."
        raise ConfigError("A number is too small.", fix)
    folder = (options.out or runs_root().parent / "bench").resolve()
    place = Place(options.name, folder, tuple(range(first, first + count)), options.quick)
    engine = partial(finished, processes=options.processes, ray=options.ray)
    own = real or options.facts or options.model
    if own:
        place = _own(options, place)
    elif options.set or options.retain or options.columns or options.drop_bad or options.anchors:
        names = "--set, --retain, --columns, --drop-bad and --anchors"
        message = f"{names} go with --facts or --model."
        raise ConfigError(message, "Leave them out, or add --facts or --model.")
    report, errors = partial(printing.say, file=sys.stderr, flush=True), {}
    if tuned:
        name, experiment = recorded_searches(options.world, options.anew)
        place = replace(place, name=name, own=experiment)
    elif not options.table:
        errors = run(place, engine, report)
    printing.say(as_markdown(place) if options.table else write(place))
    _say_errors(errors)
    if not options.table:
        printing.say(f"\nrows, tables and figures: {place.file('.*')}", file=sys.stderr)
    return int(bool(errors))


def _say_errors(errors: dict[str, str]) -> None:
    for title, error in errors.items():
        printing.say(f"not done: {title}: {error}", file=sys.stderr)


def _own(options: argparse.Namespace, place: Place) -> Place:
    from adapop.experiments import real
    from adapop.experiments.run import placed

    if options.name == real.NAME:
        model, source = options.model or REAL[0], options.facts or REAL[1]
    else:
        model = options.model or model_of(options.facts)
        source = options.facts or model_of(model)
    facts = load_facts(source, model, retain=retain_of(options), **reading_of(options))
    printing.print_notes(facts, False)
    changes = read_settings(options.set or [])
    if options.anchors is not None:
        changes["beta"] = calibrated(options.anchors, facts)
    if options.name == real.NAME:
        return real.placed(place, facts, model, options.asking, changes, options.arms or ())
    return placed(place, facts, model, changes)


def add_options(command: argparse.ArgumentParser) -> None:
    """The options of `bench`."""
    flag, add = {"action": "store_true"}, command.add_argument
    add("name", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    add("--quick", **flag, help="a quick test: two epochs on an eighth of the facts")
    facts = (
        "main, rates, forgetting, ablation, coefficients, scores, epochs, alpha: on these facts, "
        "which need rewordings; real: default cities"
    )
    add("--facts", help=facts)
    model = (
        "name or path of the model for the experiments of --facts (a sweep then uses the paper's "
        "rates); real: default smollm2; survival: smollm2 or gemma3-270m, on places; frontiers: "
        "default gemma3-270m"
    )
    add("--model", help=model)
    asking = "real: text-examples, or chat, in the model's own words"
    add("--asking", default="text-examples", help=asking)
    retain = f"with --facts: the facts to retain: {', '.join(RETAIN)}, or a file of them"
    add("--retain", help=retain)
    add("--columns", help="with --facts: which column holds what: question=prompt,answer=reply")
    add("--drop-bad", **flag, help="with --facts: leave out those whose score cannot be read")
    anchors = "with --facts: quantiles, or score:beta,score:beta, except for arms with their own"
    add("--anchors", help=anchors)
    add("--set", action="append", metavar="NAME=VALUE", help="with --facts: a setting of every run")
    add("--seeds", type=int, help=f"how many; default {SEEDS} in most experiments, with --quick 1")
    add("--first-seed", type=int, help="the first seed; default 0 in most experiments, for real 1")
    cores = "default: one per core; each loads the model"
    add("--processes", type=int, default=os.cpu_count() or 1, help=cores)
    add("--out", type=Path, help="folder of results; default: bench, beside the runs")
    add("--ray", **flag, help="on Ray: the cluster of $RAY_ADDRESS, or this machine")
    add("--table", **flag, help="run nothing; print the tables of the rows in --out")
    add("--arms", nargs="+", help="real: only these arms: methods, or presets of AdaPop")
    world = "tuned: the recorded runs in sandbox (default), half-spread, people, or all three"
    add("--world", default=SANDBOX, help=world)
    anew = "tuned, with --world people: use settings tuned there, not in the sandbox"
    add("--anew", **flag, help=anew)
    add("--sandbox", **flag, help="speed: measure the sandbox alone")
    add("--real", **flag, help="speed: measure smollm2 on cities alone")
