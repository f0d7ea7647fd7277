"""Executes an item in a temporary folder and returns its row."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from adapop.errors import ModelError
from adapop.experiments.distance import distance_cells, epoch_cells
from adapop.experiments.halves import HALVES, by_tier, questions_of
from adapop.experiments.item import Item
from adapop.experiments.plans import KNOWS, NEVER_READ, folder_of
from adapop.experiments.results import (
    COSINES,
    HALVED,
    INTERNALS,
    NEIGHBOURS,
    RECALLS,
    RETAINED,
    TRACES,
)
from adapop.experiments.signals import other_scores
from adapop.facts.fact import FACT_GROUPS, TIERS, Fact, FactSet
from adapop.facts.world import sandbox_facts
from adapop.popularity.beta import BetaMap
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.progress import Progress
from adapop.report.record import name_of
from adapop.runs.run import Run
from adapop.training.events import ComparedToOracle, EpochDone, Measured, RunFailed

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel

EIGHTH = 8
QUICK_UTILITY = 20
DIGITS = 6
# of the original model: a worker measures it once, not for each item
BEFORE: dict[tuple, Measured] = {}


def result(item: Item, models: Path | None = None) -> dict[str, Any]:
    """Runs an item and returns its row, by `results.COLUMNS`. A run that fails in training is a row
    with `failed` set.

    models: where `worlds.build` put the sandboxes that arms name.

    Raises:
        AdaPopError: the run cannot be prepared here; there is no row, and the item is tried again
        the next time.
    """
    import torch

    # before the clock: a process imports it once, whatever its first run is
    import adapop.runs.execute  # noqa: F401

    torch.set_num_threads(1)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        row = _measured(item, Path(folder), models)
    arm = item.arm
    identity = {
        **{name: getattr(arm, name) for name in ("method", "preset", "scores", "anchors")},
        "key": item.key,
        "arm": arm.title,
        "world": arm.world.name if arm.world else "",
        "quick": int(item.quick),
        "seed": item.seed,
        "rate": item.config.learning_rate,
    }
    return {
        **identity,
        **row,
        "seconds": round(time.perf_counter() - begun, 2),
        "peak_mb": _peak_megabytes(),
    }


def beside_oracle(item: Item, models: Path | None = None, cosine: bool = False) -> dict[str, Any]:
    """Runs an item again. Returns "failed", the columns of `ORACLE` and `ORACLE_EPOCHS`, `RETAINED`
    and, with cosine, `COSINES`; and the last value of those of `EPOCHS`, to be as they were.

    Raises:
        AdaPopError: as `result`.
    """
    import torch

    from adapop.probes.measure import full, quick
    from adapop.probes.oracle import distance

    torch.set_num_threads(1)
    arm = replace(item.arm, changes={**item.arm.changes, "measure": "off"})
    with tempfile.TemporaryDirectory() as folder:
        run = prepared(replace(item, arm=arm), Path(folder), models)
        row, model = _executed(run, fresh=False)
        if row["failed"]:
            return row
        rows = quick(model, run.facts, run.reply_tokens).rows
        cells = {
            f"epochs_{one.form}_{one.tier}": one.recall for one in rows if one.group == "forget"
        }
        if cosine:
            rows = full(model, run.facts, run.reply_tokens, cosine=True).rows
            cosines = {(one.group, one.form, one.tier): one.cosine for one in rows}
            cells |= {name: cosines[place] for name, place in COSINES.items()}
        return {
            **row,
            **_rounded(cells | distance_cells(distance(model, run.config.model, run.facts))),
        }


def facts_for(quick: bool, facts: FactSet | None = None) -> FactSet:
    """The facts, by default the sandbox's; quick: every eighth of them from rare to famous, so that
    all exposure levels are there, those without a score last."""
    facts = facts or sandbox_facts()
    if not quick:
        return facts
    ordered = {
        group: sorted(getattr(facts, group), key=lambda fact: (fact.score is None, fact.score or 0))
        for group in (*FACT_GROUPS, "neighbours")
    }
    groups = {group: tuple(members[::EIGHTH]) for group, members in ordered.items()}
    return replace(facts, **groups, utility=facts.utility[::QUICK_UTILITY])


def _measured(item: Item, folder: Path, models: Path | None) -> dict[str, Any]:
    from adapop.experiments.recovery_checks import recovery_checks
    from adapop.experiments.shares import shares

    run = prepared(item, folder, models)
    epochs, model = _executed(run, fresh=bool(item.half))
    failed = epochs["failed"]
    config = replace(run.config, model=name_of(run.config.model))  # no path of this machine
    row = {"config": config.to_json(), "versions": run.versions}
    row |= {"facts": run.facts.sha256[:16], **epochs}
    row |= _traces(run)
    if failed:
        return row
    if item.half:
        return {**row, "shares": shares(model, run, item.half)}
    if item.metrics:
        from adapop.experiments.knowledge import known

        return {**row, "metrics": known(model, run, item.arm in (KNOWS, NEVER_READ))}
    row |= {**_finals(run.measured()), **_finer(run, model, levels=item.ground is None)}
    compared = next(
        (event.distance for event in run.events() if isinstance(event, ComparedToOracle)), None
    )
    row |= _rounded(distance_cells(compared))
    return (
        {**row, **_rounded(recovery_checks(model, run.facts, run.reply_tokens))}
        if item.recovery
        else row
    )


def _executed(run: Run, fresh: bool) -> tuple[dict[str, Any], AdaptedModel]:
    """Executes a run. Returns "failed", the columns of `ORACLE_EPOCHS`, where there is an oracle,
    and `RETAINED`, and its model. fresh: as `fresh_model` loads it, and without `RETAINED`."""
    from adapop.experiments.shares import fresh_model
    from adapop.model.loading import adapted_model
    from adapop.probes.measure import recall_by_fact
    from adapop.probes.oracle import states
    from adapop.runs.execute import execute, load_model

    model = (fresh_model if fresh else adapted_model)(run.config)
    failed, epoch_states, retained = "", [], []
    original = (
        run.config.model,
        run.config.start,
        run.config.precision,
        run.reply_tokens,
        run.facts.sha256,
    )
    for event in execute(run, model, BEFORE.get(original)):
        if isinstance(event, RunFailed):
            failed = f"{event.message} {event.fix}"
        elif isinstance(event, EpochDone):
            epoch_states.append(states(model, run.config.model, run.facts))
            if not fresh:
                retained.append(
                    fmean(
                        recall_by_fact(
                            model, run.facts.retain, run.reply_tokens, Progress()
                        ).values()
                    )
                )
    if run.config.start == "sft" and not failed:
        model = load_model(run)  # it began with weights of its own
    if before := run.measured(before=True):
        BEFORE[original] = before
    recalls = [round(recall, DIGITS) for recall in retained]
    return {
        "failed": failed,
        **epoch_cells(run.facts.forget, epoch_states),
        RETAINED: recalls,
    }, model


def prepared(item: Item, folder: Path, models: Path | None) -> Run:
    """The item's run, its exponents from the arm's scores. Tiers follow the facts' own scores."""
    from adapop.runs.execute import prepare
    from adapop.runs.run import create_run

    arm, facts, config = (
        item.arm,
        facts_for(item.quick, item.ground and item.ground.facts),
        item.config,
    )
    if arm.world:
        model = folder_of(arm.world, models)
        if not model.exists():
            raise ModelError(
                f"The sandbox {arm.world.name!r} is not at {model}.",
                "Build it first: `worlds.build`.",
            )
        config = replace(config, model=str(model))
    if arm.scores == "given" and arm.anchors == "paper":
        return prepare(config, facts, folder)
    scores = other_scores(arm.scores, item.seed, item.ground and item.ground.facts)
    if arm.anchors == "quantiles":
        config = replace(config, beta=BetaMap.from_quantiles(scores.values()))
    scored = replace(
        facts, forget=tuple(replace(fact, score=scores.get(fact.id)) for fact in facts.forget)
    )
    settled = prepare(config, scored, folder)
    return create_run(settled.config, facts, settled.betas, folder, settled.versions)


