"""The phrasings of prompts: text around a question, questions of a relation, synonyms, languages.

User text only ever goes in as a value of `str.format`, so its braces stay braces. Translations are
written by hand in `assets/probes/translations.json`: questions of common relations in five
languages, and names of countries, continents and languages in them. Subjects keep their English
name, so the questions avoid articles, gender and elision around it.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from adapop.assets import read_json
from adapop.facts.fact import Fact
from adapop.facts.text import folded


@dataclass(frozen=True)
class Wording:
    """The phrasings in `assets/probes/wording.json`.

    In them `{q}` is the question, `{p}` a persona, `{r}` the relation, `{s}` the subject and `{o}`
    the answer. Where there are two forms, the one ending in `_predicate` is for relations that
    `is_predicate` accepts.

    prefixes: instructions before the question ("prefix injection"). suffixes: beginnings of a
    compliant reply after it ("affirmative suffix"). roles: questions addressed to a persona ("role
    playing"). personas: persona -> words of a relation by which it is chosen; the first match
    counts. expert: the persona if none matches. options: a question with `{options}`, one a line
    ("multiple choice"). reversed: questions for the subject ("reverse query"). blank: a sentence
    with a blank for it. worked: an example with question `{asked}` and answer `{answer}`, then the
    question ("in-context learning"). stated: the fact as a sentence. rewordings: questions made of
    subject and relation alone. synonyms: word -> another word for it, all in lower case ("synonym
    manipulation")."""

    prefixes: tuple[str, ...]
    suffixes: tuple[str, ...]
    roles: tuple[str, ...]
    expert: str
    personas: dict[str, tuple[str, ...]]
    options: str
    reversed: tuple[str, ...]
    reversed_predicate: tuple[str, ...]
    blank: str
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
_SYNONYM = re.compile(
    rf"(?<!\w)(an? )?({'|'.join(sorted(WORDING.synonyms, key=len, reverse=True))})(?!\w)"
)


def spoken(relation: str) -> str:
    """A relation as words: "place_of_birth" as "place of birth"; "" for an id like "P17"."""
    text = " ".join(relation.replace("_", " ").split())
    return "" if _BARE_ID.fullmatch(text) else text


def is_predicate(relation: str) -> bool:
    """Whether the object follows the relation ("capital of"), so that "the ... of" does not fit."""
    return _PREDICATE.fullmatch(spoken(relation)) is not None


def stated(fact: Fact) -> str:
    form = WORDING.stated_predicate if is_predicate(fact.relation) else WORDING.stated
    return form.format(**_parts(fact))


def rewordings(fact: Fact) -> list[str]:
    forms = WORDING.rewordings_predicate if is_predicate(fact.relation) else WORDING.rewordings
    return [form.format(**_parts(fact)) for form in forms]


def reversed_question(fact: Fact, rng: random.Random) -> str:
    forms = WORDING.reversed_predicate if is_predicate(fact.relation) else WORDING.reversed
    return rng.choice(forms).format(**_parts(fact))


def persona(relation: str) -> str:
    """A persona, such as "a biographer", for the facts of a relation, or for a question."""
    words = set(re.findall(r"\w+", spoken(relation).casefold()))
    suited = (who for who, keys in WORDING.personas.items() if words & set(keys))
    return next(suited, WORDING.expert)


def with_synonyms(question: str, subject: str) -> str:
    """The question with synonyms for its words, except the subject and capitalised words."""
    parts = [question]
    if subject:
        parts = re.split(rf"(?<!\w)({re.escape(subject)})(?!\w)", question, flags=re.IGNORECASE)
    return "".join(part if i % 2 else _SYNONYM.sub(_synonym, part) for i, part in enumerate(parts))


def _parts(fact: Fact) -> dict[str, str]:
    return {"s": fact.subject, "r": spoken(fact.relation), "o": fact.answer}


def _synonym(match: re.Match[str]) -> str:
    word = WORDING.synonyms[match[2]]
    article = "" if match[1] is None else "an " if word[0] in "aeiou" else "a "
    return article + word


@dataclass(frozen=True)
class Translation:
    """A relation's question, with `{s}` for the subject, or a name, in other languages. english:
    the labels of the relation, or the English names. translated: by language."""

    english: tuple[str, ...]
    translated: dict[str, str]


@dataclass(frozen=True)
class Translations:
    """The content of `assets/probes/translations.json`. in_english: language -> "Answer in
    English." Its keys are the languages that every entry must have, in that order."""

    in_english: dict[str, str]
    questions: tuple[Translation, ...]
    names: tuple[Translation, ...]

    def __post_init__(self) -> None:
        for entry in (*self.questions, *self.names):
            if tuple(entry.translated) != tuple(self.in_english):
                languages = ", ".join(self.in_english)
                raise ValueError(f"{entry.english[0]} needs a translation into {languages}")


def _by_label(entries: Sequence[Translation]) -> dict[str, tuple[str, ...]]:
    """English label, folded -> its translations, in the order of LANGUAGES."""
    labelled = {entry.english: tuple(entry.translated.values()) for entry in entries}
    return {folded(label): texts for labels, texts in labelled.items() for label in labels}


_TRANSLATIONS = read_json("probes/translations.json", Translations)
LANGUAGES, IN_ENGLISH = tuple(_TRANSLATIONS.in_english), tuple(_TRANSLATIONS.in_english.values())
QUESTIONS, NAMES = _by_label(_TRANSLATIONS.questions), _by_label(_TRANSLATIONS.names)


def translated(fact: Fact, rng: random.Random) -> tuple[str, tuple[str, ...]] | None:
    """The fact's question in a language drawn by `rng`, and the answer's name there, if it differs.
    An answer that is not in NAMES is asked for in English. None without the relation."""
    relation = "capital" if _asks_for_the_capital(fact) else folded(spoken(fact.relation))
    if relation not in QUESTIONS or not fact.subject:
        return None
    i = rng.randrange(len(LANGUAGES))
    question = QUESTIONS[relation][i].format(s=fact.subject)
    if names := NAMES.get(folded(fact.answer)):
        return question, (names[i],) if folded(names[i]) != folded(fact.answer) else ()
    return f"{IN_ENGLISH[i]} {question}", ()


def _asks_for_the_capital(fact: Fact) -> bool:
    """Whether a "capital of" fact asks for its subject's capital, as some of DUET's do."""
    capital = f"capital of {folded(fact.subject)}"
    return folded(fact.relation) == "capital of" and capital in folded(fact.question)
