"""The plausible wrong answers that a run teaches: found once, and kept in its folder."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from adapop.facts.fact import Fact, FactSet
from adapop.model.adapted import AdaptedModel
from adapop.objectives import alternates, make_objective
from adapop.objectives.second_choice import by_second_choice
from adapop.runs import files
from adapop.runs.run import Run
from adapop.training.processes import ALONE, Ranks


@dataclass(frozen=True)
class _Kept:
    alternates: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]


def with_alternates(
    run: Run, model: AdaptedModel, facts: FactSet, ranks: Ranks = ALONE
) -> tuple[tuple[Fact, ...], tuple[str, ...]]:
    """The forget facts, with a plausible wrong answer each if the method needs one, and what to say about those.

    They are found once and kept in the run's folder: a resumed run teaches the same. After a stop, the facts as they
    were: the model may not have been asked for all.

    Raises:
        DataError: a fact is still without one, or has its right answer for one.
    """
    config = run.config
    objective, path = make_objective(config.method, config.arguments), run.folder / "alternates.json"
    if "alternates" not in objective.needs:
        return facts.forget, ()
    if ranks.led(path.exists):
        kept = files.read_json(path, _Kept)
        with files.reading(path):
            return tuple(replace(fact, alternates=kept.alternates[fact.id]) for fact in facts.forget), kept.notes
    found: Sequence[Fact] = facts.forget
    notes = []

    def draw(prompts: Sequence[str], seed: int) -> list[str]:
        return ranks.led(lambda: model.sample(prompts, seed, **alternates.DRAWN))

    several = getattr(objective, "count", 1)
    if objective.source != "relation":
        with model.original():
            if objective.source == "second":
                found = ranks.led(lambda: by_second_choice(found, model, several, lambda: run.stop_requested))
            else:
                stopped = partial(ranks.led, lambda: run.stop_requested)
                found = alternates.by_model(found, draw, config.seed, stopped, several)
        if ranks.led(lambda: run.stop_requested):
            return facts.forget, ()
        if silent := sum(not fact.alternates for fact in found):
            notes.append(f"For {silent} of {len(found)} facts the model wrote no usable wrong answer; others' serve.")
    found = alternates.by_relation(found, facts.retain, config.seed, several)
    alternates.check_alternates(found)
    content = {"alternates": {fact.id: fact.alternates for fact in found}, "notes": notes}
    ranks.led(lambda: files.write_text(path, json.dumps(content, ensure_ascii=False)))
    return tuple(found), tuple(notes)
