"""Everything a report needs of a run, read once from its folder."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from adapop.config.methods import method_named
from adapop.config.run import RunConfig
from adapop.facts.fact import TIERS, FactSet
from adapop.probes import prompts
from adapop.probes.distance import Distance
from adapop.probes.intervals import Interval, wilson
from adapop.probes.matrix import Cell, LeakMatrix, leak_matrix
from adapop.probes.prompting import Prompting
from adapop.probes.prompts import REWORDED, NotApplicable, ProbeRow
from adapop.probes.recovery.choice import recovered
from adapop.probes.verdict import RULES, verdicts
from adapop.runs.delivered import Delivered, all_kept
from adapop.runs.inputs import check_inputs
from adapop.runs.questions import Question
from adapop.runs.questions import read as read_questions
from adapop.runs.run import Run
from adapop.runs.weights import Weights, weights_of
from adapop.training.events import (
    ComparedToOracle,
    EpochDone,
    Event,
    Measured,
    RunFailed,
    full_measurement,
)
from adapop.training.frames import Frame

NO_ATTACKS = {prompts.DIRECT, REWORDED, prompts.ALIAS, prompts.CLOZE, prompts.CHOICE}
NO_ATTACKS |= {*prompts.OTHERWISE}
E = TypeVar("E", bound=Event)
TRAINED = ("epochs", "learning_rate", "seed")
GROUP_NAMES = {
    "forget": "forget set",
    "retain": "retain set",
    "holdout": "held-out facts",
    "neighbours": "neighbours",
    "utility": "utility",
}


@dataclass(frozen=True)
class Attack:
    """An attack's result. kind: its name. recall: of the facts to forget."""

    kind: str
    recall: Interval


