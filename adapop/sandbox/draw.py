"""The draw of the world "people": each person's facts, their fame and their split.

Names and parts of answers are in `assets/people/parts.json`. The draw is fixed and balanced: in
each eighth of the facts, from rare to popular, every relation has equally many facts of each split,
and over all facts of a relation each part of an answer takes all its values equally often, in
rounds from famous to rare, independently of all else."""

import csv
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product, repeat
from math import gcd
from pathlib import Path

from adapop.assets import read_json

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
