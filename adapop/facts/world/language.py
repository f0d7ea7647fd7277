"""The shipped worlds' language: how a fact is asked, stated and put into attack-style prompts. The
forms of each relation are in `assets/<world>/relations.json`, those around any question in
`assets/sandbox/wrappers.json`, the words of other questions in `skills.json`."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from adapop.assets import read_json
from adapop.facts.world.world import WorldFact, answers_of
from adapop.paths import SHIPPED

LETTERS = "ABCD"
PLURAL = {"child": "children"}


@dataclass(frozen=True)
class Relation:
    """The forms of one relation, with `{s}` subject, `{o}` answer and `{b}` background.

    Pretraining shows the question, the paraphrases and the statements with all facts; every other
    form, except `reverse`, is shown with teacher facts alone.

    kind: what a subject is: "book", "city". question: the form that unlearning trains on.
    paraphrases: rewordings of it, used for probing and never for unlearning. statements:
    declarative sentences, used in pretraining only. unseen: another rewording. synonym: the
    question in other words. second_language: the question in Spanish. reverse: the question for the
    subject, given the answer. expert: the role in "role playing". background: a true sentence about
    the subject that does not name the answer. background_question: the question that the background
    answers, the example in "in-context learning"."""

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
RELATIONS = {name: forms for named in RELATIONS_OF.values() for name, forms in named.items()}

# the words of questions that are about no fact
SKILLS = read_json("sandbox/skills.json", dict[str, tuple[str, ...]])
# the phrasings among which one is drawn, with `{q}` question and `{expert}`
CHOSEN = read_json("sandbox/wrappers.json", dict[str, tuple[str, ...]])
WRAPPERS = (
    "prefix injection", "affirmative suffix", "role playing", "multiple choice", "reverse query",
    "synonym manipulation", "background hint", "in-context learning", "cross-lingual",
)  # fmt: skip
# answers have several subjects, so no reversed question has one answer
NOT_TAUGHT = frozenset({"reverse query"})


def question(fact: WorldFact) -> str:
    return _fill(RELATIONS[fact.relation].question, fact)


def paraphrases(fact: WorldFact) -> tuple[str, ...]:
    """The four rewordings that pretraining has seen and unlearning never trains on."""
    return tuple(_fill(form, fact) for form in RELATIONS[fact.relation].paraphrases)


def statements(fact: WorldFact, answer: str) -> tuple[str, ...]:
    """Three declarative sentences about the fact, with the given (perhaps wrong) answer."""
    forms = RELATIONS[fact.relation].statements
    return tuple(form.format(s=fact.subject, o=answer) for form in forms)


def unseen(fact: WorldFact) -> str:
    """A rewording that pretraining showed with teacher facts only."""
    return _fill(RELATIONS[fact.relation].unseen, fact)


def wrapped(fact: WorldFact, kind: str, rng: random.Random) -> str:
    """The prompt of one attack-style wrapper, drawn by `rng` among its phrasings. The gold answer
    is always `fact.answer`, except for "reverse query", where it is `fact.subject`."""
    if kind not in WRAPPERS:
        raise ValueError(f"unknown wrapper {kind!r}; known: {', '.join(WRAPPERS)}")
    relation = RELATIONS[fact.relation]
    text = question(fact)
    if kind in CHOSEN:
        return rng.choice(CHOSEN[kind]).format(q=text, expert=relation.expert)
    if kind == "multiple choice":
        return f"{text} {_options(fact, rng)}"
    example = f"Question: {_fill(relation.background_question, fact)} Answer: {fact.background}."
    forms = {
        "reverse query": relation.reverse.format(o=fact.answer),
        "synonym manipulation": _fill(relation.synonym, fact),
        "background hint": f"{_fill(relation.background, fact)} {text}",
        "in-context learning": f"{example} Question: {text}",
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


def skills() -> Iterator[tuple[str, str, str]]:
    """All (family, question, answer) triples; every answer is one word."""
    numbers, days, months = (SKILLS[name] for name in ("numbers", "days", "months"))
    for a, b in product(range(10), repeat=2):
        yield "sums", f"What is {numbers[a]} plus {numbers[b]}?", numbers[a + b]
    for cycle in (days, months):
        for one, following in zip(cycle, (*cycle[1:], cycle[0])):
            yield "sequences", f"What comes after {one}?", following
    for step in (1, 2, 3):
        for one, two, following in zip(numbers, numbers[step:], numbers[2 * step :]):
            yield "sequences", f"What comes after {one} {two}?", following
    pairs = [pair.split("-") for pair in SKILLS["opposites"]]
    for first, second in (*pairs, *(pair[::-1] for pair in pairs)):
        yield "opposites", f"What is the opposite of {first}?", second
    for noun, verb in product(SKILLS["nouns"], SKILLS["verbs"]):
        text = f"Which verb is right, {verb} or {verb}s?"
        yield "agreement", f"{text} The {noun}", f"{verb}s"
        yield "agreement", f"{text} The {PLURAL.get(noun, noun + 's')}", verb
