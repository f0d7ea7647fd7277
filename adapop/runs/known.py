"""Measures the original model's recall of a set, asked as in a run of the same settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from adapop import paths
from adapop.config.run import RunConfig
from adapop.facts.benchmarks import system_prompt
from adapop.facts.fact import FactSet
from adapop.facts.retain import fitted, with_examples
from adapop.facts.scale import with_tiers
from adapop.paths import SHIPPED
from adapop.probes.prompting import Prompting
from adapop.progress import Progress

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel
    from adapop.probes.prompts import Prompt


@dataclass(frozen=True)
class Known:
    """The original model's answers for the facts to forget."""

    recall: Mapping[str, float]
    """Fact id -> recall, [0, 1]; for a real model 1 if it answers as a run requires, else 0."""
    prompting: Prompting | None
    """How it was asked; None for a shipped model, which is asked as it is."""
    mean: float
    """Mean recall as in a run's tables, [0, 1], where an answer counts by the share of its words;
    for a real model, whose run leaves out what it does not know, the share that it answers."""


def ready_to_ask(config: RunConfig, facts: FactSet) -> tuple[RunConfig, FactSet]:
    """Configuration and facts with everything settled that asking a model depends on: its path,
    precision, system prompt, tiers and examples."""
    from adapop.model.precision import with_precision
    from adapop.probes.ways import BENCHMARKS, CHAT

    config = with_precision(replace(config, model=paths.found_from_anywhere(config.model)))
    facts = with_tiers(facts)
    if config.system is None:
        config = replace(config, system=system_prompt(config.model, facts))
    if config.model not in SHIPPED and config.asking != CHAT and facts.name not in BENCHMARKS:
        facts = with_examples(facts, config.seed)
    return config, facts


def settle(
    model: AdaptedModel, facts: FactSet, config: RunConfig, progress: Progress | None = None
) -> Prompting | None:
    """Finds the best way to ask a model about facts that are `ready_to_ask`, and applies it. None
    for a shipped model, whose way is fixed. Raises ModelError, Stopped: as
    `probes.ways.settled_prompting`. DataError: a question is longer than the model can read."""
    from adapop.model.adapted import cache_for
    from adapop.model.tokens import check_lengths
    from adapop.probes.ways import apply_prompting, settled_prompting

    if model.has_template:
        check_lengths(model.tokenizer, facts, model.context, model.system, config.max_new_tokens)
    if config.model in SHIPPED and config.unknown != "drop":
        return None
    model.reply_cache = model.reply_cache or cache_for(model)
    prompting = settled_prompting(model, facts, config, progress)
    apply_prompting(model, prompting)
    return prompting


def known_facts(config: RunConfig, facts: FactSet, progress: Progress | None = None) -> Known:
    """The original model's answers for the facts to forget, under these settings."""
    from adapop.probes.judge import known_recall
    from adapop.probes.measure import recall_by_fact
    from adapop.probes.recall import recall as recall_in_part

    progress = progress or Progress()
    model, prompting = _loaded(config, facts, progress)
    if prompting:
        unknown = {*prompting.unknown}
        recall = {fact.id: float(fact.id not in unknown) for fact in facts.forget}
        return Known(recall, prompting, fmean(recall.values()))
    parts = []

    def judged(prompt: Prompt, text: str) -> float:
        parts.append(recall_in_part(prompt, text))
        return known_recall(prompt, text)

    with model.original():
        recall = recall_by_fact(model, facts.forget, config.max_new_tokens, progress, judged)
    return Known(recall, None, fmean(parts))


def original_recall(config: RunConfig, facts: FactSet, progress: Progress) -> dict[str, float]:
    """Fact id -> ROUGE-L recall, [0, 1], of the original model's reply to the question of each fact
    to forget, under these settings. Raises ModelError, DataError, Stopped: as `known_facts`."""
    from adapop.probes.measure import recall_by_fact

    model, prompting = _loaded(config, facts, progress)
    tokens = prompting.reply_tokens if prompting else config.max_new_tokens
    with model.original():
        return recall_by_fact(model, facts.forget, tokens, progress)


def _loaded(
    config: RunConfig, facts: FactSet, progress: Progress
) -> tuple[AdaptedModel, Prompting | None]:
    """The model, asked as a run of these settings would ask it about these facts."""
    from adapop.model.loading import adapted_model

    config, facts = ready_to_ask(config, fitted(facts, paths.found_from_anywhere(config.model)))
    progress.say("Loading the model")
    model = adapted_model(config)
    return model, settle(model, facts, config, progress)