def _finals(measured: Measured) -> dict[str, float]:
    """The final measurement by column."""
    by_place = {(row["group"], row["form"], row["tier"]): row for row in measured.rows}
    cells = {
        name: by_place[place]["recall"]
        for name, place in (RECALLS | NEIGHBOURS).items()
        if place in by_place
    }
    cells |= {
        name: by_place[place].get("cosine") for name, place in COSINES.items() if place in by_place
    }
    for name, (group, tier, metric) in INTERNALS.items():
        if (group, DIRECT, tier) in by_place:
            cells[name] = by_place[group, DIRECT, tier][metric]
    return _rounded(cells)


def _rounded(cells: Mapping[str, float | None]) -> dict[str, float]:
    """Measurements rounded as they are recorded."""
    return {name: round(value, DIGITS) for name, value in cells.items() if value is not None}


def _traces(run: Run) -> dict[str, list[float]]:
    """Controller values and quick recall by tier, one value per epoch; epoch 0 is before
    training."""
    epochs = run.epochs()
    traces = {name: [round(getattr(row, name), DIGITS) for row in epochs] for name in TRACES}
    quick = [event for event in run.events() if isinstance(event, Measured) and not event.full]
    for form in (DIRECT, REWORDED):
        for tier in ("all", *TIERS):
            recalls = [event.recall("forget", form, tier) for event in quick]
            traces[f"epochs_{form}_{tier}"] = [
                round(recall, DIGITS) for recall in recalls if recall is not None
            ]
    return traces


