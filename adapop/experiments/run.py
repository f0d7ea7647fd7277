"""The experiments, each with its question, runs, tables and figures. `placed` puts one on a user's
own facts and model; `run` makes the missing rows; `write` and `as_markdown` show them."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from adapop.config.presets import PAPER_RATES, RATES
from adapop.errors import ConfigError
from adapop.experiments import metrics, pictures, plans, sweep, tables
from adapop.experiments.engine import Finished
from adapop.experiments.plans import CustomData, Item, build, folder_of
from adapop.experiments.results import Results, Row
from adapop.experiments.tables import Rows
from adapop.facts.fact import FactSet
from adapop.paths import SHIPPED, commit, found_from_anywhere
from adapop.report.figures import Figure
from adapop.report.record import name_of
from adapop.report.table import Table

# Experiments that do not need the sandbox.
OWN = ("main", "rates", "forgetting", "ablation", "coefficients", "scores", "epochs", "alpha")
DECADE = (-0.5, -0.25, 0.0, 0.25, 0.5)  # exponents of ten by which a given rate is multiplied
DECIDED = {"arguments", "seed", "frames", "measure"}  # settings that the experiment sets itself
Engine = Callable[[Sequence[Any], Callable[[Any], Any]], Iterator[Finished]]


@dataclass(frozen=True)
class Experiment:
    """title, question: for readers. plan: its runs; called again after each round, because later
    runs may depend on results. tables, figures: made from its rows. recorded: reads the rows by arm
    instead, where they are recorded and no longer made."""

    title: str
    question: str
    plan: plans.Planner
    tables: tuple[Callable[[Rows], Table | None], ...]
    figures: tuple[Callable[[Rows], Figure], ...]
    recorded: Callable[[], Rows] | None = None


COMPARED = (tables.outcome_table, partial(tables.difference_table, base=plans.ADAPOP))
SHOWN = (pictures.tiers, pictures.differences(plans.ADAPOP))
EXPERIMENTS = {
    "main": Experiment(
        "Main comparison",
        "What does each method forget of rare and famous facts, what does it cost, and do "
        "AdaPop's controls do worse?",
        plans.main_comparison,
        (
            *COMPARED,
            tables.oracle_table,
            tables.guess_table,
            tables.internal_table,
            tables.controller_table,
            tables.cost_table,
            tables.published_table,
        ),
        (
            pictures.tiers,
            pictures.cost,
            pictures.inside,
            pictures.differences(plans.ADAPOP),
            pictures.nearness,
        ),
    ),
    "rates": Experiment(
        "Learning rates",
        "How does each method fare from the gentlest to the hardest rate, and which does the "
        "rule choose?",
        plans.swept(plans.METHOD_ARMS),
        (sweep.choice_table, sweep.tier_table, sweep.sweep_table, tables.cost_table),
        (pictures.rates, pictures.rates_by_tier),
    ),
    "ablation": Experiment(
        "Ablation",
        "Which half of AdaPop does what, at which rate: the scored β or the controller? And "
        "does it matter whether a batch mixes tiers?",
        plans.ablation,
        (*COMPARED, tables.controller_table),
        (*SHOWN, pictures.arms_over_rates),
    ),
    "coefficients": Experiment(
        "Coefficients",
        "How much depends on the exact a and b of the β curve?",
        plans.coefficients,
        COMPARED,
        SHOWN,
    ),
    "scores": Experiment(
        "Wrong scores",
        "What do wrong scores do? Noisy: times log-normal noise, σ = 1; half swapped: half of"
        " the facts trade with their mirror in the ranking; tiers (half) swapped: all or half"
        " of the rare facts trade with popular ones at random, the paper's swapped labels; "
        "inverted: all facts trade with their mirror; shuffled: dealt out anew.",
        plans.wrong_scores,
        COMPARED,
        SHOWN,
    ),
    "proxies": Experiment(
        "Proxies",
        "Does another source of popularity do as well? Offline: exposures as set, corpus "
        "counts, how sure the model is before unlearning, a constant; at five rates. "
        "Wikidata, infini-gram and the judge need a network or a large model and are not in "
        "it. Counts: lines of the sandbox's own corpus that name the subject, with the "
        "paper's anchors, which suit scores four times as large; or subject and answer "
        "added, with anchors at the counts' own 5% and 95% quantiles.",
        plans.proxies,
        COMPARED,
        (*SHOWN, pictures.arms_over_rates),
    ),
    "epochs": Experiment(
        "Epoch by epoch",
        "When are rare and popular facts lost, and when does λ move?",
        plans.methods,
        (tables.epoch_table,),
        (pictures.epochs,),
    ),
    "levels": Experiment(
        "Exposure levels",
        "How does recall change from the least to the most shown facts?",
        plans.selected,
        (tables.level_table,),
        (pictures.levels,),
    ),
    "worlds": Experiment(
        "Other sandboxes",
        "Is the gap there in smaller and larger models (narrow: half the width, wide: one and"
        " a half), and does it vanish when the range of exposures is halved in logarithm (half-"
        "spread) or all facts are shown alike (no-spread)?",
        plans.worlds,
        (tables.world_table,),
        (pictures.tiers,),
    ),
    "alpha": Experiment(
        "Matched α",
        "Does AdaPop's cost come from its smaller α? Here the other methods have AdaPop's α, too.",
        plans.matched_alpha,
        (*COMPARED, tables.controller_table),
        SHOWN,
    ),
    "forgetting": Experiment(
        "Matched forgetting",
        "At equal forgetting, which method keeps most, and whose gap is widest?",
        plans.swept(plans.METHOD_ARMS),
        (sweep.equal_table, sweep.nearest_table),
        (pictures.rates,),
    ),
    "metrics": Experiment(
        "Which metric to trust",
        "Which metric tells models that know the facts from models that never read them, and "
        "still says the same of an unlearned model that was taught other facts or rounded; "
        "and is that so for rare and for popular facts?",
        plans.metrics,
        (metrics.faithfulness_table, metrics.robustness_table, metrics.method_table),
        (metrics.marks,),
    ),
}


@dataclass(frozen=True)
class Place:
    """An experiment's name, folder and seeds. quick: the small variant, with its own files. own:
    the experiment, if it is not one of `EXPERIMENTS`."""

    name: str
    folder: Path
    seeds: tuple[int, ...]
    quick: bool = False
    own: Experiment | None = None

    @property
    def experiment(self) -> Experiment:
        return self.own or EXPERIMENTS[self.name]

    def file(self, ending: str) -> Path:
        """Path of a file: .csv (rows), .md, -table.csv (the first table), .html (figures)."""
        return self.folder / f"{self.name}{'-quick' if self.quick else ''}{ending}"

    @property
    def results(self) -> Results:
        return Results(self.file(".csv"))

    def items(self, known: plans.RowsByKey) -> list[Item]:
        """The planned runs without duplicates. known: recorded rows."""
        planned = self.experiment.plan(self.seeds, self.quick, known)
        return list({item.key: item for item in planned}.values())

    def rows_by_arm(self) -> Rows:
        """Arm -> its rows so far, also those of other experiments, in the order of the plan."""
        if self.experiment.recorded:
            return self.experiment.recorded()
        known = _rows_of_others(self) | self.results.rows()
        arms: dict[str, list[Row]] = {}
        for item in self.experiment.plan(self.seeds, self.quick, known):
            if row := known.get(item.key):
                arms.setdefault(item.arm.title, []).append(row)
        return arms


def rates_for(model: str, changes: Mapping[str, Any]) -> tuple[float, ...]:
    """Learning rates of a sweep: a decade around a given one, the sandbox's, or the paper's."""
    if rate := changes.get("learning_rate"):
        return tuple(rate if power == 0 else float(f"{rate * 10**power:.3g}") for power in DECADE)
    return RATES if model in SHIPPED else PAPER_RATES


def placed(place: Place, facts: FactSet, model: str, changes: Mapping[str, Any]) -> Place:
    """The experiment's `Place` for these facts and this model, with its own files. changes:
    settings of every run; arms override them. Raises ConfigError: the experiment needs the sandbox
    or sets one of these settings itself, or no fact has a rewording."""
    if place.name not in OWN:
        message = f"bench {place.name} is about the sandbox alone."
        raise ConfigError(message, f"With --facts or --model: {', '.join(OWN)}.")
    check_own(facts, changes, DECIDED)
    model = found_from_anywhere(model)
    custom, base = CustomData(facts, model, changes), EXPERIMENTS[place.name]
    rates, given = rates_for(model, changes), "learning_rate" in changes
    planners = dict.fromkeys(plans.SWEPT, plans.swept(plans.METHOD_ARMS, rates))
    planners["ablation"] = plans.ablated(rates=() if given else rates)
    planner = planners.get(place.name, base.plan)

    def plan(seeds: Sequence[int], quick: bool, known: plans.RowsByKey) -> list[Item]:
        here = {item.key: replace(item, custom=custom).key for item in planner(seeds, quick, {})}
        # Rows by the keys that the planner uses.
        own_rows = {key: known[own] for key, own in here.items() if own in known}
        return [replace(item, custom=custom) for item in planner(seeds, quick, own_rows)]

    title = f"{base.title}: {facts.name}, {name_of(model)}"
    own_tables = tuple(table for table in base.tables if table is not tables.published_table)
    own = Experiment(title, base.question, plan, own_tables, base.figures)
    identity = f"{facts.sha256} {model} {sorted(changes.items())}"
    name = f"{place.name}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"
    return replace(place, name=name, own=own)


def check_own(facts: FactSet, changes: Mapping[str, Any], decided: Set[str]) -> None:
    """Raises ConfigError: changes has a setting that the experiment decides, or no fact has a
    rewording."""
    if taken := sorted(changes.keys() & decided):
        raise ConfigError(f"{taken[0]} is decided by the experiment.", "Leave it out.")
    if not any(fact.paraphrases for fact in facts.forget):
        message = f"No fact of {facts.name} has a rewording"
        fix = "Add a column called paraphrases, or let `adapop reword` write them."
        raise ConfigError(f"{message}, and the tables need answers in other words.", fix)


def completed(
    items: Sequence[Any],
    result_of: Callable[[Any], Any],
    engine: Engine,
    done: int,
    title: Callable[[Any], str],
    append: Callable[[Any], str | None],
    report: Callable[[str], None],
) -> dict[str, str]:
    """Makes the result of each item, a run, appends it as it comes, and reports it by its title.
    done: how many runs were made before. append: keeps a result; may return why its training
    failed. Returns title of a run without a result -> reason."""
    report(f"{done} runs are done already, {len(items)} to do.")
    errors, begun = {}, time.monotonic()
    for count, finished in enumerate(engine(items, result_of), start=1):
        name, error = title(finished.item), finished.error
        if error:
            errors[name] = error
        else:
            error = append(finished.result)
        minutes = (time.monotonic() - begun) / count * (len(items) - count) / 60
        failed = f": {error}" if error else ""
        report(f"{count} of {len(items)}, about {minutes:.0f} min left: {name}{failed}")
    return errors


def run(place: Place, engine: Engine, report: Callable[[str], None]) -> dict[str, str]:
    """Makes the missing runs and appends their rows. Returns title of a failed item -> reason.

    Rows of runs that another experiment of the folder made are copied. Rows made by another version
    of the code are kept, because a key depends on settings alone; their number is reported."""
    from adapop.experiments import trial  # loads torch, which tables do without

    known, version, errors = place.results.rows(), commit(), {}
    elsewhere, models = _rows_of_others(place), place.folder / "models"

    def append(row: Row) -> str:
        place.results.append({**row, "commit": version})
        known[row["key"]] = row
        return row["failed"]

    while missing := [
        item for item in place.items(known) if item.key not in known and item.title not in errors
    ]:
        for item in missing:
            if item.key in elsewhere:
                known[item.key] = {**elsewhere[item.key], "arm": item.arm.title}
                place.results.append(known[item.key])
        left = [item for item in missing if item.key not in known]
        errors |= _built(left, models, engine, report)
        left = [item for item in left if item.title not in errors]
        done = sum(item.key in known for item in place.items(known))
        result_of = partial(trial.result, models=models)
        errors |= completed(left, result_of, engine, done, attrgetter("title"), append, report)
    commits = _commits(place.rows_by_arm())
    if others := {name: count for name, count in commits.items() if name != version}:
        report(
            f"{sum(others.values())} of {commits.total()} rows were made by other code than this "
            f"({version or 'unknown'}): {_counts(others)}. Move {place.results.path} away to make "
            f"them again."
        )
    return errors


def write(place: Place) -> str:
    """Writes tables and figures into the experiment's folder. Returns the tables as Markdown."""
    arms = place.rows_by_arm()
    tables = _tables(place, arms)
    text = _markdown(place, arms, tables)
    place.folder.mkdir(parents=True, exist_ok=True)
    place.file(".md").write_text(text + "\n", encoding="utf-8")
    for table in tables[:1]:
        place.file("-table.csv").write_text(table.as_csv(), encoding="utf-8")
    html = pictures.page(place.experiment.title, [draw(arms) for draw in place.experiment.figures])
    place.file(".html").write_text(html, encoding="utf-8")
    return text


