"""Runs on a real model, which stays loaded for the next run of the same seed, with recall before
and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from adapop.config.run import RunConfig
from adapop.experiments.real_tables import ALL_ATTACKS
from adapop.experiments.results import ATTACK_KINDS
from adapop.experiments.validation import VALIDATION, by_tier, facts_of
from adapop.facts.fact import FACT_GROUPS, Fact, FactSet
from adapop.probes.judge import known_recall
from adapop.probes.plan import Plan, Question, evenly, questions
from adapop.probes.prompting import FORM_OF_WAY
from adapop.probes.prompts import DIRECT, REWORDED, Prompt
from adapop.probes.recall import KNOWN_FROM
from adapop.runs.run import Run

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel

ATTACKED, OTHERWISE = 3, 6  # facts per tier
HELD_OUT = 24  # facts per tier
UTILITY = 48  # questions
DECIDES = (
    "model", "seed", "precision", "system", "lora_rank", "lora_alpha", "lora_targets",
    "lora_layers",
)  # fmt: skip
DIGITS = 6
Prompts = dict[tuple[str, str], list[tuple[Fact, list[Prompt]]]]  # by (group, form)
Known = Mapping[str, Sequence[Fact]]  # by group
_LOADED: dict[tuple, tuple[AdaptedModel, dict[str, Tensor]]] = {}


def fresh_model(config: RunConfig) -> AdaptedModel:
    """The configured model with a fresh adapter. The model loaded last is reused, with a reset
    adapter, if the settings in `DECIDES` are the same. Raises ModelError: as
    `model.loading.adapted_model`."""
    from adapop.model.loading import adapted_model

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


def shares(model: AdaptedModel, run: Run, split: str) -> dict[str, list[float]]:
    """ "group/form/tier" -> [number of facts, recall before, recall after], over the split's facts
    that the original answers as trained; recall is above chance, at most 1. For the validation
    split only the trained questions are asked."""
    facts, tokens = run.facts, run.reply_tokens
    known = _answered(model, facts, split, tokens)
    if split == VALIDATION:
        return _cells(model, _directly(known), tokens)
    cells = _cells(model, _all_prompts(known), tokens)
    for way in model.ways:
        if way != model.way:
            with model.asking_as(way):
                few = {group: evenly(known[group], OTHERWISE) for group in FACT_GROUPS}
                cells |= _cells(model, _directly(few, FORM_OF_WAY[way]), tokens)
    return cells


def _answered(
    model: AdaptedModel, facts: FactSet, split: str, tokens: int
) -> dict[str, list[Fact]]:
    """Group -> the split's facts that the original answers; for the test split also of holdout and
    utility."""
    members = {group: facts_of(getattr(facts, group), split) for group in ("forget", "retain")}
    if split != VALIDATION:
        members["holdout"] = evenly(facts.holdout, HELD_OUT)
        members["utility"] = evenly(facts.utility, UTILITY)
    with model.original():
        recall = _recalls(model, _directly(members), tokens)
    return {
        group: [fact for fact in facts if recall[fact.id, fact.question] >= KNOWN_FROM]
        for group, facts in members.items()
    }


def _directly(members: Known, form: str = DIRECT) -> Prompts:
    return {
        (group, form): [(fact, [_prompt(fact, DIRECT, fact.question)]) for fact in facts]
        for group, facts in members.items()
    }


def _all_prompts(known_facts: Known) -> Prompts:
    """All prompts: as trained, reworded (forget, holdout) and attacks (forget), together and by
    kind."""
    prompts = _directly(known_facts)
    for group in ("forget", "holdout"):
        prompts[group, REWORDED] = [
            (fact, [_prompt(fact, REWORDED, text) for text in fact.paraphrases])
            for fact in known_facts[group]
            if fact.paraphrases
        ]
    every = FactSet("known", *(tuple(known_facts[group]) for group in FACT_GROUPS))
    for kind, results in questions(every, Plan(ATTACK_KINDS, ("forget",), ATTACKED)).items():
        attacks = [(one.fact, [one.prompt]) for one in results if isinstance(one, Question)]
        prompts["forget", kind] = attacks
        prompts.setdefault(("forget", ALL_ATTACKS), []).extend(attacks)
    return prompts


def _prompt(fact: Fact, kind: str, question: str) -> Prompt:
    return Prompt(fact.id, kind, question, fact.answer, fact.accepted, parts=fact.judged_parts)


def _cells(model: AdaptedModel, questions: Prompts, tokens: int) -> dict[str, list[float]]:
    """Computes `shares` for these questions."""
    after = _recalls(model, questions, tokens)
    with model.original():
        before = _recalls(model, questions, tokens)
    cells = {}
    for (group, form), members in questions.items():
        texts = [(fact, [prompt.text for prompt in prompts]) for fact, prompts in members]
        left = by_tier(texts, after)
        for tier, known in by_tier(texts, before).items():
            count = len({fact.id for fact, _ in members if tier in ("all", fact.tier)})
            values = (count, known, left[tier])
            cells[f"{group}/{form}/{tier}"] = [round(value, DIGITS) for value in values]
    return cells


def _recalls(model: AdaptedModel, questions: Prompts, tokens: int) -> dict[tuple[str, str], float]:
    """(fact id, prompt) -> recall above chance: (recall - chance) / (1 - chance)."""
    pairs = [pair for members in questions.values() for pair in members]
    every = {(one.fact_id, one.text): one for _, prompts in pairs for one in prompts}
    prompts = list(every.values())
    replies = model.generate([prompt.text for prompt in prompts], tokens)
    return {
        place: (known_recall(prompt, reply) - prompt.chance) / (1 - prompt.chance)
        for (place, prompt), reply in zip(every.items(), replies)
    }
