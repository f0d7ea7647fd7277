"""The shipped worlds: facts that differ in popularity alone, and how often pretraining shows each.

`assets/<world>/world.csv` lists the facts, `relations.json` their wording:

- "sandbox": 1,024 real facts, 8 relations x 16 answers x 8 subjects, each answer's subjects in
  order of fame (1 = most famous, by our judgement). Answers are one token. Scores are of eight
  levels, log-spaced over the range of the paper's scores. The splits are a Latin square over
  answers and levels: every relation has the same number of facts of each level in each split, and
  every answer has one rarer and one more famous fact in each.
- "people": 1,152 facts, 4 relations x 288 invented people, answers of two to four tokens, drawn by
  `adapop.sandbox.corpus`. Scores follow a Zipf law. A person is in one split with all four facts,
  except that of each person to forget one fact is retained, a "neighbour", to measure the damage.

The rest is computed here, so that a test can prove the balance: score * EXPOSURES_PER_SCORE is how
often pretraining shows a fact, 15% of them with a wrong answer. Teacher facts are used in
pretraining only, where they alone appear in the attack-style prompts."""

import csv
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain

from adapop.facts.fact import PEOPLE, SANDBOX
from adapop.paths import SHIPPED

LEVELS = 8
SCORE_LOW, SCORE_HIGH = 70.0, 3766.0
EXPOSURES_PER_SCORE = 0.25
WRONG_ANSWER_SHARE = 0.15
SPLITS = ("forget", "retain", "holdout", "teacher")
ZIPF_EXPONENT = 1.5


@dataclass(frozen=True)
class WorldFact:
    """One fact of a world.

    id: readable and unique: "director-paths-of-glory". relation: a key of `language.RELATIONS`.
    subject: one token of the world's tokenizer. background: a coarse true attribute of the answer,
    shared by several answers. level: exposure level, 0 (the rarest eighth) to 7. split: one of
    SPLITS, or "neighbours". score: popularity, 70 to 3766."""

    id: str
    relation: str
    subject: str
    answer: str
    background: str
    level: int
    split: str
    score: float
    world: str = SANDBOX

    @property
    def exposures(self) -> int:
        """Number of times pretraining shows the fact, wrong answers included."""
        return exposures_of(self.score)

    @property
    def parts(self) -> tuple[str, ...]:
        """The answer's pieces, each one token of the world's tokenizer."""
        return tuple(self.answer.split()) if self.world == PEOPLE else (self.answer,)


def level_score(level: int) -> float:
    """Score of an exposure level, rounded to a whole number as counts are."""
    return float(round(SCORE_LOW * (SCORE_HIGH / SCORE_LOW) ** (level / (LEVELS - 1))))


def zipf_score(rank: int, facts: int) -> float:
    """Score of the fact of a rank, 1 to `facts`, by Zipf's law, rounded to a whole number. The
    law's first, most famous ranks are skipped, so that scores go from 3766 to 70."""
    ratio = (SCORE_HIGH / SCORE_LOW) ** (1 / ZIPF_EXPONENT)
    skipped = (facts - ratio) / (ratio - 1)
    return float(round(SCORE_HIGH * ((1 + skipped) / (rank + skipped)) ** ZIPF_EXPONENT))


def exposures_of(score: float, per_score: float = EXPOSURES_PER_SCORE, spread: float = 1.0) -> int:
    """How often pretraining shows a fact of a score. spread: power applied to a fact's exposures
    relative to the geometric middle of all: 1 as shipped, 0 makes all equal."""
    middle = math.sqrt(SCORE_LOW * SCORE_HIGH)
    return round(score**spread * middle ** (1 - spread) * per_score)


@cache
def world(name: str = SANDBOX) -> tuple[WorldFact, ...]:
    """All facts of a shipped world, in the order of its CSV."""
    with open(SHIPPED[name] / "world.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return tuple(_drawn_fact(row, len(rows)) for row in rows) if name == PEOPLE else _sandbox(rows)


def facts_of(split: str, name: str = SANDBOX) -> tuple[WorldFact, ...]:
    return tuple(fact for fact in world(name) if fact.split == split)


@cache
def answers_of(relation: str) -> tuple[str, ...]:
    facts = chain.from_iterable(map(world, SHIPPED))
    return tuple(dict.fromkeys(fact.answer for fact in facts if fact.relation == relation))


@cache
def parts_of(relation: str) -> tuple[tuple[str, ...], ...]:
    """The possible values of each part of a relation's answers, in world order."""
    facts = chain.from_iterable(map(world, SHIPPED))
    parts = zip(*(fact.parts for fact in facts if fact.relation == relation))
    return tuple(tuple(dict.fromkeys(values)) for values in parts)


def _sandbox(rows: list[dict[str, str]]) -> tuple[WorldFact, ...]:
    """The facts of the first world, whose splits are the Latin square."""
    places: dict[str, dict[str, int]] = {}
    facts = []
    for row in rows:
        level, known = LEVELS - int(row["fame"]), places.setdefault(row["relation"], {})
        place = known.setdefault(row["answer"], len(known))
        split = SPLITS[(level + place) % len(SPLITS)]
        facts.append(WorldFact(**_words(row), level=level, split=split, score=level_score(level)))
    return tuple(facts)


def _drawn_fact(row: Mapping[str, str], facts: int) -> WorldFact:
    rank = int(row["rank"])
    level, score = (facts - rank) * LEVELS // facts, zipf_score(rank, facts)
    return WorldFact(**_words(row), level=level, split=row["split"], score=score, world=PEOPLE)


def _words(row: Mapping[str, str]) -> dict[str, str]:
    words = {name: row[name] for name in ("relation", "subject", "answer", "background")}
    return {"id": f"{row['relation']}-{_slug(row['subject'])}", **words}


def _slug(text: str) -> str:
    folded = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", folded.lower()).strip("-")
