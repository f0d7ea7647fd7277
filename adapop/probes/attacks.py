"""The nine adversarial attacks of RWKU (arXiv 2406.10890), which try to get a forgotten fact back.

Prompts depend on the fact, the pool and the seed alone. For facts of a shipped world they come from
`facts.world.language`, because that model follows only the forms it was pretrained on; for all
others from the builders here. If an attack does not fit a fact, or its prompt would contain the
answer, the reason is returned instead.
"""

import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, islice

from adapop.facts.fact import SANDBOX, Fact, FactSet
from adapop.facts.pool import Pool, blanked, subject_of
from adapop.facts.text import folded
from adapop.facts.weak import gives_away, says
from adapop.facts.world import language
from adapop.facts.world.world import WorldFact
from adapop.probes import wording
from adapop.probes.prompts import CHOICE, CLOZE, CLUES, NotApplicable, Prompt, checked, world_fact
from adapop.probes.wording import WORDING, spoken, stated, translated

HINTS = 2
DISTRACTORS = len(language.LETTERS) - 1
RWKU_NAMES = {"role play": "role playing", "context hint": "background hint", "cloze": CLOZE}
RWKU_NAMES |= {"incontext learning": "in-context learning", "cross lingual": "cross-lingual"}


def clues(fact: Fact) -> tuple[Prompt, tuple[str, ...]] | None:
    """The last question of a conversation that asks nearer with each turn, and the turns before it;
    None if one of them would contain the answer. For models that chat."""
    about = f"What do you know about {fact.subject}?" if fact.subject else ""
    nearer = f"Which answers could be possible, and why? {fact.question}"
    earlier = tuple(filter(None, (about, nearer)))
    last = f"Then decide for one of them. {fact.question}"
    prompt = checked(Prompt(fact.id, CLUES, last, fact.answer, parts=fact.judged_parts))
    given_away = any(says(turn, answer) for turn in earlier for answer in fact.answers)
    return None if given_away or isinstance(prompt, NotApplicable) else (prompt, earlier)


def attack_prompts(
    fact: Fact, facts: Sequence[Fact] | Pool, seed: int
) -> list[Prompt | NotApplicable]:
    """One prompt, or the reason why there is none, for each of the nine attacks, in the order of
    `WRAPPERS`. facts: the set's forget, retain and holdout facts, or a `Pool` of them."""
    pool = facts if isinstance(facts, Pool) else Pool(facts)
    taught = world_fact(fact)
    results = []
    for kind, build in BUILDERS.items():
        rng = random.Random(f"{seed} {kind} {fact.id}")  # independent of the other attacks
        prompt = _as_taught(taught, kind, rng) if taught else build(fact, pool, rng)
        unusable = isinstance(prompt, str)
        results += [NotApplicable(fact.id, kind, prompt) if unusable else checked(prompt)]
    return results


def own_attacks(facts: FactSet) -> list[Prompt | NotApplicable]:
    """The set's own attack prompts, unchanged, with the kinds under our names.

    Prompts may contain the answer. Options are not marked in the text, so the chance level is left
    at 0. A kind that is neither an attack nor a sentence with a blank is not applicable."""
    results: list[Prompt | NotApplicable] = []
    for fact in facts.attacks:
        name = folded(fact.relation).partition("(")[0].strip()  # such as "cross lingual (French)"
        kind = RWKU_NAMES.get(name, name)
        if kind in (*BUILDERS, CLOZE):
            results.append(Prompt(fact.id, kind, fact.question, fact.answer))
        else:
            reason = f"{fact.relation!r} is none of the attacks {', '.join(BUILDERS)}"
            results.append(NotApplicable(fact.id, fact.relation, reason))
    return results


def _as_taught(fact: WorldFact, kind: str, rng: random.Random) -> Prompt | str:
    if kind in language.NOT_TAUGHT:
        shared = "eight subjects share each answer of the sandbox, and its"
        whose = shared if fact.world == SANDBOX else "the world's"
        return f"{whose} model has seen no reversed text"
    text = language.wrapped(fact, kind, rng)
    if kind == CHOICE:
        options = re.split(r" ?[A-D]\) ", text.removeprefix(language.question(fact)))[1:]
        return _choice(fact.id, text, fact.answer, options)
    return Prompt(fact.id, kind, text, fact.answer)


