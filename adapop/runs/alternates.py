"""The plausible wrong answers that a run teaches: chosen once, and saved in its folder."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

from adapop.facts.fact import Fact, FactSet
from adapop.model.adapted import AdaptedModel
from adapop.objectives import alternates, make_objective
from adapop.objectives.alternates import by_second_choice
from adapop.remark import Remark
from adapop.runs import files
from adapop.runs.run import Run
from adapop.training.processes import ALONE, Ranks


@dataclass(frozen=True)
class _Saved:
    alternates: dict[str, tuple[str, ...]]
    notes: tuple[str | Remark, ...]


def with_alternates(
    run: Run, model: AdaptedModel, facts: FactSet, ranks: Ranks = ALONE
) -> tuple[tuple[Fact, ...], tuple[str | Remark, ...]]:
    """The forget facts, each with a plausible wrong answer if the method needs one, and notes.

    Wrong answers are chosen once and saved in the run's folder, so that a resumed run teaches the
    same. After a stop, facts are returned unchanged: some may not have been asked. Raises
    DataError: a fact still has no wrong answer, or its right answer is among them."""
    config = run.config
    objective = make_objective(config.method, config.arguments)
    path = run.folder / "alternates.json"
    if "alternates" not in objective.needs:
        return facts.forget, ()
    if ranks.led(path.exists):
        saved = files.read_json(path, _Saved)
        with files.reading(path):
            wrong = saved.alternates
            ready = (replace(fact, alternates=wrong[fact.id]) for fact in facts.forget)
            return tuple(ready), saved.notes
    ready: Sequence[Fact] = facts.forget
    notes = []

    def draw(prompts: Sequence[str], seed: int) -> list[str]:
        return ranks.led(lambda: model.sample(prompts, seed, **alternates.DRAWN))

    several = getattr(objective, "count", 1)
    if objective.source != "relation":
        with model.original():
            if objective.source == "second":
                ready = ranks.led(
                    lambda: by_second_choice(ready, model, several, lambda: run.stop_requested)
                )
            else:
                stopped = partial(ranks.led, lambda: run.stop_requested)
                ready = alternates.by_model(ready, draw, config.seed, stopped, several)
        if ranks.led(lambda: run.stop_requested):
            return facts.forget, ()
        if silent := sum(not fact.alternates for fact in ready):
            notes.append(Remark("no_wrong_answers", {"count": silent, "facts": len(ready)}))
    ready = alternates.by_relation(ready, facts.retain, config.seed, several)
    alternates.check_alternates(ready)
    saved = _Saved({fact.id: fact.alternates for fact in ready}, tuple(notes))
    ranks.led(lambda: files.keep(path, json.dumps(asdict(saved), ensure_ascii=False)))
    return tuple(ready), tuple(notes)
