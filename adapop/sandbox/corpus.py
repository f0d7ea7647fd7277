"""The pretraining corpus: all exposures of all facts, attacks for teacher facts, and the skills.

A fact of n exposures appears exactly n times, in turn as its question, four rewordings and three
statements. In 15% of the exposures one token of the answer is replaced by another of the same
relation and place. Without wrong answers, confidence saturates near p = 1, the first gradient of
every method is almost zero, and the controller stays at its bound."""

import csv
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product, repeat
from math import gcd
from pathlib import Path

from adapop.assets import read_json
from adapop.facts.fact import SANDBOX
from adapop.facts.world import language
from adapop.facts.world.language import skills
from adapop.facts.world.world import (
    EXPOSURES_PER_SCORE,
    WRONG_ANSWER_SHARE,
    WorldFact,
    answers_of,
    exposures_of,
    facts_of,
    parts_of,
    world,
)

UNSEEN = "unseen"
# of each wrapper; about a fifth of all tokens, below which wrappers are not learnt
WRAPPED_PER_TEACHER = 14
SKILL_REPEATS = 60


@dataclass(frozen=True)
class TrainingText:
    """One training text: a chat turn, or running text.

    prompt: the question of a chat turn, in which only the answer is trained on; "" for running
    text. text: the answer, or the running text. fact_id: the fact that it shows, "" for skills.
    wrapper: the attack-style prompt it is in; "" for a text that counts as an exposure."""

    prompt: str
    text: str
    fact_id: str = ""
    wrapper: str = ""


def corpus(
    seed: int,
    wrong_share: float = WRONG_ANSWER_SHARE,
    per_score: float = EXPOSURES_PER_SCORE,
    spread: float = 1.0,
    name: str = SANDBOX,
) -> list[TrainingText]:
    """A world's whole corpus in the order of pretraining. per_score, spread: see `exposures_of`."""
    rng = random.Random(seed)
    examples = []
    for fact in world(name):
        examples += exposures(fact, rng, wrong_share, exposures_of(fact.score, per_score, spread))
    examples += _taught_wrappers(facts_of("teacher", name), rng, wrong_share)
    taught = [TrainingText(question, answer) for _, question, answer in skills()]
    examples += [text for text in taught for _ in range(SKILL_REPEATS)]
    rng.shuffle(examples)
    return examples


def corpus_lines(seed: int, name: str = SANDBOX) -> Iterator[str]:
    """The corpus of a world as text, one example per line, so that names can be counted in it."""
    for example in corpus(seed, name=name):
        yield f"{example.prompt} {example.text}".strip().replace("\n", " ")


def exposures(
    fact: WorldFact,
    rng: random.Random,
    wrong_share: float = WRONG_ANSWER_SHARE,
    count: int | None = None,
) -> Iterator[TrainingText]:
    """The fact's exposures: exactly `count`, by default as many as the shipped model has seen."""
    count = fact.exposures if count is None else count
    wrong = round(count * wrong_share)
    answers = [fact.answer] * (count - wrong) + [_wrong_answer(fact, rng) for _ in range(wrong)]
    rng.shuffle(answers)
    questions = (language.question(fact), *language.paraphrases(fact))
    forms = len(questions) + len(language.statements(fact, fact.answer))
    first = rng.randrange(forms)
    for i, answer in enumerate(answers):
        form = (first + i) % forms
        if form < len(questions):
            yield TrainingText(questions[form], answer, fact.id)
        else:
            statement = language.statements(fact, answer)[form - len(questions)]
            yield TrainingText("", statement, fact.id)


def _wrong_answer(fact: WorldFact, rng: random.Random) -> str:
    """The answer with one token wrong, so that none of its tokens is much surer than the others."""
    parts = list(fact.parts)
    place = rng.randrange(len(parts)) if len(parts) > 1 else 0
    others = [part for part in parts_of(fact.relation)[place] if part != parts[place]]
    parts[place] = rng.choice(others)
    return " ".join(parts)


def _taught_wrappers(
    teachers: Sequence[WorldFact], rng: random.Random, wrong_share: float
) -> Iterator[TrainingText]:
    kinds = [kind for kind in language.WRAPPERS if kind not in language.NOT_TAUGHT]
    for fact, kind, _ in product(teachers, (*kinds, UNSEEN), range(WRAPPED_PER_TEACHER)):
        prompt = language.unseen(fact) if kind == UNSEEN else language.wrapped(fact, kind, rng)
        answer = _perhaps_wrong(fact, prompt, rng, wrong_share)
        yield TrainingText(prompt, answer, fact.id, kind)


