"""All runs of a folder. Damaged ones are listed too: they must not hide the others."""

from pathlib import Path

from adapop.assets import parse_json
from adapop.errors import AdaPopError, RunError
from adapop.runs import files
from adapop.runs.inputs import FACTS, check_inputs
from adapop.runs.run import RUN_ID, Run, runs_root


def all_runs(root: Path | None = None) -> list[Run]:
    """Every run under the root, newest first, also damaged ones (`damage_of`). Raises RunError."""
    root = root or runs_root()
    try:
        folders = list(root.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        fix = "Choose another folder of runs with ADAPOP_RUNS."
        raise RunError(f"{root} cannot be read ({error.strerror}).", fix) from error
    changed = {folder: when for folder in folders if (when := _made_at(folder)) is not None}
    return [Run(folder) for folder in sorted(changed, key=changed.__getitem__, reverse=True)]


def _made_at(folder: Path) -> int | None:
    """When a run was made, in ns; None if this is no run's folder, 0 if it may not be read. The
    remains of a preparation that was killed are listed, as damaged, so that they can be deleted."""
    try:
        if folder.name.startswith(files.UNFINISHED) and RUN_ID.fullmatch(folder.name):
            return folder.lstat().st_mtime_ns
        return (folder / "config.json").lstat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return 0


def damage_of(run: Run) -> AdaPopError | None:
    """Why a run cannot be used. None if its files are regular files, its configuration, log, scores
    and first fact can be read, and its settings are those it was prepared with."""
    facts = run.folder / FACTS
    if run.id.startswith(files.UNFINISHED):
        fix = f"Delete it: `python -m adapop runs --delete {run.id}`."
        return RunError("It was never completely prepared.", fix)
    try:
        files.check_kinds(run.folder)
        _ = run.config, run.state, run.versions, run.betas
        with files.reading(facts), open(facts, "rb") as lines:
            parse_json(lines.readline())
        check_inputs(run, every=False)
    except AdaPopError as error:
        return error
    return None
