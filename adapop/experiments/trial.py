"""Executes an item in a temporary folder and returns its row.

Scores that replace a fact's own are made here too (`other_scores`): wrong ones, counts in the
corpus, the model's confidence.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.errors import ModelError
from adapop.experiments import cells
from adapop.experiments.plans import KNOWS, NEVER_READ, Item, facts_for, folder_of
from adapop.experiments.results import RETAINED
from adapop.facts.fact import FactSet, scores_of
from adapop.facts.world import other_facts, sandbox_facts
from adapop.model.adapted import AdaptedModel
from adapop.model.loading import adapted_model
from adapop.popularity.beta import BetaMap, between_tiers, noisy, swapped
from adapop.popularity.corpus import CorpusCounts
from adapop.probes.measure import recall_by_fact
from adapop.probes.metrics import nlls
from adapop.probes.oracle import states
from adapop.progress import Progress
from adapop.report.record import name_of
from adapop.runs.execute import execute, load_model, prepare
from adapop.runs.run import Run, create_run
from adapop.sandbox.corpus import corpus_lines
from adapop.training.events import ComparedToOracle, EpochDone, Measured, RunFailed

# Settings with which a model of `bench real` is loaded: it stays loaded for the next run.
DECIDES = (
    "model", "seed", "precision", "system", "lora_rank", "lora_alpha", "lora_targets",
    "lora_layers",
)  # fmt: skip
# Measurements of original models: a worker makes each only once.
BEFORE: dict[tuple, Measured] = {}
_LOADED: dict[tuple, tuple[AdaptedModel, dict[str, Tensor]]] = {}


def result(item: Item, models: Path | None = None) -> dict[str, Any]:
    """Runs an item and returns its row, with `results.COLUMNS`. A run that fails in training gives
    a row with `failed` set.

    models: folder of the sandboxes that `plans.build` made. Raises AdaPopError: the run cannot be
    prepared here; there is no row, and the next call tries the item again."""
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


def _measure(item: Item, folder: Path, models: Path | None) -> dict[str, Any]:
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
        return {**row, "shares": cells.shares(model, run, item.split)}
    if item.metrics:
        return {**row, "metrics": cells.known(model, run, item.arm in (KNOWS, NEVER_READ))}
    row |= cells.finals(run.measured()) | cells.finer(run, model, levels=item.custom is None)
    compared = (event.distance for event in run.events() if isinstance(event, ComparedToOracle))
    row |= cells.rounded(cells.distance_cells(next(compared, None)))
    if item.recovery:
        row |= cells.rounded(cells.recovery_checks(model, run.facts, run.reply_tokens))
    return row


def _execute(run: Run, fresh: bool) -> tuple[dict[str, Any], AdaptedModel]:
    """Executes a run. Returns its cells ("failed", `RETAINED` and, with an oracle, `ORACLE_EPOCHS`)
    and its model. fresh: load the model by `fresh_model` and leave out `RETAINED`."""
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
    shares = cells.epoch_cells(run.facts.forget, epoch_states)
    return {"failed": failed, **shares, RETAINED: retained}, model


def prepared(item: Item, folder: Path, models: Path | None) -> Run:
    """The item's run: exponents from the arm's scores, but the facts' own scores and tiers. Raises
    ModelError: the arm's sandbox is not built."""
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


def fresh_model(config: RunConfig) -> AdaptedModel:
    """The configured model with a fresh adapter. The model loaded last is reused, with a reset
    adapter, if the settings in `DECIDES` are the same. Raises ModelError: as
    `model.loading.adapted_model`."""
    key = tuple(getattr(config, name) for name in DECIDES)
    if key not in _LOADED:
        _LOADED.clear()
        model = adapted_model(config)
        fresh = {name: value.clone() for name, value in model.adapter_state().items()}
        _LOADED[key] = model, fresh
    model, fresh = _LOADED[key]
    model.set_adapter_state(fresh)
    torch.manual_seed(config.seed)
    return model


def other_scores(kind: str, seed: int, facts: FactSet | None = None) -> dict[str, float]:
    """Fact id -> score, for the facts to forget (default: the sandbox's); fixed by seed. kind:
    "given", "noisy", "swapped", "tiers-PERCENT", "corpus-COMBINE" or "confidence"."""
    forget = (facts or sandbox_facts()).forget
    given = scores_of(forget)
    if kind == "noisy":
        return noisy(given, seed)
    if kind == "swapped":
        return swapped(given, seed)
    if kind.startswith("tiers-"):
        tiers = {fact.id: fact.tier for fact in forget}
        return between_tiers(given, tiers, seed, float(kind.removeprefix("tiers-")) / 100)
    if kind.startswith("corpus-"):
        return _mentions(kind.removeprefix("corpus-"))
    if kind == "confidence":  # the given scores, reassigned: the surer the model, the higher
        surest_first = sorted(given, key=_mean_nll().get, reverse=True)
        return dict(zip(surest_first, sorted(given.values())))
    return given


@cache
def _mean_nll() -> dict[str, float]:
    """Fact id -> -log p of its answer, nats per token, by the sandbox's model, asked as trained."""
    facts, model = sandbox_facts().forget, adapted_model(make_config("adapop"))
    return dict(zip([fact.id for fact in facts], nlls(model, model.rows(facts))))


@cache
def _mentions(combine: str) -> dict[str, float]:
    """Fact id -> lines of the pretraining corpus that name it. combine: as for `CorpusCounts`."""
    facts = sandbox_facts()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.txt"
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in corpus_lines(seed=0))
        counts = CorpusCounts(Progress(), path, combine, other_facts(facts))
        return {score.fact_id: score.value for score in counts.scores(facts.forget)}


def _peak_megabytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1e6 if sys.platform == "darwin" else 1e3))  # bytes on macOS, else KB
