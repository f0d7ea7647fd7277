"""Retain and holdout rows of a set: facts to be kept, trained on or held out. They are the set's
own, else those of the included set that the model knows ("own"); the sandbox world's ("sandbox");
those of that world most similar to the facts to forget ("neighbours"); a part of the facts to
forget ("split"); or another set.

A real model gets utility questions of general knowledge and language, and facts about cities in
place of a sandbox's (`fitted`): the sandbox's questions and rows suit only the sandbox's model.
"""

import hashlib
import json
import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from adapop.errors import DataError
from adapop.facts.fact import SANDBOX, Fact, FactSet, separated
from adapop.facts.files import read_facts
from adapop.facts.scale import places, shipped_places, with_tiers
from adapop.facts.text import normalized
from adapop.facts.world import sandbox_facts
from adapop.paths import ASSETS, SHIPPED
from adapop.remark import Remark

RETAIN = ("own", "sandbox", "neighbours", "split")
CITIES = ASSETS / "sets" / "cities.csv"
FEWEST_NEIGHBOURS = 32
HELD_OUT = 0.3  # share of the retain rows
EVERY = 3  # of the facts to forget, by score, this one is retained by "split"
EXAMPLES = 3
FEWEST_FOR_EXAMPLES = 4 * EXAMPLES  # retain rows: with fewer, three are too many to lose


def with_retain_rows(facts: FactSet, model: str, retain: str | FactSet = "own") -> FactSet:
    """The set with retain rows, and with a holdout or a note why there is none.

    retain: one of `RETAIN`, or a set whose rows are all retained, except its holdout. On a shipped
    model, a set without utility questions gets those of its world. Raises DataError: none similar,
    too few facts to split, or no such choice."""
    world = sandbox_facts(model if model in SHIPPED else SANDBOX)
    if isinstance(retain, FactSet):
        facts = _from_set(facts, retain)
    elif retain not in RETAIN:
        message = f"There are no retain rows called {retain!r}."
        raise DataError(message, f"Choose {', '.join(RETAIN)}, or give a set.")
    elif retain == "neighbours":
        chosen = neighbours(facts.forget, _usable(facts, world.retain))
        if not chosen:
            shares = f"shares a relation or an answer with those of {facts.name}"
            fix = "Fill the column relation, or choose other rows to retain."
            raise DataError(f"No fact of the {world.name} world {shares}.", fix)
        facts = _from_world(facts, world, chosen, "neighbours_retain")
    elif retain == "split":
        facts = _split(facts)
    elif retain == "sandbox" or not facts.retain:
        known = world if retain == "sandbox" or model in SHIPPED else included_cities()
        facts = _from_world(facts, known, _usable(facts, known.retain), "world_retain")
    if model in SHIPPED and not facts.utility:
        facts = replace(facts, utility=world.utility)
    return with_tiers(split_holdout(facts))


@cache
def included_cities() -> FactSet:
    """The included set about cities, which language models know."""
    return read_facts(CITIES)


def _split(facts: FactSet) -> FactSet:
    """The set with every third of its facts to forget, by score, to be retained instead. Raises
    DataError: it has fewer than three."""
    if len(facts.forget) < EVERY:
        message = f"{facts.name} has too few facts to keep a part of them: {len(facts.forget)}."
        raise DataError(message, f"Add facts, at least {EVERY}, or choose other rows to retain.")
    ranked = sorted(facts.forget, key=lambda fact: (fact.score is None, fact.score or 0))
    ids = {fact.id for fact in ranked[1::EVERY]}
    note = Remark("split_retain", {"retain": len(ids), "facts": len(ranked)})
    retain = tuple(fact for fact in facts.forget if fact.id in ids)
    notes = (*facts.notes, *_unused(len(facts.retain)), note)
    forget = tuple(fact for fact in facts.forget if fact.id not in ids)
    return replace(facts, forget=forget, retain=retain, notes=notes)


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

    held_out: set[str] = set()
    for rows in sorted(alike.values(), key=rank)[:-1]:
        if len(held_out) >= max(1, math.floor(len(facts.retain) * HELD_OUT)):
            break
        held_out |= {row.id for row in rows}
    counts = {"holdout": len(held_out), "retain": len(facts.retain)}
    note = Remark("holdout_from_retain", counts) if held_out else Remark("no_holdout")
    retain = tuple(fact for fact in facts.retain if fact.id not in held_out)
    holdout = tuple(fact for fact in facts.retain if fact.id in held_out)
    return replace(facts, retain=retain, holdout=holdout, notes=(*facts.notes, note))


