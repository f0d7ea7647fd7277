"""The sandbox world: 1,024 real facts that differ in popularity only.

`assets/sandbox/world.csv` lists 8 relations x 16 answers x 8 subjects, each answer's subjects in order of fame
(1 = most famous; the order is our judgement). The rest is computed here, so that a test can prove the balance:

- level: the reversed fame rank, 0 (rarest) to 7; its score is log-spaced over the range of the paper's scores.
- exposures: how often pretraining shows the fact, `score * EXPOSURES_PER_SCORE`, 15 % of them with a wrong answer.
- split: forget, retain, holdout or teacher, a Latin square over answers and levels. Every relation has the same
  number of facts of each level in each split, and every answer has one rarer and one more famous fact in each.

Teacher facts are used in pretraining only, where they alone appear in the attack-style prompts.
"""

import csv
import math
import re
import unicodedata
from dataclasses import dataclass
from functools import cache

from adapop.paths import SANDBOX_FOLDER

LEVELS = 8
SCORE_LOW, SCORE_HIGH = 70.0, 3766.0
EXPOSURES_PER_SCORE = 0.25
WRONG_ANSWER_SHARE = 0.15
SPLITS = ("forget", "retain", "holdout", "teacher")


@dataclass(frozen=True)
class WorldFact:
    """One fact of the world.

    id: readable and unique: "director-paths-of-glory". relation: a key of `language.RELATIONS`. subject, answer: one
    token each of the sandbox's tokenizer. background: a coarse true attribute of the answer, shared by several answers.
    level: of exposure, 0 (rarest) to 7. split: one of SPLITS.
    """

    id: str
    relation: str
    subject: str
    answer: str
    background: str
    level: int
    split: str

    @property
    def score(self) -> float:
        """Popularity score, log-spaced from 70 (level 0) to 3766 (level 7)."""
        return level_score(self.level)

    @property
    def exposures(self) -> int:
        """Number of times pretraining shows the fact, wrong answers included."""
        return exposures_of(self.score)


def level_score(level: int) -> float:
    """Score of an exposure level, rounded to a whole number as counts are."""
    return float(round(SCORE_LOW * (SCORE_HIGH / SCORE_LOW) ** (level / (LEVELS - 1))))


def exposures_of(score: float, per_score: float = EXPOSURES_PER_SCORE, spread: float = 1.0) -> int:
    """How often pretraining shows a fact of a score.

    spread: power to which the range of exposures is raised around its geometric middle: 1 as shipped, 0 shows every
    fact equally often.
    """
    middle = math.sqrt(SCORE_LOW * SCORE_HIGH)
    return round(score**spread * middle ** (1 - spread) * per_score)


@cache
def world() -> tuple[WorldFact, ...]:
    """All 1,024 facts, in the order of the CSV."""
    with open(SANDBOX_FOLDER / "world.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    answers: dict[str, list[str]] = {}
    for row in rows:
        known = answers.setdefault(row["relation"], [])
        if row["answer"] not in known:
            known.append(row["answer"])
    return tuple(_fact(row, answers[row["relation"]].index(row["answer"])) for row in rows)


def facts_of(split: str) -> tuple[WorldFact, ...]:
    """The facts of one split, in world order."""
    return tuple(fact for fact in world() if fact.split == split)


@cache
def answers_of(relation: str) -> tuple[str, ...]:
    """The answers of a relation, in world order."""
    return tuple(dict.fromkeys(fact.answer for fact in world() if fact.relation == relation))


def _fact(row: dict[str, str], answer_index: int) -> WorldFact:
    level = LEVELS - int(row["fame"])
    return WorldFact(
        id=f"{row['relation']}-{_slug(row['subject'])}",
        relation=row["relation"],
        subject=row["subject"],
        answer=row["answer"],
        background=row["background"],
        level=level,
        split=SPLITS[(level + answer_index) % len(SPLITS)],
    )


def _slug(text: str) -> str:
    folded = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", folded.lower()).strip("-")
