"""A run's measurements as cells of its row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from adapop.experiments.results import BY_SPLIT, COSINES, INTERNALS, NEIGHBOURS, RECALLS, TRACES
from adapop.experiments.validation import SPLITS, by_tier, questions_of
from adapop.facts.fact import TIERS, Fact
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.progress import Progress
from adapop.runs.run import Run
from adapop.training.events import Measured

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel

DIGITS = 6


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
    from adapop.probes.second_guess import second_guesses

    facts, limit = run.facts, run.reply_tokens
    parts = {split: questions_of(facts, split) for split in SPLITS}
    pairs = [(fact, (fact.question, *fact.paraphrases)) for fact in facts.forget]
    for part in parts.values():
        pairs += [pair for name, some in part.items() if "forget" not in name for pair in some]
    recall, near = recalls(model, pairs, limit), second_guesses(model, facts.forget)
    row = _by_score(facts.forget, recall) if levels else {}
    for split, part in parts.items():
        cells = {name: by_tier(members, recall) for name, members in part.items()}
        for name, values in near.items():
            cells[f"forget_{name}"] = by_tier(part[f"forget_{REWORDED}"], values)
        columns = {
            f"{split}_{name}_{tier}": value
            for name, tiers in cells.items()
            for tier, value in tiers.items()
        }
        columns[f"{split}_utility"] = columns.get(f"{split}_utility_all")  # None without questions
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
    from adapop.probes.measure import recall_by_fact

    pairs = list(dict.fromkeys((fact, text) for fact, questions in members for text in questions))
    # Each pair has its own id, because recall is returned by id.
    numbered = [replace(fact, id=str(i), question=text) for i, (fact, text) in enumerate(pairs)]
    values = recall_by_fact(model, numbered, limit, Progress())
    return {(fact.id, text): values[str(i)] for i, (fact, text) in enumerate(pairs)}
