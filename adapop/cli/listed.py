"""The command that lists the runs, and deletes some."""

import argparse
from dataclasses import asdict
from datetime import datetime

from adapop.cli import printing
from adapop.errors import RunError, truncated
from adapop.report.record import name_of
from adapop.report.table import Table, percent, reading
from adapop.runs.files import UNFINISHED
from adapop.runs.inputs import DECISIVE
from adapop.runs.listed import all_runs, damage_of
from adapop.runs.run import Run, runs_root
from adapop.service.cleanup import delete_hidden, hide, in_use
from adapop.training.events import Measured

HEAD = ("run", "started", "state", "epochs", "method", "model", "set", "forget", "holdout")


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
    printing.say(Table(title, HEAD, cells, reading("runs")).as_text())


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
        return [row["run"], "–", row["state"], *[""] * (len(HEAD) - 4), row["problem"]]
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