def as_markdown(place: Place) -> str:
    """The tables with the experiment's title and question, as Markdown. Writes no file."""
    arms = place.rows_by_arm()
    return _markdown(place, arms, _tables(place, arms))


def _tables(place: Place, arms: Rows) -> list[Table]:
    return [table for make in place.experiment.tables if (table := make(arms)) is not None]


def _markdown(place: Place, arms: Rows, tables: Sequence[Table]) -> str:
    parts = [f"## {place.experiment.title}", place.experiment.question]
    return "\n\n".join([*parts, *(table.as_markdown() for table in tables), _provenance(arms)])


def _built(
    items: Sequence[Item], models: Path, engine: Engine, report: Callable[[str], None]
) -> dict[str, str]:
    """Pretrains missing sandboxes. Returns title of an item -> why its sandbox failed."""
    worlds = {item.arm.world.name: item.arm.world for item in items if item.arm.world}
    needed = [world for world in worlds.values() if not folder_of(world, models).exists()]
    errors = {}
    if needed:
        names = ", ".join(world.name for world in needed)
        report(f"pretraining {len(needed)} sandboxes first, minutes each: {names}")
    for done in engine(needed, partial(build, models=models)):
        report(f"sandbox {done.item.name} {done.error or 'is built'}")
        if done.error:
            stuck = [item.title for item in items if item.arm.world == done.item]
            errors |= dict.fromkeys(stuck, f"its sandbox could not be built: {done.error}")
    return errors


def _rows_of_others(place: Place) -> dict[str, Row]:
    """Rows of the folder's other experiments, by key."""
    names = sorted(EXPERIMENTS.keys() - {place.name})
    others = [Place(name, place.folder, place.seeds, place.quick) for name in names]
    return {key: row for other in others for key, row in other.results.rows().items()}


def _provenance(arms: Rows) -> str:
    """A sentence on how many runs there are, on which seeds, by which commits."""
    rows = [row for runs in arms.values() for row in runs]
    if not rows:
        return "No runs yet."
    seeds = ", ".join(map(str, sorted({row["seed"] for row in rows})))
    commits = _counts(_commits(arms))
    changed = " (+: with changes that were not committed then)" if "+" in commits else ""
    return f"{len(rows)} runs, seeds {seeds}; code: {commits}{changed}."


def _commits(arms: Rows) -> Counter[str]:
    return Counter(row["commit"] for runs in arms.values() for row in runs)


def _counts(commits: Mapping[str, int]) -> str:
    named = sorted(commits.items())
    return ", ".join(f"{count} at {name or 'an unknown version'}" for name, count in named)
