"""The holdout split: retain rows kept out of training, to see what happens to unseen facts."""

import hashlib
import math
from collections import defaultdict
from dataclasses import replace

from adapop.facts.fact import Fact, FactSet
from adapop.facts.text import normalized

SHARE = 0.3  # of the retain rows


def split_holdout(facts: FactSet) -> FactSet:
    """The set with a share of its retain rows as holdout, if it has none, and a note that says so.

    Which rows are held out depends on their ids and questions alone, so it is the same in every
    run. Rows with the same question stay together: a held-out question is never trained on."""
    if facts.holdout or not facts.retain:
        return facts
    alike: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts.retain:
        alike[normalized(fact.question)].append(fact)

    def rank(rows: list[Fact]) -> str:
        return min(hashlib.sha256(row.id.encode()).hexdigest() for row in rows)

    ranked = sorted(alike.values(), key=rank)
    held_out: set[str] = set()
    for rows in ranked[:-1]:
        if len(held_out) >= max(1, math.floor(len(facts.retain) * SHARE)):
            break
        held_out |= {row.id for row in rows}
    count = len(facts.retain)
    why = "there is only one question to retain and training needs it: what is measured on it"
    note = f"Nothing is held out, because {why} does not show how facts fare that it never saw."
    if held_out:
        share = f"{len(held_out)} of its {count} retain rows"
        note = f"The set has no holdout rows, so {share} are held out of training."
    retain = tuple(fact for fact in facts.retain if fact.id not in held_out)
    holdout = tuple(fact for fact in facts.retain if fact.id in held_out)
    return replace(facts, retain=retain, holdout=holdout, notes=(*facts.notes, note))