def _finer(run: Run, model: AdaptedModel, levels: bool) -> dict[str, Any]:
    """Final recall of the facts to forget by score, rarest first, asked as trained and in other
    words; and on each half of what is split, with how near the forgotten answers are. levels:
    whether several facts share each score."""
    from adapop.probes.second_guess import second_guesses

    facts, limit = run.facts, run.reply_tokens
    parts = {half: questions_of(facts, half) for half in HALVES}
    pairs = [(fact, (fact.question, *fact.paraphrases)) for fact in facts.forget]
    pairs += [
        pair
        for part in parts.values()
        for name in part
        if "forget" not in name
        for pair in part[name]
    ]
    recall, near = recalls(model, pairs, limit), second_guesses(model, facts.forget)
    rows = _by_score(facts.forget, recall) if levels else {}
    for half, part in parts.items():
        forget = part[f"forget_{REWORDED}"]
        cells = {name: by_tier(members, recall) for name, members in part.items()}
        cells |= {f"forget_{name}": by_tier(forget, values) for name, values in near.items()}
        split = {
            f"{half}_{name}_{tier}": value
            for name, tiers in cells.items()
            for tier, value in tiers.items()
        }
        split[f"{half}_utility"] = split[f"{half}_utility_all"]
        rows |= {name: round(split[name], DIGITS) for name in HALVED if name in split}
    return rows


def _by_score(
    forget: Sequence[Fact], recall: Mapping[tuple[str, str], float]
) -> dict[str, list[float]]:
    rows = {"levels": sorted({fact.score for fact in forget})}
    for name, questions in (
        ("direct", lambda fact: (fact.question,)),
        ("reworded", lambda fact: fact.paraphrases),
    ):
        levels: dict[float, list[float]] = defaultdict(list)
        for fact in forget:
            levels[fact.score] += [recall[fact.id, question] for question in questions(fact)]
        rows[f"levels_{name}"] = [round(fmean(levels[score]), DIGITS) for score in rows["levels"]]
    return rows


def recalls(
    model: AdaptedModel, members: Sequence[tuple[Fact, Sequence[str]]], limit: int
) -> dict[tuple[str, str], float]:
    """Recall of each fact's answer to each of its questions, by the fact's id and the question."""
    from adapop.probes.measure import recall_by_fact

    asked_once = dict.fromkeys(
        (fact, question) for fact, questions in members for question in questions
    )
    named = [
        replace(fact, id=str(place), question=question)
        for place, (fact, question) in enumerate(asked_once)
    ]
    by_number = recall_by_fact(model, named, limit, Progress())
    return {
        (fact.id, question): by_number[str(place)]
        for place, (fact, question) in enumerate(asked_once)
    }


def _peak_megabytes() -> int:
    """The most memory this process has ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # bytes there, kilobytes elsewhere
    return round(peak / (1e6 if sys.platform == "darwin" else 1e3))
