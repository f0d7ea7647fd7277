"""Commands on runs: check one beforehand, start it, resume it; list all, and delete some."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from adapop.cli import printing
from adapop.cli.options import configured, retain_of
from adapop.cli.scores import reading_of
from adapop.config.run import RunConfig, read_settings
from adapop.errors import ConfigError, RunError, truncated
from adapop.facts.catalog import ENTRIES
from adapop.facts.fact import FactSet
from adapop.paths import SHIPPED
from adapop.progress import Progress
from adapop.remark import Remark, sentences
from adapop.report.beside_paper import beside
from adapop.report.record import name_of
from adapop.report.table import Table, percent
from adapop.runs.amount import few_steps
from adapop.runs.files import UNFINISHED
from adapop.runs.inputs import DECISIVE
from adapop.runs.listed import all_runs, damage_of
from adapop.runs.pace import left_of
from adapop.runs.result import result_of
from adapop.runs.run import Run, find_run, runs_root
from adapop.runs.trackers import following
from adapop.service.cleanup import delete_hidden, hide, in_use
from adapop.training.events import Event, Measured, RunFailed, RunStarted, StepDone, to_json

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel
    from adapop.runs.check import Check
    from adapop.training.processes import Ranks

LISTED_HEAD = ("run", "started", "state", "epochs", "method", "model", "set", "forget", "held out")
NOT_UNLEARNED = 3  # exit status: the run was done, and its facts are still answered in some way
RUNS_NOTE = (
    "forget, held out: recall before → after, asked as trained, of the forget set (less is better) "
    "and of the held-out facts (more is better); – means not measured. `python -m adapop resume "
    "RUN` continues one that was interrupted or stopped."
)


def run(options: argparse.Namespace) -> int:
    """`run`: prepares a run and executes it, in as many processes as were launched."""
    from adapop.training.processes import joined

    with joined() as ranks:
        whole = ranks.shards is None
        run, model = ranks.led(lambda: _prepared(options, ranks.count == 1, whole))
        return _execute(run, model, options, ranks)


def _prepared(
    options: argparse.Namespace, alone: bool, whole: bool
) -> tuple[Run, AdaptedModel | None]:
    """The run, and its model if it was loaded to check it. alone: whether in one process only.
    whole: whether a process holds all weights."""
    from adapop.runs.execute import prepare
    from adapop.runs.preflight import memory_of, terms_of

    config, facts = configured(options)
    printing.print_notes(facts, options.json)
    if config.model not in SHIPPED and not options.json:
        memory = [memory_of(config)] if whole else []
        costs = sentences([*memory, *terms_of(config)], "command")  # time: in the check
        printing.say("\n".join(costs), file=sys.stderr, flush=True)
    model = checked_model(options, config, facts) if alone else None
    return prepare(config, facts, options.out), model


def adopt(options: argparse.Namespace) -> int:
    """`adopt`: makes a run of a model that was unlearned elsewhere, and measures both models."""
    from adapop.runs.adopted import adopted_config, facts_for
    from adapop.runs.execute import prepare
    from adapop.training.processes import ALONE

    places = options.original, options.unlearned, options.oracle
    config = adopted_config(*places, facts=options.facts, **read_settings(options.set or []))
    facts = facts_for(config, options.facts, retain_of(options), **reading_of(options))
    printing.print_notes(facts, options.json)
    return _execute(prepare(config, facts, options.out), None, options, ALONE)


def _print_progress(event: Event, as_json: bool) -> None:
    """Prints a measurement's progress."""
    if as_json:
        printing.say(to_json(event), flush=True)
    elif sys.stdout.isatty():
        printing.overwritten(printing.event_text(event), sys.stdout)
    else:
        printing.say(printing.event_text(event), flush=True)


def resume(options: argparse.Namespace) -> int:
    """`resume`: continues a stopped or interrupted run."""
    from adapop.training.processes import joined

    with joined() as ranks:
        return _execute(ranks.led(lambda: _to_resume(options.run)), None, options, ranks)


