"""What a set needs on a real model: utility questions of general knowledge and language, and retain
rows of its own. The sandbox's questions and rows suit only the sandbox's model."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from adapop.errors import DataError
from adapop.facts.fact import Fact, FactSet
from adapop.facts.files import read_facts
from adapop.facts.scale import places, shipped_places
from adapop.facts.text import normalized
from adapop.facts.world import sandbox_facts
from adapop.paths import ASSETS, SHIPPED

GENERAL = ASSETS / "sets" / "general.csv"
MOST_BYTES = 2**20  # of a tokenizer.json: the sandbox's has 0.1 MB, a language model's from 2 to 20


@cache
def general() -> tuple[Fact, ...]:
    """Utility questions of general knowledge and language, for language models."""
    return read_facts(GENERAL, group="utility").utility


def fitted(facts: FactSet, model: str) -> FactSet:
    """The set, completed so that a model can be measured on it. A real model's set without utility
    questions of its own gets the `general` ones that share no question or answer with facts to
    forget. Raises DataError: see `borrowed`."""
    if _is_sandbox(model):
        return facts
    if problem := borrowed(facts, model):
        raise DataError(*problem)
    if places(facts.utility) - places(sandbox_facts().utility):
        return facts
    questions = {normalized(fact.question) for fact in facts.forget}
    answers = {normalized(fact.answer) for fact in facts.forget}
    others = (fact for fact in general() if normalized(fact.question) not in questions)
    free = [fact for fact in others if normalized(fact.answer) not in answers]
    return replace(facts, utility=tuple(free))


def borrowed(facts: FactSet, model: str) -> tuple[str, str] | None:
    """(what is wrong, what to do) if a real model would retain the sandbox's rows but forget
    others; else None."""
    if _is_sandbox(model) or places(facts.forget) <= shipped_places():
        return None
    shipped = places(fact for name in SHIPPED for fact in sandbox_facts(name).retain)
    count = len(places(facts.retain) & shipped)
    if not count:
        return None
    share = f"{count:,} of the {len(facts.retain):,} facts to retain are the sandbox's"
    fix = "Add rows with 'retain' in a column called group, or give a set to retain"
    message = f"{share}: they would not hold the rest of {model} in place."
    return message, f"{fix}: facts like these that must survive."


def _is_sandbox(model: str) -> bool:
    """Whether the name is that of a shipped model, or of a folder with another build of one
    (`adapop.sandbox`). The tokenizers of both have the words of a shipped world alone."""
    return model in SHIPPED or _words(Path(model)) in [*map(_words, SHIPPED.values())]


def _words(folder: Path) -> object:
    """Token -> id of a folder's tokenizer; None without a tokenizer, or beyond `MOST_BYTES`."""
    file = folder / "tokenizer.json"
    try:
        if file.stat().st_size > MOST_BYTES:
            return None
        return json.loads(file.read_text(encoding="utf-8"))["model"]["vocab"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