@dataclass(frozen=True)
class Record:
    """A run, with its measurements and probes so far. probes, matrix, verdicts (by fact id) and
    recovery (by probe) are empty until the run is probed."""

    state: str
    config: RunConfig
    facts: FactSet
    versions: Mapping[str, str]
    betas: Mapping[str, float] | None
    events: tuple[Event, ...]
    probes: tuple[ProbeRow | NotApplicable, ...]
    matrix: LeakMatrix
    verdicts: Mapping[str, str]
    recovery: Mapping[str, Mapping[str, Any]]
    prompting: Prompting | None = None
    """How a real model was asked; None for shipped models, and before it is decided."""
    weights: Weights | None = None
    """Which weights the run began with; None if not recorded."""
    frames: tuple[Frame, ...] = ()
    """The run's frames; empty unless the run has a distance to the oracle."""
    name: str = ""
    """The user's name for the run; "" without one."""
    place: str = ""
    """The model with its path, which tells apart those of one name. Never shown."""
    questions: tuple[Question, ...] = ()
    """Questions of one's own that were asked about the run."""
    delivered: tuple[Delivered, ...] = ()
    """What was measured on exported files of the run's result."""
    redacted: bool = False
    """Whether it is without the texts of its facts, see `report.redaction`."""

    def of_kind(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def title(self) -> str:
        return title_of_run(self.config)

    @property
    def before(self) -> Measured | None:
        """The full measurement of the original model, None until the run is done."""
        return full_measurement(self.events, before=True)

    @property
    def after(self) -> Measured | None:
        """The full measurement of the unlearned model, None until the run is done."""
        return full_measurement(self.events)

    @property
    def distance(self) -> Distance | None:
        """The distance to the oracle at the run's end; None before, and without an oracle."""
        return next((event.distance for event in reversed(self.of_kind(ComparedToOracle))), None)

    @property
    def trained(self) -> int:
        """The last epoch that was trained completely."""
        return max((event.epoch for event in self.of_kind(EpochDone)), default=0)

    @property
    def rows(self) -> tuple[ProbeRow, ...]:
        return tuple(row for row in self.probes if isinstance(row, ProbeRow))

    def worst_attack(self, tier: str) -> Cell | None:
        """The attack with the highest recall of a tier's facts to forget, among forms that the
        original answers. Multiple choice, which can be guessed, is left out. None if none was
        probed."""
        own = [cell for cell in self.matrix.cells if (cell.group, cell.tier) == ("forget", tier)]
        attacks = [cell for cell in own if cell.kind not in NO_ATTACKS and cell.measurable]
        return max(attacks, key=lambda cell: cell.unlearned.recall.mean, default=None)

    def second_guess(self, tier: str) -> Interval | None:
        """The share of a tier's facts to forget whose right answer is the first or second guess,
        asked in other words, with its range over facts; None if it was not probed."""
        cell = self.matrix.cell("forget", tier, REWORDED)
        near = cell and cell.unlearned.near
        return None if near is None else wilson(near, cell.facts)

    def verdict_counts(self) -> dict[str, dict[str, int]]:
        """Tier of the facts to forget, or a group's name in `GROUP_NAMES` -> verdict -> number of
        facts."""
        counted: dict[str, Counter[str]] = {}
        for row in self.matrix.facts:
            place = row.tier if row.group == "forget" else GROUP_NAMES[row.group]
            counted.setdefault(place, Counter())[self.verdicts[row.fact_id]] += 1
        order = [rule.name for rule in RULES]
        return {
            place: {name: counted[place][name] for name in order if counted[place][name]}
            for place in (*TIERS, "unknown", *GROUP_NAMES.values())
            if place in counted
        }


def title_of(method: str, preset: str) -> str:
    name = method_named(method).title
    return name if preset == "paper" else f"{name}, {preset}"


def title_of_run(config: RunConfig) -> str:
    """The method's title; of an adopted run the name of its unlearned model."""
    if config.unlearned:
        return f"{name_of(config.unlearned)}, adopted"
    return title_of(config.method, config.preset)


def described(config: RunConfig) -> str:
    """Short description of a run: method, epochs, learning rate, seed, which epoch is kept; of an
    adopted run both models."""
    if config.unlearned:
        return f"{title_of_run(config)}, beside {name_of(config.model)}"
    ending = ", best epoch" if config.keep == "best" else ""
    return f"{title_of(config.method, config.preset)}, {trained([config])}{ending}"


def described_run(run: Run | Record) -> str:
    """`described` of a run's result, with the epochs that it has if it ended early."""
    epochs = run.trained if isinstance(run, Record) else run.last_epoch
    return described(replace(run.config, epochs=epochs or run.config.epochs))


def trained(configs: Sequence[RunConfig]) -> str:
    """How runs (at least one) were trained: epochs, learning rate, and seed or number of seeds."""
    epochs, rates, seeds = (sorted({getattr(one, name) for one in configs}) for name in TRAINED)
    epoch = f"{_span(epochs)} epoch{'' if epochs == [1] else 's'}"
    seed = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
    return f"{epoch}, rate{'' if len(rates) == 1 else 's'} {_span(rates)}, {seed}"


def _span(values: Sequence[float]) -> str:
    return " to ".join(f"{value:g}" for value in dict.fromkeys((values[0], values[-1])))


def read_record(run: Run) -> Record:
    """Reads a run's folder. Models and facts are named without their paths. Raises RunError: it is
    no run, of another version, or its inputs were changed. ConfigError: its configuration is
    invalid."""
    check_inputs(run)
    rows, recovery = tuple(run.probes() or ()), run.recovery()
    named = verdicts(rows, recovered(recovery))
    config, events = run.config, run.events()
    compared = any(isinstance(event, ComparedToOracle) for event in events)
    places = ("model", "unlearned", "oracle", "facts")
    short = {name: name_of(getattr(config, name)) for name in places if getattr(config, name)}
    model = short["model"]
    return Record(
        state=run.state,
        config=replace(config, **short),
        facts=run.facts,
        versions=run.versions,
        betas=run.betas,
        events=tuple(_without_place(event, config.model, model) for event in events),
        probes=rows,
        matrix=leak_matrix(rows),
        verdicts={fact: verdict.name for fact, verdict in named.items()},
        recovery=recovery,
        prompting=run.prompting,
        weights=weights_of(run),
        frames=run.frames() if compared else (),
        place=config.model,
        questions=read_questions(run),
        delivered=all_kept(run),
    )


def _without_place(event: Event, place: str, name: str) -> Event:
    failed = isinstance(event, RunFailed)
    return replace(event, message=event.message.replace(place, name)) if failed else event


def name_of(source: str) -> str:
    """Name of a model or set: the last part of a path; any other name, such as a Hub id,
    unchanged."""
    place = Path(source)
    here = place.is_absolute() or source.startswith((".", "~")) or os.path.exists(source)
    return place.resolve().name if here else source
