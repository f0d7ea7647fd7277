"""The search for each arm's best settings: equally many trials, one objective (three searches add a
term), validation split.

A trial is a run at seed 0 that measures only what the objective asks for. The first trials are the
same moves from each arm's preset (`spaces.MOVES`). Optuna proposes the others from earlier trials
(a Gaussian process, its defaults; an optional extra, imported here alone). The sampler is seeded by
the trial's number, so an interrupted search continues unchanged.
"""

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from adapop.assets import as_kind, parse_json
from adapop.errors import ConfigError, DataError, RunError
from adapop.experiments.cells import DIGITS, recalls
from adapop.experiments.item import CustomData, Item
from adapop.experiments.spaces import SEARCHES, Range, Search, first_points, with_point
from adapop.experiments.trial import prepared
from adapop.experiments.validation import VALIDATION, by_tier, questions_of
from adapop.facts.fact import TIERS
from adapop.paths import commit
from adapop.probes.prompts import REWORDED
from adapop.runs.files import write_text

SEED, TRIALS = 0, 40
LIMITS = {"holdout": 0.93, "utility": 0.95, "retain": 0.97}
PRICE = 2.0
# Upper bound of J that the sampler sees, a little above J of doing nothing; more would not help.
MOST_J = 1.2
NEAR = 0.2  # allowed share of right first and second guesses, if a search limits it
Trial = dict[str, Any]


@dataclass(frozen=True)
class _Stored:
    """The fields that are checked in a trial's line of the file; a failed run lacks the parts of
    J."""

    number: int
    point: dict[str, bool | int | float | str]
    J: float
    failed: str
    seconds: float
    worst: float = 0.0
    holdout: float = 0.0
    utility: float = 0.0
    retain: float = 0.0


def objective(worst: float, holdout: float, utility: float, retain: float) -> float:
    """J, to be minimized: recall of the worst tier, reworded, plus twice the amounts by which
    holdout, utility and retain fall below their limits. It was fixed before any run was made."""
    levels = {"holdout": holdout, "utility": utility, "retain": retain}
    return worst + PRICE * sum(max(0.0, limit - levels[name]) for name, limit in LIMITS.items())


WORST = objective(1.0, 0.0, 0.0, 0.0)  # J of a failed run: nothing forgotten, all destroyed


def search(
    name: str,
    folder: Path,
    trials: int = TRIALS,
    quick: bool = False,
    custom: CustomData | None = None,
) -> int:
    """Makes the missing trials of an arm. Returns how many it made.

    name: a key of `SEARCHES`. custom: facts and model of the trials, None for the sandbox. Raises
    ConfigError: Optuna is not installed, or earlier trials lie outside the ranges."""
    import torch

    torch.set_num_threads(1)
    search, path = SEARCHES[name], trials_file(folder, name)
    begun = done = trials_of(path)
    folder.mkdir(parents=True, exist_ok=True)
    while len(done) < trials:
        point = _proposed(search, done, custom)
        outcome = run_trial(search, point, quick, custom)
        done = [*done, {"number": len(done), "point": point, **outcome, "commit": commit()}]
        write_text(path, "".join(json.dumps(trial, ensure_ascii=False) + "\n" for trial in done))
    return len(done) - len(begun)


def trials_file(folder: Path, name: str) -> Path:
    """Path of an arm's trials, one line of JSON each."""
    return folder / f"{name}.jsonl"


def trials_of(path: Path) -> list[Trial]:
    """The trials in a file, none if it is missing. Raises DataError: a line is damaged.
    ConfigError: they were made with other ranges."""
    trials, search = [], SEARCHES.get(path.stem)
    for number, line in enumerate(path.read_bytes().splitlines() if path.exists() else (), 1):
        try:
            trial = parse_json(line)
            as_kind(trial, _Stored, "ignore")
        except ValueError as error:
            message = f"{path}, line {number} is damaged ({error})."
            fix = "Move the file away: without --table its search is made again."
            raise DataError(message, fix) from None
        if search and not search.has(trial["point"]):
            where = f"{path}, line {number}"
            message = f"The trials of {search.arm.title} were made with other ranges ({where})."
            raise ConfigError(message, "Move them away, or choose another --out.")
        trials.append(trial)
    return trials


