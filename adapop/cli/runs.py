"""Commands on runs: start one, go on with one."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from adapop.cli import printing
from adapop.cli.check import looked_at
from adapop.cli.options import retain_of, settings_of
from adapop.cli.scores import chosen_columns
from adapop.config.presets import follows_scores, make_config
from adapop.config.run import RunConfig
from adapop.errors import ConfigError, RunError
from adapop.facts.catalog import load_facts, model_of
from adapop.facts.fact import FactSet
from adapop.facts.tiers import ON_SCALE
from adapop.paths import SHIPPED
from adapop.popularity.calibration import AUTO, calibrated
from adapop.report.beside_paper import beside
from adapop.report.settings import FACTS_FILE
from adapop.runs.pace import left_of
from adapop.runs.remarks import nothing_forgotten
from adapop.runs.run import Run, find_run, runs_root
from adapop.training.events import Event, RunFailed, RunStarted, StepDone, to_json

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel
    from adapop.training.processes import Ranks

UNMOVED = 3  # exit status: it came to its end, and what was to be forgotten is all there


def run(options: argparse.Namespace) -> int:
    """`run`: prepares a run and follows it to its end, in as many processes as were launched."""
    from adapop.runs.execute import execute
    from adapop.training.processes import joined

    with joined() as ranks:
        run, model = ranks.led(lambda: _prepared(options, ranks.count == 1))
        return _follow(run, execute(run, model, ranks=ranks, heard=_heard(options.json)), options.json, ranks)


def _prepared(options: argparse.Namespace, alone: bool) -> tuple[Run, AdaptedModel | None]:
    """The run, and its model if it was loaded to look at it. alone: no other process works on the run."""
    from adapop.runs.execute import prepare
    from adapop.runs.preflight import costs_of_model

    config, facts = configured(options)
    printing.print_notes(facts, options.json)
    if config.model not in SHIPPED and not options.json:
        costs = costs_of_model(facts, config)  # the time is measured
        printing.say("\n".join([costs.memory, *costs.others]), file=sys.stderr, flush=True)
    model = None
    if alone:
        model = looked_at(options, config, facts)
    return prepare(config, facts, options.out), model


def _heard(as_json: bool) -> Callable[[Event], None]:
    """Prints what is said while a run measures."""

    def said(event: Event) -> None:
        if as_json:
            printing.say(to_json(event), flush=True)
        elif sys.stdout.isatty():
            printing.overwritten(printing.event_text(event), sys.stdout)
        else:
            printing.say(printing.event_text(event), flush=True)

    return said


def configured(options: argparse.Namespace) -> tuple[RunConfig, FactSet]:
    """The configuration and the facts that the options of `run` describe: those of --config with the other options on
    top, or those of method, preset and model.

    Raises:
        ConfigError: options that cannot be combined, a file that is no configuration, or anchors that nothing uses.
        DataError, NetworkError: the facts cannot be had.
    """
    named = options.facts or model_of(options.model)  # a shipped model is about its own world, and the world about it
    changes = settings_of(options) | ({"facts": named} if options.facts or not options.config else {})
    if options.config:
        config = _config_of(options)
        arguments = {**config.arguments, **changes.pop("arguments", {})}
        config = replace(config, arguments=arguments, **changes)
    else:
        names = {"method": _method(options.method), "preset": options.preset, "model": options.model or model_of(named)}
        config = make_config(**{name: value for name, value in names.items() if value is not None}, **changes)
    beside_config = options.config and options.config.with_name(FACTS_FILE)
    if beside_config and not options.facts and beside_config.is_file():
        if options.retain:
            raise ConfigError("--config brings its own facts to retain.", "Leave --retain out, or give --facts too.")
        facts = FactSet.load(beside_config, config.facts)
        facts = facts if facts.tiers.source else replace(facts, tiers=ON_SCALE)  # of an older run
    else:
        chosen = {"columns": chosen_columns(options), "drop_bad": options.drop_bad}
        facts = load_facts(config.facts, config.model, retain=retain_of(options), **chosen)
    if options.anchors is not None:
        if not follows_scores(config):
            raise ConfigError("--anchors changes nothing here: no score decides this run.", "Leave it out.")
        auto = options.anchors == AUTO  # settled with the run's facts
        config = replace(config, beta=None if auto else calibrated(options.anchors, facts))
    return config, facts


def _config_of(options: argparse.Namespace) -> RunConfig:
    """The configuration in the file of --config, which decides method and preset; of the model too, unless --model says
    where that lies now."""
    for name in ("method", "preset"):
        if getattr(options, name) is not None:
            raise ConfigError(f"--config says the {name} already.", f"Leave --{name} out, or --config.")
    try:
        config = RunConfig.from_json(options.config.read_text(encoding="utf-8"))
        return replace(config, model=options.model or config.model)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have, or text that does not read
        raise ConfigError(f"{str(options.config)!r} cannot be read ({error}).", "Name a run's config.json.") from None


def _method(name: str | None) -> str | type | None:
    """The method as `make_config` takes it: its name, or the class that package.module:Class names."""
    if name is None or ":" not in name:
        return name
    from adapop.objectives import objective_class

    return objective_class(name)


def resume(options: argparse.Namespace) -> int:
    """`resume`: goes on with a stopped or interrupted run."""
    from adapop.runs.execute import execute
    from adapop.training.processes import joined

    with joined() as ranks:
        run = ranks.led(lambda: _to_resume(options.run))
        return _follow(run, execute(run, ranks=ranks, heard=_heard(options.json)), options.json, ranks)


def _to_resume(name: str) -> Run:
    run = find_run(name)
    if run.state == "done":
        raise ConfigError(f"Run {run.id} is complete.", "Start a new one, or probe this one.")
    if run.locked:  # before the request to stop is taken back: it may be meant for who works on it
        message = f"Run {run.id} is being worked on by another process."
        raise RunError(message, "Wait until it is done, or stop it there.")
    run.clear_stop()
    return run


def _follow(run: Run, events: Iterator[Event], as_json: bool, ranks: Ranks) -> int:
    """Prints a run's events as they come and its table at the end. Exit status 1 if it failed, 3 if it changed nothing.
    The processes beside the first print nothing."""
    if not ranks.first:
        return int(any([isinstance(event, RunFailed) for event in events]))  # a list: each event must be worked for
    failed, steps, so_far = False, 0, run.events()
    for event in _until_interrupted(run, events):
        failed = failed or isinstance(event, RunFailed)
        steps = event.steps if isinstance(event, RunStarted) else steps
        so_far.append(event)
        if as_json:
            printing.say(to_json(event), flush=True)
        elif isinstance(event, StepDone):
            printing.overwritten(printing.step_text(event, steps, left_of(so_far)), sys.stdout)
        elif text := printing.event_text(event):
            printing.say(text, flush=True)
    if not as_json and run.state == "stopped":
        printing.say(f"go on with: python -m adapop resume {_shortest_name(run)}")
    if not as_json and run.state == "done":
        printing.say(printing.result_text(run))
        if compared := beside(run):
            table, differences = compared
            printing.say(f"\n{table.as_text()}\n\nwhat differs:", *(f"- {line}" for line in differences), sep="\n")
        question = shlex.quote(run.facts.forget[0].question)
        printing.say(f"\nprobe it with: python -m adapop probe {_shortest_name(run)} --prompt {question}")
    return 1 if failed else UNMOVED if run.state == "done" and nothing_forgotten(run) else 0


def _until_interrupted(run: Run, events: Iterator[Event]) -> Iterator[Event]:
    """The events; prints how to go on if Ctrl-C ends them."""
    try:
        yield from events
    except KeyboardInterrupt:
        printing.say(f"\ngo on with: python -m adapop resume {_shortest_name(run)}", file=sys.stderr)
        raise


def _shortest_name(run: Run) -> str:
    """What the other commands find the run by: its id, or its path if it is not where runs live."""
    return run.id if run.folder.parent == runs_root() else str(run.folder)
