"""Executes an item in a temporary folder and returns its row."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from adapop.errors import ModelError
from adapop.experiments import cells
from adapop.experiments.distance import distance_cells, epoch_cells
from adapop.experiments.item import Item
from adapop.experiments.plans import KNOWS, NEVER_READ, folder_of
from adapop.experiments.results import COSINES, RETAINED
from adapop.experiments.signals import other_scores
from adapop.facts.fact import FACT_GROUPS, FactSet
from adapop.facts.world import sandbox_facts
from adapop.popularity.beta import BetaMap
from adapop.progress import Progress
from adapop.report.record import name_of
from adapop.runs.run import Run
from adapop.training.events import ComparedToOracle, EpochDone, Measured, RunFailed

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel

EIGHTH = 8
QUICK_UTILITY = 20
# Measurements of original models: a worker makes each only once.
BEFORE: dict[tuple, Measured] = {}


def result(item: Item, models: Path | None = None) -> dict[str, Any]:
    """Runs an item and returns its row, with `results.COLUMNS`. A run that fails in training gives
    a row with `failed` set.

    models: folder of the sandboxes that `plans.build` made. Raises AdaPopError: the run cannot be
    prepared here; there is no row, and the next call tries the item again."""
    import torch

    # Imported before the clock starts, because a process imports it only once.
    import adapop.runs.execute  # noqa: F401

    torch.set_num_threads(1)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        row = _measure(item, Path(folder), models)
    arm = item.arm
    return {
        **{name: getattr(arm, name) for name in ("method", "preset", "scores", "anchors")},
        "key": item.key,
        "arm": arm.title,
        "world": arm.world.name if arm.world else "",
        "quick": int(item.quick),
        "seed": item.seed,
        "rate": item.config.learning_rate,
        **row,
        "seconds": round(time.perf_counter() - start, 2),
        "peak_mb": _peak_megabytes(),
    }


def beside_oracle(item: Item, models: Path | None = None, cosine: bool = False) -> dict[str, Any]:
    """Runs an item again. Returns "failed", columns of `ORACLE`, `ORACLE_EPOCHS`, `RETAINED` and,
    with cosine, `COSINES`; and, for comparison, the values of `EPOCHS` after the last epoch. Raises
    AdaPopError."""
    import torch

    from adapop.probes.measure import full, quick
    from adapop.probes.oracle import distance

    torch.set_num_threads(1)
    arm = replace(item.arm, changes={**item.arm.changes, "measure": "off"})
    with tempfile.TemporaryDirectory() as folder:
        run = prepared(replace(item, arm=arm), Path(folder), models)
        row, model = _execute(run, fresh=False)
        if row["failed"]:
            return row
        rows = quick(model, run.facts, run.reply_tokens).rows
        values = distance_cells(distance(model, run.config.model, run.facts))
        for one in rows:
            if one.group == "forget":
                values[f"epochs_{one.form}_{one.tier}"] = one.recall
        if cosine:
            rows = full(model, run.facts, run.reply_tokens, cosine=True).rows
            cosines = {(one.group, one.form, one.tier): one.cosine for one in rows}
            values |= {name: cosines[place] for name, place in COSINES.items()}
        return row | cells.rounded(values)


def facts_for(quick: bool, facts: FactSet | None = None) -> FactSet:
    """The facts, by default the sandbox's. quick: every eighth of them from rare to famous, so that
    all exposure levels occur; facts without a score come last."""
    facts = facts or sandbox_facts()
    if not quick:
        return facts
    ordered = {
        group: sorted(getattr(facts, group), key=lambda fact: (fact.score is None, fact.score or 0))
        for group in (*FACT_GROUPS, "neighbours")
    }
    groups = {group: tuple(members[::EIGHTH]) for group, members in ordered.items()}
    return replace(facts, **groups, utility=facts.utility[::QUICK_UTILITY])


def _measure(item: Item, folder: Path, models: Path | None) -> dict[str, Any]:
    from adapop.experiments.recovery_checks import recovery_checks
    from adapop.experiments.shares import shares

    run = prepared(item, folder, models)
    epochs, model = _execute(run, fresh=bool(item.split))
    failed = epochs["failed"]
    config = replace(run.config, model=name_of(run.config.model))  # records no path of this machine
    row = {"config": config.to_json(), "versions": run.versions}
    row |= {"facts": run.facts.sha256[:16], **epochs}
    row |= cells.traces(run)
    if failed:
        return row
    if item.split:
        return {**row, "shares": shares(model, run, item.split)}
    if item.metrics:
        from adapop.experiments.knowledge import known

        return {**row, "metrics": known(model, run, item.arm in (KNOWS, NEVER_READ))}
    row |= cells.finals(run.measured()) | cells.finer(run, model, levels=item.custom is None)
    compared = (event.distance for event in run.events() if isinstance(event, ComparedToOracle))
    row |= cells.rounded(distance_cells(next(compared, None)))
    if item.recovery:
        row |= cells.rounded(recovery_checks(model, run.facts, run.reply_tokens))
    return row


def _execute(run: Run, fresh: bool) -> tuple[dict[str, Any], AdaptedModel]:
    """Executes a run. Returns its cells ("failed", `RETAINED` and, with an oracle, `ORACLE_EPOCHS`)
    and its model. fresh: load the model by `fresh_model` and leave out `RETAINED`."""
    from adapop.experiments.shares import fresh_model
    from adapop.model.loading import adapted_model
    from adapop.probes.measure import recall_by_fact
    from adapop.probes.oracle import states
    from adapop.runs.execute import execute, load_model

    model = (fresh_model if fresh else adapted_model)(run.config)
    failed, epoch_states, retained = "", [], []
    config, tokens = run.config, run.reply_tokens
    given = config.start != "sft"  # otherwise `execute` loads and trains a model of its own
    original = (config.model, config.start, config.precision, tokens, run.facts.sha256)
    for event in execute(run, model, BEFORE.get(original)):
        if isinstance(event, RunFailed):
            failed = f"{event.message} {event.fix}"
        elif isinstance(event, EpochDone) and given:
            epoch_states.append(states(model, config.model, run.facts))
            if not fresh:
                recall = recall_by_fact(model, run.facts.retain, run.reply_tokens, Progress())
                retained.append(round(fmean(recall.values()), cells.DIGITS))
    if not (given or failed):
        model = load_model(run)
    if before := run.measured(before=True):
        BEFORE[original] = before
    shares = epoch_cells(run.facts.forget, epoch_states)
    return {"failed": failed, **shares, RETAINED: retained}, model


def prepared(item: Item, folder: Path, models: Path | None) -> Run:
    """The item's run: exponents from the arm's scores, but the facts' own scores and tiers. Raises
    ModelError: the arm's sandbox is not built."""
    from adapop.runs.execute import prepare
    from adapop.runs.run import create_run

    arm, config, own = item.arm, item.config, item.custom and item.custom.facts
    facts = facts_for(item.quick, own)
    if arm.world:
        model = folder_of(arm.world, models)
        if not model.exists():
            message = f"The sandbox {arm.world.name!r} is not at {model}."
            raise ModelError(message, "Build it first: run `bench worlds`.")
        config = replace(config, model=str(model))
    if arm.scores == "given" and arm.anchors == "paper":
        return prepare(config, facts, folder)
    scores = other_scores(arm.scores, item.seed, own)
    if arm.anchors == "quantiles":
        config = replace(config, beta=BetaMap.from_quantiles(scores.values()))
    forget = tuple(replace(fact, score=scores.get(fact.id)) for fact in facts.forget)
    settled = prepare(config, replace(facts, forget=forget), folder)
    return create_run(settled.config, facts, settled.betas, folder, settled.versions)


def _peak_megabytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1e6 if sys.platform == "darwin" else 1e3))  # bytes on macOS, else KB
