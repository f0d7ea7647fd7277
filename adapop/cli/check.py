"""The command that looks before a run, and what `run` does with the same look."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from adapop.cli import printing
from adapop.cli.options import configured
from adapop.config.run import RunConfig
from adapop.errors import ConfigError
from adapop.facts.catalog import ENTRIES
from adapop.facts.fact import FactSet
from adapop.paths import SHIPPED
from adapop.progress import Progress
from adapop.remark import Remark, sentences
from adapop.runs.preflight import few_steps

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel
    from adapop.runs.check import Check


def check(options: argparse.Namespace) -> int:
    """`check`: what a run of these facts would meet. Exit status 1 if it would be in vain."""
    config, read = configured(options)
    printing.print_notes(read, options.json)  # first: they may say why the look fails
    checked, _ = _looked(config, read)
    facts = checked.facts
    printing.print_notes(replace(facts, notes=facts.notes[len(read.notes) :], problems=()), options.json)
    if options.json:
        printing.say_json(checked.as_json())
    else:
        printing.say("\n".join(checked.lines_for("command")))
    if options.out:
        try:
            facts.write(options.out)
        except OSError as error:
            error.filename = str(options.out)  # a full disk names no file
            raise
    return int(bool(checked.waste or checked.looked.problems))


def looked_at(options: argparse.Namespace, config: RunConfig, facts: FactSet) -> AdaptedModel | None:
    """The model of a `run` if it was loaded for a look at it. Facts and model that ship are known
    and not looked at, but for how far the steps go.

    Raises:
        ConfigError: the run would be in vain, and --yes is not given.
    """
    if config.model in SHIPPED and config.facts in ENTRIES and not options.known_only:
        _refused(few_steps(facts, config), options)
        return None
    checked, model = _looked(config, facts)
    if not options.json:
        printed = checked.looked.costs  # before the model was loaded
        lines = (line for line in checked.lines_for("command") if line not in printed)
        printing.say("\n".join(lines), file=sys.stderr, flush=True)
    _refused([*checked.looked.problems, *checked.waste], options)
    return model


def _refused(reasons: Sequence[str | Remark], options: argparse.Namespace) -> None:
    if reasons and not options.yes:
        reason, *_ = sentences(reasons, reader="command")
        raise ConfigError(f"This run would be in vain. {reason}", "Start it all the same with --yes.")


def _looked(config: RunConfig, facts: FactSet) -> tuple[Check, AdaptedModel]:
    """What a look finds, and the model."""
    from adapop.model.loading import adapted_model
    from adapop.runs import check as looking
    from adapop.runs.execute import settled

    progress = Progress(printing.progress_line)
    model = adapted_model(settled(config, facts)[0])
    checked = looking.check(config, facts, model, progress)
    printing.progress_line("")
    return checked, model
