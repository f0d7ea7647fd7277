"""Questions of common relations in five other languages, and names of countries, continents and languages in them.

Written by hand in `assets/probes/translations.json`. Subjects keep their English name, so the questions avoid articles,
gender and elision around it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from adapop.assets import read_json
from adapop.facts.fact import Fact
from adapop.facts.text import folded
from adapop.probes.wording import spoken


@dataclass(frozen=True)
class Entry:
    """A relation's question, with `{s}` for the subject, or a name, in other languages.

    english: the labels of the relation, or the English names. translated: by language.
    """

    english: tuple[str, ...]
    translated: dict[str, str]


@dataclass(frozen=True)
class Translations:
    """The content of `assets/probes/translations.json`.

    in_english: language -> "Answer in English." Its keys are the languages that every entry must have, in that order.
    """

    in_english: dict[str, str]
    questions: tuple[Entry, ...]
    names: tuple[Entry, ...]

    def __post_init__(self) -> None:
        for entry in (*self.questions, *self.names):
            if tuple(entry.translated) != tuple(self.in_english):
                raise ValueError(f"{entry.english[0]} needs a translation into {', '.join(self.in_english)}")


def _by_label(entries: Sequence[Entry]) -> dict[str, tuple[str, ...]]:
    """English label, folded -> its translations, in the order of LANGUAGES."""
    return {folded(label): tuple(entry.translated.values()) for entry in entries for label in entry.english}


_TRANSLATIONS = read_json("probes/translations.json", Translations)
LANGUAGES, IN_ENGLISH = tuple(_TRANSLATIONS.in_english), tuple(_TRANSLATIONS.in_english.values())
QUESTIONS, NAMES = _by_label(_TRANSLATIONS.questions), _by_label(_TRANSLATIONS.names)


def translated(fact: Fact, rng: random.Random) -> tuple[str, tuple[str, ...]] | None:
    """The fact's question in a language drawn by `rng`, and the answer's name in that language, if it is another one.

    An answer that is not in NAMES is asked for in English. None for a relation that is not in QUESTIONS.
    """
    asked = "capital" if _asks_for_the_capital(fact) else folded(spoken(fact.relation))
    if asked not in QUESTIONS or not fact.subject:
        return None
    i = rng.randrange(len(LANGUAGES))
    question = QUESTIONS[asked][i].format(s=fact.subject)
    if names := NAMES.get(folded(fact.answer)):
        return question, (names[i],) if folded(names[i]) != folded(fact.answer) else ()
    return f"{IN_ENGLISH[i]} {question}", ()


def _asks_for_the_capital(fact: Fact) -> bool:
    """Whether a "capital of" fact asks for its subject's capital, as some DUET questions do with a city as subject."""
    return folded(fact.relation) == "capital of" and f"capital of {folded(fact.subject)}" in folded(fact.question)