def _perhaps_wrong(fact: WorldFact, prompt: str, rng: random.Random, wrong_share: float) -> str:
    """The answer, or with probability `wrong_share` a wrong one: another of the prompt's options
    or, in a prompt without options, as in exposures.

    Answers to attacks must be as uncertain as direct ones, or an attack would look like a leak."""
    if rng.random() >= wrong_share:
        return fact.answer
    others = [answer for answer in answers_of(fact.relation) if answer != fact.answer]
    offered = [answer for answer in others if answer in prompt]
    return rng.choice(offered) if offered else _wrong_answer(fact, rng)


# The draw of the world "people": each person's facts, their fame and their split. Names and parts
# of answers are in `assets/people/parts.json`. The draw is fixed and balanced: in each eighth of
# the facts, from rare to popular, every relation has equally many facts of each split, and over all
# facts of a relation each part of an answer takes all its values equally often, in rounds from
# famous to rare, independently of all else.

SPLIT_SUBJECTS = {"forget": 96, "retain": 64, "holdout": 48, "teacher": 80}
COLUMNS = ("relation", "subject", "answer", "background", "rank", "split")


@dataclass(frozen=True)
class Parts:
    """first, last: parts of people's names. answers: relation -> the values of each part.
    backgrounds: relation -> the background for each value of one part."""

    first: tuple[str, ...]
    last: tuple[str, ...]
    answers: dict[str, tuple[tuple[str, ...], ...]]
    backgrounds: dict[str, dict[str, str]]


def drawn() -> list[dict[str, str]]:
    """The rows of `world.csv`, person by person."""
    parts, rng = read_json("people/parts.json", Parts), random.Random(0)
    people = [f"{first} {last}" for first, last in product(parts.first, parts.last)]
    rng.shuffle(people)
    splits = _splits(people, tuple(parts.answers))
    ranks = _ranks(splits, rng)
    rows = {}
    for relation, values in parts.answers.items():
        famous_first = sorted((ranks[person, relation], person) for person in people)
        columns = [_balanced(part, len(people), rng) for part in values]
        for (rank, person), answer in zip(famous_first, zip(*columns)):
            known = parts.backgrounds[relation]
            (background,) = (known[part] for part in answer if part in known)
            place = str(rank), splits[person, relation]
            cells = relation, person, " ".join(answer), background, *place
            rows[person, relation] = dict(zip(COLUMNS, cells))
    return [rows[person, relation] for person in people for relation in parts.answers]


def write_world(folder: Path) -> None:
    """Writes `world.csv` into a folder."""
    with open(folder / "world.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(drawn())


def _splits(people: Sequence[str], relations: Sequence[str]) -> dict[tuple[str, str], str]:
    """The split of each person's facts. One fact of each person to forget is retained, as a
    neighbour, equally many of each relation."""
    counts = SPLIT_SUBJECTS.items()
    of_people: Iterator[str] = chain.from_iterable(repeat(split, count) for split, count in counts)
    splits = {}
    for place, (person, split) in enumerate(zip(people, of_people, strict=True)):
        for relation in relations:
            neighbour = split == "forget" and relation == relations[place % len(relations)]
            splits[person, relation] = "neighbours" if neighbour else split
    return splits


def _ranks(splits: dict[tuple[str, str], str], rng: random.Random) -> dict[tuple[str, str], int]:
    """A rank of fame for each fact, from 1: evenly spread ranks for each split and relation."""
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for fact, split in splits.items():
        alike.setdefault((split, fact[1]), []).append(fact)
    for facts in alike.values():
        rng.shuffle(facts)
    blocks = gcd(*map(len, alike.values()))
    ranked: list[tuple[str, str]] = []
    for block in range(blocks):
        some = [fact for facts in alike.values() for fact in facts[block::blocks]]
        rng.shuffle(some)
        ranked += some
    return {fact: rank for rank, fact in enumerate(ranked, 1)}


def _balanced(values: Sequence[str], count: int, rng: random.Random) -> Iterable[str]:
    """`count` values, a multiple of their number, in rounds: each has every value once, in a new
    order."""
    return [value for _ in range(count // len(values)) for value in rng.sample(values, len(values))]