def _to_resume(name: str) -> Run:
    run = find_run(name)
    if run.state == "done":
        raise ConfigError(f"Run {run.id} is complete.", "Start a new one, or probe this one.")
    if run.locked:  # first: the stop request may be meant for the other process
        message = f"Run {run.id} is in use by another process."
        raise RunError(message, "Wait until that process is done, or stop the run there.")
    run.clear_stop()
    return run


def _execute(
    run: Run, model: AdaptedModel | None, options: argparse.Namespace, ranks: Ranks
) -> int:
    """Executes a run; prints its events as they come and its table at the end, and logs them to the
    tracker of --log, in the first process alone. Exit status 1 if it failed, 3 if it did not
    unlearn, see `runs.result`."""
    from adapop.runs.execute import execute

    as_json = options.json
    logged = options.log if ranks.first else ""
    follow = ranks.together(lambda: following(run, logged) if logged else None)
    events = execute(run, model, ranks=ranks, heard=partial(_print_progress, as_json=as_json))
    if not ranks.first:
        # A list, because every event must be produced.
        return int(any([isinstance(event, RunFailed) for event in events]))
    failed, steps, so_far = False, 0, run.events()
    for event in _until_interrupted(run, events):
        failed = failed or isinstance(event, RunFailed)
        steps = event.steps if isinstance(event, RunStarted) else steps
        so_far.append(event)
        if follow:
            follow(event)
        if as_json:
            printing.say(to_json(event), flush=True)
        elif isinstance(event, StepDone):
            printing.overwritten(printing.step_text(event, steps, left_of(so_far)), sys.stdout)
        elif text := printing.event_text(event):
            printing.say(text, flush=True)
    if not as_json and run.state == "stopped":
        printing.say(_how_to_resume(run))
    if not as_json and run.state == "done":
        printing.say(printing.result_text(run))
        if compared := beside(run):
            printing.say("", *(table.as_text() for table in compared), sep="\n")
        question = shlex.quote(run.facts.forget[0].question)
        command = f"probe {_shortest_name(run)} --prompt {question}"
        printing.say(f"\nprobe it with: python -m adapop {command}")
    result = result_of(run) if run.state == "done" else None
    return 1 if failed else NOT_UNLEARNED if result and not result.unlearned else 0


def _until_interrupted(run: Run, events: Iterator[Event]) -> Iterator[Event]:
    """The events; if Ctrl-C ends them, prints how to resume."""
    try:
        yield from events
    except KeyboardInterrupt:
        printing.say(f"\n{_how_to_resume(run)}", file=sys.stderr)
        raise


def _how_to_resume(run: Run) -> str:
    return f"go on with: python -m adapop resume {_shortest_name(run)}"


def _shortest_name(run: Run) -> str:
    """The name by which other commands find the run: its id, or its path if it lies elsewhere."""
    return run.id if run.folder.parent == runs_root() else str(run.folder)


def check(options: argparse.Namespace) -> int:
    """`check`: checks a run before it starts. Exit status 1 if it would be useless."""
    config, read = configured(options)
    printing.print_notes(read, options.json)  # first: the notes may say why the check fails
    checked, _ = _looked(config, read)
    facts = checked.facts
    new = replace(facts, notes=facts.notes[len(read.notes) :], problems=())
    printing.print_notes(new, options.json)
    if options.json:
        printing.say_json(checked.as_json())
    else:
        printing.say("\n".join(checked.lines_for("command")))
    if options.out:
        try:
            facts.write(options.out)
        except OSError as error:
            error.filename = str(options.out)  # the error of a full disk names no file
            raise
    return int(bool(checked.waste or checked.preflight.problems))


def checked_model(
    options: argparse.Namespace, config: RunConfig, facts: FactSet
) -> AdaptedModel | None:
    """The model of a `run`, if it was loaded to check the run. Shipped facts with a shipped model
    are not checked, except for too few steps. Raises ConfigError: the run would be useless, and
    --yes is not given."""
    if config.unlearned:
        return None
    if config.model in SHIPPED and config.facts in ENTRIES and not options.known_only:
        _refused(few_steps(len(facts.forget), config, refused_only=True), options)
        return None
    checked, model = _looked(config, facts)
    if not options.json:
        printed = checked.preflight.costs  # printed before the model was loaded
        remarks = [remark for remark in checked.remarks if remark not in printed]
        printing.say("\n".join(sentences(remarks, "command")), file=sys.stderr, flush=True)
    _refused([*checked.preflight.problems, *checked.waste], options)
    return None if config.start == "sft" else model  # a run loads anew what it teaches


