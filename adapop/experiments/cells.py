"""A run's measurements as cells of its row.

Read from top to bottom: what every run is asked (`traces`, `finals`, `finer`), its distance to the
oracle, how much comes back (`recovery_checks`), every metric at once (`known`), and what a real
model says before and after (`shares`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from adapop.experiments.plans import SPLITS, VALIDATION, by_tier, facts_of, questions_of
from adapop.experiments.results import (
    ALL_ATTACKS,
    ATTACK_KINDS,
    BY_SPLIT,
    COSINES,
    INTERNALS,
    NEIGHBOURS,
    RECALLS,
    TRACES,
)
from adapop.facts.fact import FACT_GROUPS, TIERS, Fact, FactSet
from adapop.model.adapted import AdaptedModel
from adapop.model.tokens import AnswerTokens
from adapop.paths import SHIPPED
from adapop.probes.battery import battery
from adapop.probes.distance import MIA_NAMES, STATE_NAMES, Distance, auc, closer_to_1
from adapop.probes.judge import known_recall
from adapop.probes.matrix import leak_matrix
from adapop.probes.measure import recall_by_fact
from adapop.probes.metrics import (
    by_fact,
    memorised,
    nlls,
    second_guesses,
    truth_ratios,
    wrong_answers,
)
from adapop.probes.oracle import load_oracle
from adapop.probes.plan import Plan, Question, evenly, questions
from adapop.probes.prompting import FORM_OF_WAY
from adapop.probes.prompts import DIRECT, REWORDED, Prompt
from adapop.probes.recall import KNOWN_FROM
from adapop.probes.recovery.base import untouched
from adapop.probes.recovery.choice import recover
from adapop.probes.recovery.lens import lens
from adapop.probes.recovery.patch import still_read
from adapop.probes.recovery.quantise import rounded_weights
from adapop.probes.recovery.relearn import COUNT, LEARNING_RATE, STEPS, split, teach
from adapop.progress import Progress
from adapop.runs.run import Run
from adapop.training.events import Measured

DIGITS = 6
KNOWN_DIGITS = 3  # of the metrics of each fact
ROUNDED_TO = 4  # bits
ATTACKED, OTHERWISE = 3, 6  # facts per tier of `shares`
HELD_OUT = 24  # facts per tier
UTILITY = 48  # questions
ByTier = dict[str, list[float]]
Known = dict[str, dict[str, ByTier]]  # state (one of `metrics.STATES`) -> metric -> tier
Prompts = dict[tuple[str, str], list[tuple[Fact, list[Prompt]]]]  # by (group, form)
# Original models by name and facts: a worker measures each only once.
_BEFORE: dict[tuple[str, str], dict[str, ByTier]] = {}


def rounded(cells: Mapping[str, float | None]) -> dict[str, float]:
    """The cells that have a value, rounded for recording."""
    return {name: round(value, DIGITS) for name, value in cells.items() if value is not None}


def traces(run: Run) -> dict[str, list[float]]:
    """Controller values and quick recall by tier, before training and after each epoch."""
    epochs = run.epochs()
    cells = {name: [round(getattr(row, name), DIGITS) for row in epochs] for name in TRACES}
    quick = [event for event in run.events() if isinstance(event, Measured) and not event.full]
    for form in (DIRECT, REWORDED):
        for tier in ("all", *TIERS):
            values = [event.recall("forget", form, tier) for event in quick]
            cells[f"epochs_{form}_{tier}"] = [
                round(one, DIGITS) for one in values if one is not None
            ]
    return cells


def finals(measured: Measured) -> dict[str, float]:
    """Column -> value of the final measurement, for those that were measured."""
    places = {name: (place, "recall") for name, place in (RECALLS | NEIGHBOURS).items()}
    places |= {name: (place, "cosine") for name, place in COSINES.items()}
    for name, (group, tier, metric) in INTERNALS.items():
        places[name] = (group, DIRECT, tier), metric
    return rounded(
        {name: measured.recall(*place, field) for name, (place, field) in places.items()}
    )


def finer(run: Run, model: AdaptedModel, levels: bool) -> dict[str, Any]:
    """Final recall of the facts to forget by score, rarest first, as trained and reworded; and on
    each split of the questions, with the second guesses. levels: whether to add recall by score."""
    facts, limit = run.facts, run.reply_tokens
    parts = {half: questions_of(facts, half) for half in SPLITS}
    pairs = [(fact, (fact.question, *fact.paraphrases)) for fact in facts.forget]
    for part in parts.values():
        pairs += [pair for name, some in part.items() if "forget" not in name for pair in some]
    recall, near = recalls(model, pairs, limit), second_guesses(model, facts.forget)
    row = _by_score(facts.forget, recall) if levels else {}
    for half, part in parts.items():
        cells = {name: by_tier(members, recall) for name, members in part.items()}
        for name, values in near.items():
            cells[f"forget_{name}"] = by_tier(part[f"forget_{REWORDED}"], values)
        columns = {
            f"{half}_{name}_{tier}": value
            for name, tiers in cells.items()
            for tier, value in tiers.items()
        }
        columns[f"{half}_utility"] = columns.get(f"{half}_utility_all")  # None without questions
        known = {name: value for name, value in columns.items() if value is not None}
        row |= {name: round(known[name], DIGITS) for name in BY_SPLIT if name in known}
    return row


def _by_score(forget: Sequence[Fact], recall: Mapping[tuple[str, str], float]) -> dict[str, list]:
    row = {"levels": sorted({fact.score for fact in forget})}
    questions = {"direct": lambda fact: (fact.question,), "reworded": lambda fact: fact.paraphrases}
    for form, of in questions.items():
        levels: dict[float, list[float]] = {score: [] for score in row["levels"]}
        for fact in forget:
            levels[fact.score] += [recall[fact.id, question] for question in of(fact)]
        row[f"levels_{form}"] = [round(fmean(values), DIGITS) for values in levels.values()]
    return row


def recalls(
    model: AdaptedModel, members: Sequence[tuple[Fact, Sequence[str]]], limit: int
) -> dict[tuple[str, str], float]:
    """(fact id, question) -> recall. members: facts with questions. limit: tokens of a reply."""
    pairs = list(dict.fromkeys((fact, text) for fact, questions in members for text in questions))
    # Each pair has its own id, because recall is returned by id.
    numbered = [replace(fact, id=str(i), question=text) for i, (fact, text) in enumerate(pairs)]
    values = recall_by_fact(model, numbered, limit, Progress())
    return {(fact.id, text): values[str(i)] for i, (fact, text) in enumerate(pairs)}


def distance_cells(distance: Distance | None) -> dict[str, float | None]:
    """Column of `results.ORACLE` -> value; empty without a distance."""
    if distance is None:
        return {}
    cells = {}
    for tier in ("all", *TIERS):
        if shares := distance.shares(REWORDED, tier):
            for name, state in STATE_NAMES.items():
                cells[f"oracle_{name}_{tier}"] = shares[state].mean
    kls = {row.group: row.kl for row in distance.groups if (row.form, row.tier) == (DIRECT, "all")}
    cells |= {f"oracle_kl_{group}": kls.get(group) for group in FACT_GROUPS}
    return {**cells, "forget_quality_log10": distance.quality.log10}


def epoch_cells(facts: Sequence[Fact], epochs: Sequence[Sequence[str]]) -> dict[str, list[float]]:
    """Column of `results.ORACLE_EPOCHS` -> the share of facts in that state before training and
    after each epoch; empty without an oracle. epochs: the facts' states by epoch, see
    `probes.oracle.states`."""
    cells = {}
    for tier in ("all", *TIERS):
        places = [place for place, fact in enumerate(facts) if tier in ("all", fact.tier)]
        chosen = [[states[place] for place in places] for states in epochs if states and places]
        for name, state in STATE_NAMES.items() if chosen else ():
            shares = [round(states.count(state) / len(states), DIGITS) for states in chosen]
            cells[f"oracle_epochs_{name}_{tier}"] = shares
    return cells


def recovery_checks(model: AdaptedModel, facts: FactSet, limit: int) -> dict[str, float]:
    """Column of `results.RECOVERY_CHECKS` -> how much of the forget set the check brings back.
    limit: most tokens of a reply.

    - "attack KIND": recall above chance, at most 1; left out if the original does not answer it.
    - "relearn_before", "relearn_after", "relearn_control": recall of the trained questions of facts
      that were not trained on again; see `probes.recovery.relearn`.
    - "rounded": recall of the trained questions with weights rounded to `ROUNDED_TO` bits.
    - "sampled", "sampled_control": share of facts whose right answer, or a wrong one of the
      relation, is among 16 sampled replies."""
    plan = Plan(ATTACK_KINDS, groups=("forget",), max_new_tokens=limit)
    matrix = leak_matrix(battery(model, facts, plan, Progress()))
    attacks = ((kind, matrix.cell("forget", "all", kind)) for kind in ATTACK_KINDS)

    def row(name: str, **values: object) -> Mapping[str, float]:
        result = recover(name, model, facts, limit, Progress())
        return next(row for row in result["rows"] if values.items() <= row.items())

    relearned = row("relearn", tier="all", form=DIRECT)
    rounded = row("quantise", tier="all", group="forget", bits=ROUNDED_TO)
    sampled = row("sampling", tier="all")
    return {
        **{
            f"attack {kind}": one.unlearned.above_chance
            for kind, one in attacks
            if one and one.measurable
        },
        **{f"relearn_{name}": relearned[name] for name in ("before", "after", "control")},
        "rounded": rounded["unlearned_rounded"],
        "sampled": sampled["unlearned"],
        "sampled_control": sampled["control"],
    }


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
                    values[name][fact.tier].append(round(value, KNOWN_DIGITS))
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
        name: {tier: [round(fmean(of), 2 * KNOWN_DIGITS)] for tier, of in tiers.items() if of}
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
    wrong = wrong_answers(others, facts.every)
    yield "truth ratio", [1 - closer_to_1(ratio) for ratio in truth_ratios(model, others, wrong)]
    yield "exact memorisation", own["exact_memorization"]
    yield "extraction strength", own["extraction_strength"]
    for name in MIA_NAMES:
        yield name, auc(own[name], held_out[name])
    ranks = lens(model, others, Progress()).facts
    yield "logit-lens depth", [fmean(rank == 1 for rank in fact.unlearned) for fact in ranks]
    # Patched into the shipped model, which read the facts and has the oracle's shape.
    yield "patching depth", still_read(load_oracle(SHIPPED["sandbox"]), model, others)


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


def _directly(members: Mapping[str, Sequence[Fact]], form: str = DIRECT) -> Prompts:
    return {
        (group, form): [(fact, [_prompt(fact, DIRECT, fact.question)]) for fact in facts]
        for group, facts in members.items()
    }


def _all_prompts(known_facts: Mapping[str, Sequence[Fact]]) -> Prompts:
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