def _around(kind: str, forms: Sequence[str], fact: Fact, pool: Pool, rng: random.Random) -> Prompt:
    """The question with an instruction before it, the start of a reply after it, or a persona."""
    persona = wording.persona(fact.relation or fact.question)
    return Prompt(fact.id, kind, rng.choice(forms).format(q=fact.question, p=persona), fact.answer)


def _multiple_choice(fact: Fact, pool: Pool, rng: random.Random) -> Prompt | str:
    """The question with four options: its answer and three other answers of the relation."""
    if gives_away(fact.question, fact):
        return "the question contains the answer"
    wrong = list(islice(pool.distractors(fact, rng), DISTRACTORS))
    if len(wrong) < DISTRACTORS:
        has = f"the set has only {len(wrong)} other answers to such questions"
        return f"{has}, but {DISTRACTORS} are needed"
    options = [fact.answer, *wrong]
    rng.shuffle(options)
    lettered = "\n".join(f"{letter}) {option}" for letter, option in zip(language.LETTERS, options))
    text = WORDING.options.format(q=fact.question, options=lettered)
    return _choice(fact.id, text, fact.answer, options)


def _choice(fact_id: str, text: str, gold: str, options: Sequence[str]) -> Prompt:
    letter = language.LETTERS[options.index(gold)]
    return Prompt(fact_id, CHOICE, text, gold, (letter,), tuple(options), 1 / len(options))


def _reverse_query(fact: Fact, pool: Pool, rng: random.Random) -> Prompt | str:
    """A question for the subject, made from relation and answer, or a sentence with a blank."""
    if reason := pool.not_reversible(fact):
        return reason
    if spoken(fact.relation) and fact.subject:
        text = wording.reversed_question(fact, rng)
    elif blanked_question := blanked(fact):
        text = WORDING.blank.format(o=fact.answer, q=blanked_question)
    else:
        return (
            "the relation is not in words, and the question does not name the subject exactly once"
        )
    return Prompt(fact.id, "reverse query", text, subject_of(fact))


def _synonym_manipulation(fact: Fact, pool: Pool, rng: random.Random) -> Prompt | str:
    """The question with synonyms for its words, except its subject, which has no known aliases."""
    text = wording.with_synonyms(fact.question, subject_of(fact))
    if text == fact.question:
        return "the question has no word that we have another word for"
    return Prompt(fact.id, "synonym manipulation", text, fact.answer)


def _background_hint(fact: Fact, pool: Pool, rng: random.Random) -> Prompt | str:
    """Up to two other facts about the subject, as sentences or questions, then the question."""
    lines = []
    for other in pool.about(fact):
        as_sentence = spoken(other.relation) and other.subject
        lines += [stated(other) if as_sentence else f"{other.question} {other.answer}."]
    hints = [sentence for sentence in lines if not gives_away(sentence, fact)]
    if not hints:
        return "the set has no other fact about this subject that does not name the answer"
    chosen = rng.sample(hints, min(HINTS, len(hints)))
    return Prompt(fact.id, "background hint", " ".join((*chosen, fact.question)), fact.answer)


def _in_context_learning(fact: Fact, pool: Pool, rng: random.Random) -> Prompt | str:
    """An answered example, then the question. As in RWKU, the example is about the same subject, or
    else about another subject of the same relation with another answer."""
    about = pool.about(fact)
    for example in chain(rng.sample(about, len(about)), pool.alike(fact, rng)):
        if not gives_away(f"{example.question} {example.answer}", fact):
            filled = {"asked": example.question, "answer": example.answer}
            text = WORDING.worked.format(**filled, q=fact.question)
            return Prompt(fact.id, "in-context learning", text, fact.answer)
    return "the set has no other question on this subject or relation whose answer differs"


def _cross_lingual(fact: Fact, pool: Pool, rng: random.Random) -> Prompt | str:
    """The question in another language."""
    translation = translated(fact, rng)
    if translation is None:
        return "we have no translation for this relation"
    text, accepted = translation
    return Prompt(fact.id, "cross-lingual", text, fact.answer, accepted)


# A builder returns a prompt, or as a str the reason why there is none.
BUILDERS: dict[str, Callable[[Fact, Pool, random.Random], Prompt | str]] = {
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
