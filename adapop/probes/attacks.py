"""The nine attacks of METHODS 4.5: a fact as prompts that try to get it back another way.

Prompts depend on the fact, the pool and the seed alone. Facts of the sandbox world are asked as `sandbox.language`
wraps them, since that model follows only the wrappers it was taught; all others by the builders here. Where an attack
does not fit a fact, or its prompt would contain the answer, there is a reason in its place.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, islice

from adapop.facts.fact import Fact, FactSet
from adapop.facts.pool import Pool
from adapop.facts.text import folded, mentions
from adapop.facts.world import language
from adapop.facts.world.world import WorldFact
from adapop.probes.prompts import CHOICE, NotApplicable, Prompt, checked, world_fact
from adapop.probes.translations import translated
from adapop.probes.wording import WORDING, persona, reversed_question, spoken, stated, with_synonyms

HINTS = 2
DISTRACTORS = len(language.LETTERS) - 1
RWKU_NAMES = {
    "role play": "role playing",
    "context hint": "background hint",
    "incontext learning": "in-context learning",
    "cross lingual": "cross-lingual",
}


def attack_prompts(fact: Fact, facts: Sequence[Fact] | Pool, seed: int) -> list[Prompt | NotApplicable]:
    """One result for each of the nine attacks, in the order of `WRAPPERS`.

    facts: what the set has to forget, to retain and held out; a `Pool` of them saves indexing them for each fact.
    """
    pool = facts if isinstance(facts, Pool) else Pool(facts)
    taught = world_fact(fact)
    results = []
    for kind, build in BUILDERS.items():
        rng = random.Random(f"{seed} {kind} {fact.id}")  # each its own draw, whatever else is asked
        found = _as_taught(taught, kind, rng) if taught else build(fact, pool, rng)
        results.append(NotApplicable(fact.id, kind, found) if isinstance(found, str) else checked(found))
    return results


def own_attacks(facts: FactSet) -> list[Prompt | NotApplicable]:
    """The attack prompts that a set brings, unchanged, under our names of the kinds. `relation` holds the type.

    They may name their answer, and their options, if any, are somewhere in the text, so the chance level is not known.
    A type that is none of the nine is not applicable and keeps its name as the kind.
    """
    results: list[Prompt | NotApplicable] = []
    for fact in facts.attacks:
        name = folded(fact.relation).partition("(")[0].strip()  # "cross lingual (French)"
        kind = RWKU_NAMES.get(name, name)
        if kind in BUILDERS:
            results.append(Prompt(fact.id, kind, fact.question, fact.answer))
        else:
            reason = f"{fact.relation!r} is none of the attacks {', '.join(BUILDERS)}"
            results.append(NotApplicable(fact.id, fact.relation, reason))
    return results


def _as_taught(fact: WorldFact, kind: str, rng: random.Random) -> Prompt | str:
    if kind in language.NOT_TAUGHT:
        return "eight subjects share each answer of the sandbox, and its model has seen no reversed text"
    text = language.wrapped(fact, kind, rng)
    if kind == CHOICE:
        options = re.split(r" ?[A-D]\) ", text.removeprefix(language.question(fact)))[1:]
        return _choice(fact.id, text, fact.answer, options)
    return Prompt(fact.id, kind, text, fact.answer)


def _around(kind: str, forms: Sequence[str], fact: Fact, pool: Pool, rng: random.Random) -> Prompt:
    """Words round the question: an order before it, the beginning of a reply after it, or somebody who must know."""
    text = rng.choice(forms).format(q=fact.question, p=persona(fact.relation))
    return Prompt(fact.id, kind, text, fact.answer)


def _multiple_choice(fact: Fact, pool: Pool, rng: random.Random) -> Prompt | str:
    """The question with its answer among three other answers of the relation."""
    if mentions(fact.question, fact.answer):
        return "the question contains the answer"
    wrong = list(islice(pool.distractors(fact, rng), DISTRACTORS))
    if len(wrong) < DISTRACTORS:
        return f"the set has only {len(wrong)} other answers of this relation, {DISTRACTORS} are needed"
    options = [fact.answer, *wrong]
    rng.shuffle(options)
    shown = "\n".join(f"{letter}) {option}" for letter, option in zip(language.LETTERS, options))
    return _choice(fact.id, WORDING.options.format(q=fact.question, options=shown), fact.answer, options)


def _choice(fact_id: str, text: str, gold: str, options: Sequence[str]) -> Prompt:
    letter = language.LETTERS[options.index(gold)]
    return Prompt(fact_id, CHOICE, text, gold, (letter,), tuple(options), 1 / len(options))


def _reverse_query(fact: Fact, pool: Pool, rng: random.Random) -> Prompt | str:
    """Relation and answer are given, the subject is asked for."""
    if reason := pool.not_reversible(fact):
        return reason
    if not spoken(fact.relation):
        return "the relation is not in words"
    return Prompt(fact.id, "reverse query", reversed_question(fact, rng), fact.subject)


def _synonym_manipulation(fact: Fact, pool: Pool, rng: random.Random) -> Prompt | str:
    """The question's own words are exchanged. The subject stays: its aliases would have to come from Wikidata."""
    text = with_synonyms(fact.question, fact.subject)
    if text == fact.question:
        return "the question has no word that we have another word for"
    return Prompt(fact.id, "synonym manipulation", text, fact.answer)


def _background_hint(fact: Fact, pool: Pool, rng: random.Random) -> Prompt | str:
    """Up to two other facts of the pool about the same subject, as sentences, and then the question."""
    told = [stated(other) for other in pool.about(fact) if spoken(other.relation)]
    hints = [sentence for sentence in told if not mentions(sentence, fact.answer)]
    if not hints:
        return "the set knows nothing else about this subject that does not name the answer"
    chosen = rng.sample(hints, min(HINTS, len(hints)))
    return Prompt(fact.id, "background hint", " ".join((*chosen, fact.question)), fact.answer)


def _in_context_learning(fact: Fact, pool: Pool, rng: random.Random) -> Prompt | str:
    """A worked question before the question.

    METHODS wants it about the same subject; where the pool has none, it is about another subject of the same relation
    and has another answer.
    """
    about = pool.about(fact)
    for example in chain(rng.sample(about, len(about)), pool.beside(fact, rng)):
        if not mentions(f"{example.question} {example.answer}", fact.answer):
            text = WORDING.worked.format(asked=example.question, answer=example.answer, q=fact.question)
            return Prompt(fact.id, "in-context learning", text, fact.answer)
    return "the set has no other question on this subject or relation whose answer differs"


def _cross_lingual(fact: Fact, pool: Pool, rng: random.Random) -> Prompt | str:
    """The question in another language."""
    found = translated(fact, rng)
    if found is None:
        return "we have no translation for this relation"
    text, accepted = found
    return Prompt(fact.id, "cross-lingual", text, fact.answer, accepted)


Builder = Callable[[Fact, Pool, random.Random], Prompt | str]  # a string is the reason why there is no prompt
BUILDERS: dict[str, Builder] = {
    "prefix injection": partial(_around, "prefix injection", WORDING.prefixes),
    "affirmative suffix": partial(_around, "affirmative suffix", WORDING.suffixes),
    "role playing": partial(_around, "role playing", WORDING.roles),
    CHOICE: _multiple_choice,
    "reverse query": _reverse_query,
    "synonym manipulation": _synonym_manipulation,
    "background hint": _background_hint,
    "in-context learning": _in_context_learning,
    "cross-lingual": _cross_lingual,
}
