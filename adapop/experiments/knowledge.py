"""Every metric of each fact to forget: before and after unlearning, relearnt and rounded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from adapop.experiments.cells import recalls
from adapop.experiments.recovery_checks import ROUNDED_TO
from adapop.facts.fact import TIERS, Fact, FactSet
from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import AnswerTokens
from adapop.paths import SHIPPED
from adapop.probes.distance import MIA_NAMES, auc, closer_to_1
from adapop.probes.metrics import by_fact, memorised, nlls, truth_ratios, wrong_answers
from adapop.probes.oracle import load_oracle
from adapop.probes.recovery.base import untouched
from adapop.probes.recovery.lens import lens
from adapop.probes.recovery.patch import still_read
from adapop.probes.recovery.quantise import rounded_weights
from adapop.probes.recovery.relearn import COUNT, LEARNING_RATE, STEPS, split, teach
from adapop.probes.second_guess import second_guesses
from adapop.progress import Progress
from adapop.runs.run import Run

DIGITS = 3
ByTier = dict[str, list[float]]
Known = dict[str, dict[str, ByTier]]  # state (one of `metrics.STATES`) -> metric -> tier
# Original models by name and facts: a worker measures each only once.
_BEFORE: dict[tuple[str, str], dict[str, ByTier]] = {}


def known(model: AdaptedModel, run: Run, reference: bool) -> Known:
    """State -> metric -> tier -> values, see `metrics.METRICS`: one per fact in "before" and
    "after" if `reference`, else [their mean]; a tier without facts has none.

    Facts that relearning trains on, and those with the same question or answer, are left out."""
    facts, limit = run.facts, run.reply_tokens
    taught, others = split(facts.forget, min(COUNT, len(facts.forget) // 4), seed=0)
    place = (run.config.model, facts.sha256)

    def measured() -> dict[str, ByTier]:
        values = {}
        for name, of in _values(model, facts, others, limit):
            values[name] = {tier: [] for tier in TIERS}
            for fact, value in zip(others, of):
                if fact.tier in TIERS:
                    values[name][fact.tier].append(round(value, DIGITS))
        return values

    if place not in _BEFORE:
        with model.original():
            _BEFORE[place] = measured()
    states = {"before": _BEFORE[place], "after": measured()}
    with untouched(model):
        teach(model, taught, LEARNING_RATE, STEPS, Progress())
        states["relearned"] = measured()
    with rounded_weights(model, ROUNDED_TO, merged=True):
        states["rounded"] = measured()
    return {
        state: values if reference and state in ("before", "after") else _means(values)
        for state, values in states.items()
    }


def _means(values: Mapping[str, ByTier]) -> dict[str, ByTier]:
    return {
        name: {tier: [round(fmean(of), 2 * DIGITS)] for tier, of in tiers.items() if of}
        for name, tiers in values.items()
    }


def _values(model: AdaptedModel, facts: FactSet, others: Sequence[Fact], limit: int):
    """(metric, value in [0, 1] per fact) pairs. others: the measured facts, not relearnt."""
    model.network.eval()
    questions = [(fact, (fact.question, *fact.paraphrases)) for fact in others]
    recall, near = recalls(model, questions, limit), second_guesses(model, others)["top2"]
    reworded = [replace(fact, question=text) for fact in others for text in fact.paraphrases]
    scored = zip(reworded, nlls(model, model.rows(reworded)))
    likely = {(fact.id, fact.question): math.exp(-nll) for fact, nll in scored}

    def over_wordings(values: Mapping[tuple[str, str], float]) -> list[float]:
        return [fmean(values[fact.id, text] for text in fact.paraphrases) for fact in others]

    yield "recall, reworded", over_wordings(recall)
    yield "recall, as trained", [recall[fact.id, fact.question] for fact in others]
    yield "top 2, reworded", over_wordings(near)
    yield "probability, reworded", over_wordings(likely)

    def of(batch: AnswerTokens, answers: Sequence[str]) -> dict[str, list[float]]:
        return memorised(model.score(batch, logits=True), batch, answers)

    own, held_out = (by_fact(model, members, of) for members in (others, facts.holdout))
    yield "probability", own["probability"]
    wrong = wrong_answers(others, (*facts.forget, *facts.retain, *facts.holdout))
    yield "truth ratio", [1 - closer_to_1(ratio) for ratio in truth_ratios(model, others, wrong)]
    yield "exact memorisation", own["exact_memorization"]
    yield "extraction strength", own["extraction_strength"]
    for name in MIA_NAMES:
        yield name, auc(own[name], held_out[name])
    ranks = lens(model, others, Progress()).facts
    yield "logit-lens depth", [fmean(rank == 1 for rank in fact.unlearned) for fact in ranks]
    # Patched into the shipped model, which read the facts and has the oracle's shape.
    yield "patching depth", still_read(load_oracle(SHIPPED["sandbox"]), model, others)
