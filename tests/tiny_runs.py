"""Runs that take a second: the settings for a handful of facts, and such a run made to its end."""

import shutil
from pathlib import Path

from adapop import FactSet, RunConfig, make_config
from adapop.runs.run import Run, runs_root

RATE = 1e-2  # one epoch forgets more than half
ROW = {"tier": "all", "form": "direct", "facts": 12, "before": 0.25, "after": 0.5, "control": 0.375}
RELEARNT = {"rows": [ROW], "trained": ["a", "b"], "steps": 10, "learning_rate": 1e-3, "seconds": 1.0}


def tiny_config(method: str = "adapop", **changes) -> RunConfig:
    """One epoch, two facts a step: two steps on the fixture `tiny`."""
    return make_config(method, **{"epochs": 1, "batch": 2, "learning_rate": RATE, **changes})


def ran(config: RunConfig, facts: FactSet, root: Path | None = None) -> Run:
    """A run that came to its end."""
    from adapop.runs.execute import execute, prepare  # which load torch

    run = prepare(config, facts, root)
    for _ in execute(run):
        pass
    assert run.state == "done", run.events()[-1]
    return run


def trained(facts: FactSet, root: Path, method: str = "adapop", **changes) -> Run:
    """Such a run by `tiny_config`."""
    return ran(tiny_config(method, **changes), facts, root)


def copied(run: Run, root: Path | None = None, name: str = "") -> Run:
    """The same run in another folder, by default the test's own for runs, to be changed."""
    return Run(Path(shutil.copytree(run.folder, (root or runs_root()) / (name or run.id))))


def commands_on(name: str, out: Path) -> list[list[str]]:
    """Every command that reads a run."""
    return [
        ["probe", name, "--prompt", "Who?"], ["probe", name, "--kinds", "direct"],
        ["report", name, "--out", str(out / "r.html")],
        ["report", name, "--out", str(out / "r.zip")],
        ["export", name, "--out", str(out / "adapter")],
        ["export", name, "--merged", "--out", str(out / "merged")], ["tokens", "--run", name],
        ["resume", name]]  # fmt: skip