def best_of(trials: Sequence[Trial]) -> Trial:
    """The trial with the least J, the first of equals."""
    return min(trials, key=lambda trial: trial["J"])


def run_trial(
    search: Search, point: Mapping[str, Any], quick: bool, custom: CustomData | None = None
) -> Trial:
    """A trial: J and its parts on the validation split, seconds, and why it failed, else ""."""
    began, failed = time.perf_counter(), ""
    item = Item(with_point(search.arm, point), SEED, quick, custom)
    with tempfile.TemporaryDirectory() as folder:
        try:
            outcome = _measure(item, Path(folder))
            if search.near:
                excess = max(0.0, outcome["top2"] - NEAR)
                outcome["J"] = round(outcome["J"] + PRICE * excess, DIGITS)
        except RunError as error:  # divergence is a result
            outcome, failed = {"J": WORST}, f"{error.message} {error.fix}"
    return {**outcome, "failed": failed, "seconds": round(time.perf_counter() - began, 2)}


def _measure(item: Item, folder: Path) -> dict[str, float]:
    from adapop.model.loading import adapted_model
    from adapop.probes.second_guess import second_guesses
    from adapop.runs.alternates import with_alternates
    from adapop.training.trainer import Trainer

    run = prepared(item, folder, None)
    config, facts = run.config, run.facts
    model = adapted_model(config)
    forget, _ = with_alternates(run, model, facts)
    betas = None if run.betas is None else [run.betas[fact.id] for fact in forget]
    for _ in Trainer(run.id, config, model, forget, facts.retain, betas).train():
        pass
    groups = questions_of(facts, VALIDATION)
    groups["retain"] = [(fact, (fact.question,)) for fact in facts.retain]
    del groups["holdout_reworded"]  # not part of J
    pairs = [pair for members in groups.values() for pair in members]
    recall = recalls(model, pairs, config.max_new_tokens)
    means = {name: by_tier(members, recall) for name, members in groups.items()}
    tiers = means.pop(f"forget_{REWORDED}")
    parts = {"worst": max(tiers[tier] for tier in TIERS)}
    for name, group in zip(LIMITS, ("holdout_direct", "utility", "retain")):
        parts[name] = means[group]["all"]
    reworded = [
        replace(fact, paraphrases=tuple(wordings))
        for fact, wordings in groups[f"forget_{REWORDED}"]
    ]
    # top2 is part of J for some arms only
    values = {"J": objective(**parts), **parts, **{tier: tiers[tier] for tier in TIERS}}
    values["top2"] = fmean(second_guesses(model, reworded)["top2"].values())
    return {name: round(value, DIGITS) for name, value in values.items()}


def _proposed(search: Search, done: Sequence[Trial], custom: CustomData | None) -> dict[str, Any]:
    """The next point to try: one of the first points, later a proposal of Optuna."""
    from adapop.objectives import make_objective

    optuna = _optuna()
    config = Item(search.arm, SEED, custom=custom).config
    first = first_points(search, vars(make_objective(config.method, config.arguments)), custom)
    if len(done) < len(first):
        return first[len(done)]
    options = {"n_startup_trials": 1, "deterministic_objective": True}
    sampler = optuna.samplers.GPSampler(seed=len(done), **options)
    study = optuna.create_study(sampler=sampler)
    kinds, space = optuna.distributions, search.space
    among = {name: _distribution(kinds, values) for name, values in space.items()}
    for trial in done:
        given = {"params": trial["point"], "value": min(trial["J"], MOST_J)}
        study.add_trial(optuna.trial.create_trial(distributions=among, **given))
    proposed = study.ask(among).params
    return {
        name: values.near(proposed[name]) if isinstance(values, Range) else proposed[name]
        for name, values in space.items()
    }


def _distribution(kinds: Any, values: Range | tuple) -> Any:
    if isinstance(values, tuple):
        return kinds.CategoricalDistribution(values)
    if values.whole:
        return kinds.IntDistribution(int(values.low), int(values.high))
    return kinds.FloatDistribution(values.low, values.high, log=values.log)


def _optuna() -> Any:
    """Imports Optuna with logging off. Raises ConfigError: it is not installed."""
    try:
        import optuna
    except ImportError:
        message = "`bench tuned` needs Optuna, which is not installed."
        raise ConfigError(message, "`pip install optuna`, or `pip install '.[tuned]'`.") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
