"""The English phrasings of prompts: text around a question, questions made of a relation, synonyms.

User text only ever goes in as a value of `str.format`, so its braces stay braces.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from adapop.assets import read_json
from adapop.facts.fact import Fact


@dataclass(frozen=True)
class Wording:
    """The phrasings in `assets/probes/wording.json`.

    In them `{q}` is the question, `{p}` a persona, `{r}` the relation, `{s}` the subject and `{o}` the answer. Where
    there are two forms, the one ending in `_predicate` is for relations that `is_predicate` accepts.

    prefixes: instructions before the question ("prefix injection"). suffixes: beginnings of a compliant reply after it
    ("affirmative suffix"). roles: questions addressed to a persona ("role playing"). personas: persona -> words of a
    relation by which it is chosen; the first match counts. expert: the persona where none does. options: a question
    with `{options}`, one a line ("multiple choice"). reversed: questions for the subject ("reverse query"). worked: an
    example with question `{asked}` and answer `{answer}`, then the question ("in-context learning"). stated: the fact
    as a sentence. rewordings: questions made of subject and relation alone. synonyms: word -> another word for it, all
    in lower case ("synonym manipulation").
    """

    prefixes: tuple[str, ...]
    suffixes: tuple[str, ...]
    roles: tuple[str, ...]
    expert: str
    personas: dict[str, tuple[str, ...]]
    options: str
    reversed: tuple[str, ...]
    reversed_predicate: tuple[str, ...]
    worked: str
    stated: str
    stated_predicate: str
    rewordings: tuple[str, ...]
    rewordings_predicate: tuple[str, ...]
    synonyms: dict[str, str]


WORDING = read_json("probes/wording.json", Wording)
_PREPOSITIONS = "after|as|at|by|for|from|in|into|of|on|to|with"
_PREDICATE = re.compile(rf".* (?:{_PREPOSITIONS})|(?:located|has|is|was|shares) .*", re.IGNORECASE)
_BARE_ID = re.compile(r"P\d+|\W*", re.IGNORECASE)  # a Wikidata property id, such as P17
_SYNONYM = re.compile(rf"(?<!\w)(an? )?({'|'.join(sorted(WORDING.synonyms, key=len, reverse=True))})(?!\w)")


def spoken(relation: str) -> str:
    """A relation as words: "place_of_birth" becomes "place of birth". "" for an id without words, such as "P17"."""
    said = " ".join(relation.replace("_", " ").split())
    return "" if _BARE_ID.fullmatch(said) else said


def is_predicate(relation: str) -> bool:
    """Whether the object follows the relation ("capital of", "located in"), so that "the ... of" does not fit."""
    return _PREDICATE.fullmatch(spoken(relation)) is not None


def stated(fact: Fact) -> str:
    """The fact as a sentence."""
    return (WORDING.stated_predicate if is_predicate(fact.relation) else WORDING.stated).format(**_parts(fact))


def rewordings(fact: Fact) -> list[str]:
    """Questions for the fact, made of its subject and relation."""
    forms = WORDING.rewordings_predicate if is_predicate(fact.relation) else WORDING.rewordings
    return [form.format(**_parts(fact)) for form in forms]


def reversed_question(fact: Fact, rng: random.Random) -> str:
    """A question for the subject, given the answer."""
    forms = WORDING.reversed_predicate if is_predicate(fact.relation) else WORDING.reversed
    return rng.choice(forms).format(**_parts(fact))


def persona(relation: str) -> str:
    """A persona who would know facts of this relation, as "a biographer"."""
    words = set(spoken(relation).casefold().split())
    return next((who for who, keys in WORDING.personas.items() if words & set(keys)), WORDING.expert)


def with_synonyms(question: str, subject: str) -> str:
    """The question with synonyms for its words, except the subject and words with a capital letter."""
    parts = re.split(rf"(?<!\w)({re.escape(subject)})(?!\w)", question, flags=re.IGNORECASE) if subject else [question]
    return "".join(part if i % 2 else _SYNONYM.sub(_synonym, part) for i, part in enumerate(parts))


def _parts(fact: Fact) -> dict[str, str]:
    return {"s": fact.subject, "r": spoken(fact.relation), "o": fact.answer}


def _synonym(match: re.Match[str]) -> str:
    word = WORDING.synonyms[match[2]]
    article = "" if match[1] is None else "an " if word[0] in "aeiou" else "a "
    return article + word