def with_examples(facts: FactSet, seed: int) -> FactSet:
    """The set with examples that show how a question is answered: its own, or three of its retain
    rows, which are then no longer retained. Their answers differ and their subjects are not to be
    forgotten. A set with too few retain rows stays as it is."""
    if facts.examples or len(facts.retain) < FEWEST_FOR_EXAMPLES:
        return facts
    subjects = {normalized(fact.subject) for fact in facts.forget if fact.subject}
    answers = {normalized(fact.answer) for fact in facts.forget}
    free = [fact for fact in facts.retain if normalized(fact.subject) not in subjects]
    random.Random(seed).shuffle(free)
    # last those that share an answer with a fact to forget, which they would give away
    free.sort(key=lambda fact: normalized(fact.answer) in answers)
    chosen = list({normalized(fact.answer): fact for fact in reversed(free)}.values())[-EXAMPLES:]
    if len(chosen) < EXAMPLES:
        return facts
    names = {fact.id for fact in chosen}
    note = Remark("examples_from_retain", {"count": EXAMPLES, "facts": len(facts.retain)})
    retain = tuple(fact for fact in facts.retain if fact.id not in names)
    return replace(facts, retain=retain, examples=tuple(chosen), notes=(*facts.notes, note))


def neighbours(forget: Sequence[Fact], pool: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts of a pool that share relation or answer with facts to forget, most similar first.
    Facts that share both with one fact come first; among equals, those nearest in log score,
    unknown scores last. At most as many as there are facts to forget, or 32 if that is more."""
    by_relation, by_answer = _by_text(forget, "relation"), _by_text(forget, "answer")
    ranked = []
    for fact in pool:
        relation = by_relation.get(normalized(fact.relation), set())
        answer = by_answer.get(normalized(fact.answer), set())
        if alike := relation & answer or relation | answer:
            distance = min(_distance(fact, forget[place]) for place in alike)
            ranked.append((not relation & answer, distance, fact))
    ranked.sort(key=lambda entry: entry[:2])
    return tuple(fact for *_, fact in ranked[: max(len(forget), FEWEST_NEIGHBOURS)])


def _by_text(facts: Sequence[Fact], field: str) -> dict[str, set[int]]:
    """Normalised relation or answer -> indices of its facts in the sequence."""
    places: dict[str, set[int]] = defaultdict(set)
    for place, fact in enumerate(facts):
        if text := normalized(getattr(fact, field)):
            places[text].add(place)
    return places


def _distance(one: Fact, other: Fact) -> float:
    if one.score is None or other.score is None:
        return math.inf
    return abs(math.log1p(one.score) - math.log1p(other.score))


def _from_world(facts: FactSet, world: FactSet, retain: tuple[Fact, ...], kind: str) -> FactSet:
    """The set with these retain rows of a world and, if needed, its holdout. kind: of the note."""
    notes = [Remark(kind, {"retain": len(retain), "world": world.name})]
    holdout = facts.holdout
    if not holdout:
        holdout = _usable(facts, world.holdout)
        notes.append(Remark("world_holdout", {"holdout": len(holdout), "world": world.name}))
    notes += _unused(len(set(facts.retain) - set(retain)))
    return replace(facts, retain=retain, holdout=holdout, notes=(*facts.notes, *notes))


def _unused(retain: int, holdout: int = 0) -> list[Remark]:
    """Notes on how many of the set's own rows are replaced."""
    notes = [Remark("own_retain_unused", {"retain": retain})] * bool(retain)
    return notes + [Remark("own_holdout_unused", {"holdout": holdout})] * bool(holdout)


def _usable(facts: FactSet, rows: Sequence[Fact]) -> tuple[Fact, ...]:
    """The rows that are not facts to forget, held out or neighbours, by id and question."""
    used = (*facts.forget, *facts.holdout, *facts.neighbours)
    taken = {key for fact in used for key in (fact.id, normalized(fact.question))}
    return tuple(row for row in rows if taken.isdisjoint((row.id, normalized(row.question))))


def _from_set(facts: FactSet, given: FactSet) -> FactSet:
    """The set with the retain rows of the set `given`, and with the holdout of `given`, if any. Ids
    in both sets are changed, and problems name the set they come from. Raises DataError."""
    held = () if given.holdout else facts.holdout
    unused = _unused(len(facts.retain), len(facts.holdout) - len(held))
    of_the_set = (*facts.forget, *held, *facts.neighbours, *facts.utility, *facts.attacks)
    ids = {fact.id for fact in of_the_set}

    def renamed(rows: Sequence[Fact]) -> tuple[Fact, ...]:
        named = []
        for row in rows:
            name = row.id
            while name in ids:
                name = f"retain-{name}"
            ids.add(name)
            named.append(replace(row, id=name))
        return tuple(named)

    retain, holdout = renamed((*given.forget, *given.retain)), held or renamed(given.holdout)
    facts = separated(replace(facts, retain=retain, holdout=holdout))
    if not facts.retain:
        message = f"{given.name} has no fact to retain that is not also to be forgotten."
        raise DataError(message, "Give other facts.")
    origin = f"in {given.name}"
    problems = [replace(one, message=f"{one.message}, {origin}") for one in given.problems]
    note = Remark("retain_from_set", {"facts": len(facts.retain), "name": given.name})
    notes = (*facts.notes, note, *unused)
    return replace(facts, problems=(*facts.problems, *problems), notes=notes)


GENERAL = ASSETS / "sets" / "general.csv"
MOST_BYTES = 2**20  # of a tokenizer.json: the sandbox's has 0.1 MB, a language model's from 2 to 20


@cache
def general() -> tuple[Fact, ...]:
    """Utility questions of general knowledge and language, for language models."""
    return read_facts(GENERAL, group="utility").utility


LENT = ("world_retain", "world_holdout", "neighbours_retain")  # kinds of notes


def fitted(facts: FactSet, model: str) -> FactSet:
    """The set, completed so that a model can be measured on it. For a real model, facts of a
    sandbox beside facts to forget that are not give way to `included_cities`, and a set without
    utility questions of its own gets the `general` ones that share no question or answer with facts
    to forget."""
    if _is_sandbox(model):
        return facts
    facts = _without_borrowed(facts)
    if places(facts.utility) - places(sandbox_facts().utility):
        return facts
    questions = {normalized(fact.question) for fact in facts.forget}
    answers = {normalized(fact.answer) for fact in facts.forget}
    others = (fact for fact in general() if normalized(fact.question) not in questions)
    free = [fact for fact in others if normalized(fact.answer) not in answers]
    return replace(facts, utility=tuple(free))


def _without_borrowed(facts: FactSet) -> FactSet:
    """The set with `included_cities` in place of retain and holdout rows of a sandbox, which would
    protect nothing of a real model; unchanged if it has none, or if it forgets a sandbox's."""
    if places(facts.forget) <= shipped_places():
        return facts
    worlds = [sandbox_facts(name) for name in SHIPPED]
    lent = places(fact for world in worlds for fact in (*world.retain, *world.holdout))
    retain, holdout = (
        tuple(fact for fact in group if (fact.id, fact.question) not in lent)
        for group in (facts.retain, facts.holdout)
    )
    if retain == facts.retain and holdout == facts.holdout:
        return facts
    notes = tuple(note for note in facts.notes if getattr(note, "kind", "") not in LENT)
    facts = replace(facts, retain=retain, holdout=holdout, notes=notes)
    if facts.retain:
        return split_holdout(facts)
    cities = included_cities()
    return _from_world(facts, cities, _usable(facts, cities.retain), "world_retain")


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