def _refused(reasons: Sequence[str | Remark], options: argparse.Namespace) -> None:
    if reasons and not options.yes:
        reason, *_ = sentences(reasons, reader="command")
        message = f"This run would be useless. {reason}"
        raise ConfigError(message, "Start it anyway with --yes.")


def _looked(config: RunConfig, facts: FactSet) -> tuple[Check, AdaptedModel]:
    from adapop.model.loading import adapted_model
    from adapop.runs import check as looking
    from adapop.runs.execute import settled

    progress = Progress(printing.overwritten)
    model = adapted_model(settled(config, facts)[0])
    checked = looking.check(config, facts, model, progress)
    printing.overwritten("")
    return checked, model


def runs(options: argparse.Namespace) -> None:
    """`runs`: every run with its state and result, a damaged one with its damage."""
    if options.delete:
        _delete(options.delete)
        return
    rows = [_row(run) for run in all_runs()]
    if options.json:
        for row in rows:
            printing.say_json(row)
        return
    cells = tuple(tuple(_cells(row)) for row in rows)
    title = f"Runs in {runs_root()}, newest first: {len(rows):,}"
    printing.say(Table(title, LISTED_HEAD, cells, RUNS_NOTE).as_text())


def _delete(names: list[str]) -> None:
    """Deletes runs of the runs' folder by id. Refuses paths, and folders without a run's files."""
    listed = {run.id: run for run in all_runs()}
    for name in names:
        if name not in listed:
            raise RunError(
                f"There is no run {truncated(name)!r} in {runs_root()}; nothing was deleted.",
                "`python -m adapop runs` lists the runs. For a run elsewhere set ADAPOP_RUNS to "
                "the folder it lies in.",
            )
        run = listed[name]
        lacking = [file for file in DECISIVE if not (run.folder / file).is_file()]
        if lacking and not run.id.startswith(UNFINISHED):
            message = (
                f"{run.folder} has no {lacking[0]}, so it may not be a run; nothing was deleted."
            )
            raise RunError(message, "See what is in it, and delete the folder yourself.")
        if in_use(run.folder):
            message = f"Run {run.id} is queued or in progress."
            raise RunError(message, "Stop it first; nothing was deleted.")
    for name in dict.fromkeys(names):
        hide(listed[name].folder, runs_root())
        delete_hidden(runs_root())
        printing.say(f"deleted {listed[name].folder}")


def _row(run: Run) -> dict[str, object]:
    if damage := damage_of(run):
        return {"run": run.id, "state": "damaged", "problem": str(damage)}
    config, events = run.config, run.events()
    full = [event for event in events if isinstance(event, Measured) and event.full]
    gap = next((event.gap for event in full if event.epoch), None)
    return {
        "run": run.id,
        "state": run.state,
        **{name: getattr(config, name) for name in ("method", "preset", "facts", "model")},
        "epoch": run.last_epoch or 0,
        "epochs": config.epochs,
        "started": (run.folder / "config.json").stat().st_mtime,
        "gap": asdict(gap) if gap else None,
        "recall": {name: [event.recall(name) for event in full] for name in ("forget", "holdout")},
    }


def _cells(row: dict) -> list[str]:
    if "problem" in row:
        return [row["run"], "–", row["state"], *[""] * (len(LISTED_HEAD) - 4), row["problem"]]
    recalls = []
    for shares in (row["recall"][group] for group in ("forget", "holdout")):
        texts = ["–" if share is None else percent(share) for share in shares]
        recalls.append(" → ".join(texts) or "–")
    return [
        row["run"],
        f"{datetime.fromtimestamp(row['started']):%Y-%m-%d %H:%M}",
        row["state"],
        f"{row['epoch']}/{row['epochs']}",
        row["method"] if row["preset"] == "paper" else f"{row['method']}, {row['preset']}",
        name_of(row["model"]),
        name_of(row["facts"]),
        *recalls,
    ]
