"""The command that looks before a run, and what `run` does with the same look."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from adapop.cli import printing
from adapop.config.run import RunConfig
from adapop.errors import ConfigError
from adapop.facts.catalog import ENTRIES
from adapop.facts.fact import FactSet
from adapop.paths import SHIPPED
from adapop.progress import Progress
from adapop.runs.preflight import hardly_moves

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel
    from adapop.runs.check import Check


def check(options: argparse.Namespace) -> int:
    """`check`: what a run of these facts would meet. Exit status 1 if it would be in vain."""
    from adapop.cli.runs import configured

    config, read = configured(options)
    printing.print_notes(read, options.json)  # first: they may say why the look fails
    found, facts, _ = _looked(config, read, options.known_only)
    printing.print_notes(replace(facts, notes=facts.notes[len(read.notes) :], problems=()), options.json)
    if options.json:
        printing.say_json(found.as_json())
    else:
        printing.say("\n".join(found.lines))
    if options.out:
        facts.write(options.out)
    return int(bool(found.waste or found.looked.problems))


def looked_at(options: argparse.Namespace, config: RunConfig, facts: FactSet) -> tuple[FactSet, AdaptedModel | None]:
    """The facts that `run` is to forget, and the model if it was loaded for a look. Facts and model that ship are known
    and not looked at, but for how far the steps go.

    Raises:
        ConfigError: the run would be in vain, and --yes is not given.
    """
    if config.model in SHIPPED and config.facts in ENTRIES and not options.known_only:
        _refused(hardly_moves(facts, config), options)
        return facts, None
    found, facts, model = _looked(config, facts, options.known_only)
    if not options.json:
        told = found.looked.plan[1:]  # what is known without the model was said before it was loaded
        printing.say("\n".join(line for line in found.lines if line not in told), file=sys.stderr, flush=True)
    _refused([*found.looked.problems, *found.waste], options)
    return facts, model


def _refused(reasons: Sequence[str], options: argparse.Namespace) -> None:
    if reasons and not options.yes:
        raise ConfigError(f"This run would be in vain. {reasons[0]}", "Start it all the same with --yes.")


def _looked(config: RunConfig, facts: FactSet, known_only: bool) -> tuple[Check, FactSet, AdaptedModel]:
    """What a look finds, the facts without what is not known if that is asked, and the model."""
    from adapop.model.loading import adapted_model
    from adapop.runs import check as looking
    from adapop.runs.execute import settled
    from adapop.runs.preflight import without_unknown

    progress = Progress(printing.progress_line)
    model = adapted_model(settled(config, facts)[0])
    found = looking.check(config, facts, model, known_only, progress)
    if known_only:
        kept = without_unknown(facts, found.recall)
        if kept is not facts:
            facts, found = kept, looking.check(config, kept, model, progress=progress)
    printing.progress_line("")
    return found, facts, model
