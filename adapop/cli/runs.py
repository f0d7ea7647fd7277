"""Commands on runs: start one, go on with one, list them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from adapop import console
from adapop.catalog import load_facts
from adapop.cli.notes import print_notes
from adapop.config import make_config
from adapop.errors import AdaPopError, ConfigError
from adapop.events import Event, RunFailed, RunStarted, StepDone, to_json
from adapop.runs import Run, all_runs, find_run, runs_root


def run(options: argparse.Namespace) -> int:
    """`run`: prepares a run and follows it to its end."""
    from adapop.execution import execute, prepare

    changes = {"learning_rate": options.lr, "epochs": options.epochs, "seed": options.seed}
    changes = {name: value for name, value in changes.items() if value is not None}
    config = make_config(
        options.method,
        options.preset,
        options.model,
        facts=options.facts,
        missing_score=options.missing_score,
        cosine=options.cosine,
        **changes,
    )
    facts = load_facts(options.facts, options.model)
    print_notes(facts, options.json)
    run = prepare(config, facts, options.out)
    return _follow(run, execute(run), options.json)


def resume(options: argparse.Namespace) -> int:
    """`resume`: goes on with a stopped or interrupted run."""
    from adapop.execution import execute

    run = find_run(options.run)
    if run.state == "done":
        raise ConfigError(f"Run {run.id} is complete.", "Start a new one, or probe this one.")
    run.clear_stop()
    return _follow(run, execute(run), options.json)


def runs(options: argparse.Namespace) -> None:
    """`runs`: every run with its state."""
    for run in all_runs():
        try:
            config, state = run.config, run.state
        except AdaPopError as error:
            print(f"{run.id}: {error}", file=sys.stderr)
            continue
        row = {
            "run": run.id,
            "state": state,
            "method": config.method,
            "preset": config.preset,
            "facts": config.facts,
            "model": config.model,
            "epoch": run.last_epoch or 0,
            "epochs": config.epochs,
        }
        print(json.dumps(row) if options.json else "  ".join(f"{value!s:<10}" for value in row.values()))


def _follow(run: Run, events: Iterator[Event], as_json: bool) -> int:
    """Prints a run's events as they come and its table at the end. Exit status 1 if it failed."""
    failed, steps = False, 0
    for event in events:
        failed = failed or isinstance(event, RunFailed)
        steps = event.steps if isinstance(event, RunStarted) else steps
        if as_json:
            print(to_json(event), flush=True)
        elif isinstance(event, StepDone):
            if sys.stdout.isatty():
                print(f"\r{console.step_text(event, steps)}\033[K\r", end="", flush=True)
        elif text := console.event_text(event):
            print(text, flush=True)
    if not as_json and run.state == "stopped":
        print(f"go on with: python -m adapop resume {_shortest_name(run)}")
    if not as_json and run.state == "done":
        print(console.result_text(run))
        print(f"\nprobe it with: python -m adapop probe {_shortest_name(run)} --prompt 'Who wrote the book Hamlet?'")
    return int(failed)


def _shortest_name(run: Run) -> str:
    """What the other commands find the run by: its id, or its path if it is not where runs live."""
    return run.id if run.folder.parent == runs_root() else str(run.folder)
