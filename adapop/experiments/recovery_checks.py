"""Recovery checks of an experiment: attacks, relearning, rounded weights, sampled replies."""

from collections.abc import Mapping

from adapop.experiments.results import ATTACK_KINDS
from adapop.facts.fact import FactSet
from adapop.model.adapted import AdaptedModel
from adapop.probes.battery import battery
from adapop.probes.matrix import leak_matrix
from adapop.probes.plan import Plan
from adapop.probes.prompts import DIRECT
from adapop.probes.recovery.choice import recover
from adapop.progress import Progress

ROUNDED_TO = 4  # bits


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
