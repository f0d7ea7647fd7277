"""The whole of a run in one call, for programs and notebooks."""

from pathlib import Path

from tqdm.auto import tqdm

from adapop.config.run import RunConfig
from adapop.errors import RunError
from adapop.facts.fact import FactSet
from adapop.model.adapted import AdaptedModel
from adapop.remark import sentences
from adapop.runs.execute import execute, prepare
from adapop.runs.run import Run
from adapop.training.events import Measured, RunDone, RunFailed, RunStarted, StepDone


def unlearn(
    config: RunConfig,
    facts: FactSet,
    model: AdaptedModel | None = None,
    root: Path | None = None,
    progress: bool = True,
) -> Run:
    """The finished run of a configuration on a set of facts: prepared, trained and measured.

    model: with a fresh adapter, to train that one; by default it is loaded. root: the folder in
    which the run's folder is made, by default that of all runs. progress: show a bar that counts
    optimiser steps, and at the end the run's remarks, such as that nothing was forgotten. To stop
    early, interrupt it; `execute(run)` then continues after the last saved epoch. To follow the
    events yourself, use `prepare` and `execute`. Raises DataError, ConfigError: as `prepare`.
    RunError: the run failed; the message says why, and its events are in the run's folder."""
    run = prepare(config, facts, root)
    with tqdm(desc=run.config.method, unit="step", disable=not progress) as bar:
        for event in execute(run, model):
            if isinstance(event, RunStarted):
                bar.reset(total=event.epochs * event.steps)
            elif isinstance(event, StepDone):
                bar.update()
            elif isinstance(event, Measured) and event.full:
                bar.set_postfix_str("measuring")
            elif isinstance(event, Measured) and (recall := event.recall("forget")) is not None:
                bar.set_postfix_str(f"recall of the facts to forget {recall:.2f}")
            elif isinstance(event, RunDone) and progress:
                notes = [f"note: {note}" for note in sentences(event.notes, "program")]
                tqdm.write("\n".join(notes), end="\n" * bool(notes))
            elif isinstance(event, RunFailed):
                raise RunError(event.message, event.fix)
    return run
