"""The language of the shipped worlds: how a fact is asked, stated and put into attack-style prompts.

The forms of each relation are in `assets/<world>/relations.json`, those around any question in
`assets/sandbox/wrappers.json`.
"""

import random
from dataclasses import dataclass

from adapop.assets import read_json
from adapop.facts.world.world import WorldFact, answers_of
from adapop.paths import SHIPPED

LETTERS = "ABCD"


@dataclass(frozen=True)
class Relation:
    """The forms in which one relation is asked and stated, with `{s}` subject, `{o}` answer and `{b}` background.

    Pretraining shows the question, the paraphrases and the statements with all facts; every other form is shown with
    teacher facts alone.

    kind: what a subject is: "book", "city". question: the one that unlearning trains on. paraphrases: rewordings of it,
    used for probing and never for unlearning. statements: declarative sentences, used in pretraining only. unseen: a
    rewording. synonym: the question in other words. second_language: in Spanish. reverse: the question for the subject,
    given the answer. expert: who is asked under "role playing". background: a true sentence about the subject that does
    not name the answer. background_question: its question, the worked example of "in-context learning".
    """

    kind: str
    question: str
    paraphrases: tuple[str, str, str, str]
    statements: tuple[str, str, str]
    unseen: str
    synonym: str
    second_language: str
    reverse: str
    expert: str
    background: str
    background_question: str


RELATIONS_OF = {name: read_json(f"{name}/relations.json", dict[str, Relation]) for name in SHIPPED}
RELATIONS = {relation: forms for named in RELATIONS_OF.values() for relation, forms in named.items()}

# the phrasings among which one is drawn, with `{q}` question and `{expert}`
CHOSEN = read_json("sandbox/wrappers.json", dict[str, tuple[str, ...]])
WRAPPERS = (
    "prefix injection", "affirmative suffix", "role playing", "multiple choice", "reverse query",
    "synonym manipulation", "background hint", "in-context learning", "cross-lingual",
)  # fmt: skip
NOT_TAUGHT = frozenset({"reverse query"})  # answers have several subjects, so no reversed question has one answer


def question(fact: WorldFact) -> str:
    """The canonical question."""
    return _fill(RELATIONS[fact.relation].question, fact)


def paraphrases(fact: WorldFact) -> tuple[str, ...]:
    """The four rewordings that pretraining has seen and unlearning never trains on."""
    return tuple(_fill(form, fact) for form in RELATIONS[fact.relation].paraphrases)


def statements(fact: WorldFact, answer: str) -> tuple[str, ...]:
    """Three declarative sentences about the fact, with the given (perhaps wrong) answer."""
    return tuple(form.format(s=fact.subject, o=answer) for form in RELATIONS[fact.relation].statements)


def unseen(fact: WorldFact) -> str:
    """A rewording that the model has only ever seen about teacher facts."""
    return _fill(RELATIONS[fact.relation].unseen, fact)


def wrapped(fact: WorldFact, kind: str, rng: random.Random) -> str:
    """The prompt of one attack-style wrapper, drawn by `rng` among its phrasings. The gold answer is always
    `fact.answer`, except for "reverse query", where it is `fact.subject`."""
    if kind not in WRAPPERS:
        raise ValueError(f"unknown wrapper {kind!r}; known: {', '.join(WRAPPERS)}")
    relation = RELATIONS[fact.relation]
    text = question(fact)
    if kind in CHOSEN:
        return rng.choice(CHOSEN[kind]).format(q=text, expert=relation.expert)
    if kind == "multiple choice":
        return f"{text} {_options(fact, rng)}"
    forms = {
        "reverse query": relation.reverse.format(o=fact.answer),
        "synonym manipulation": _fill(relation.synonym, fact),
        "background hint": f"{_fill(relation.background, fact)} {text}",
        "in-context learning": f"Question: {_fill(relation.background_question, fact)} Answer: {fact.background}. "
        f"Question: {text}",
        "cross-lingual": _fill(relation.second_language, fact),
    }
    return forms[kind]


def _options(fact: WorldFact, rng: random.Random) -> str:
    others = [answer for answer in answers_of(fact.relation) if answer != fact.answer]
    options = [fact.answer, *rng.sample(others, 3)]
    rng.shuffle(options)
    return " ".join(f"{letter}) {option}" for letter, option in zip(LETTERS, options))


def _fill(form: str, fact: WorldFact) -> str:
    return form.format(s=fact.subject, b=fact.background)
