"""The pretraining corpus: every exposure of every fact, wrappers on teacher facts, and the skills.

A fact of n exposures appears exactly n times, round-robin over its question, four rewordings and three statements,
15 % of them with a wrong answer of the same relation. Without those, confidence saturates near p = 1, every
method's first gradient is almost zero and the controller is pinned.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from adapop.facts.world import language
from adapop.facts.world.skills import skills
from adapop.facts.world.world import (
    EXPOSURES_PER_SCORE,
    WRONG_ANSWER_SHARE,
    WorldFact,
    answers_of,
    exposures_of,
    facts_of,
    world,
)

WRAPPED_PER_TEACHER = 14  # per wrapper; about a fifth of all tokens, below which the wrappers are not learnt
UNSEEN_PER_TEACHER = 14
SKILL_REPEATS = 60


@dataclass(frozen=True)
class Example:
    """One training text. With a `prompt` it is a chat turn and only the answer is learnt; without, running text.

    fact_id: the fact it exposes, empty for skills. wrapper: "" for an exposure that counts, else the wrapper's name.
    """

    prompt: str
    text: str
    fact_id: str = ""
    wrapper: str = ""


def corpus(
    seed: int,
    wrong_share: float = WRONG_ANSWER_SHARE,
    per_score: float = EXPOSURES_PER_SCORE,
    spread: float = 1.0,
) -> list[Example]:
    """The whole corpus in the order of pretraining, a function of its arguments alone. per_score, spread: see
    `exposures_of`."""
    rng = random.Random(seed)
    examples = []
    for fact in world():
        examples += exposures(fact, rng, wrong_share, exposures_of(fact.score, per_score, spread))
    examples += _taught_wrappers(rng, wrong_share)
    examples += [Example(asked, answer) for _, asked, answer in skills() for _ in range(SKILL_REPEATS)]
    rng.shuffle(examples)
    return examples


def corpus_lines(seed: int) -> Iterator[str]:
    """The corpus as text, one example a line, for those who want to count in it."""
    for example in corpus(seed):
        yield f"{example.prompt} {example.text}".strip().replace("\n", " ")


def exposures(
    fact: WorldFact, rng: random.Random, wrong_share: float = WRONG_ANSWER_SHARE, count: int | None = None
) -> Iterator[Example]:
    """The fact's exposures: exactly `count` of them, or as many as the shipped sandbox has."""
    count = fact.exposures if count is None else count
    others = [answer for answer in answers_of(fact.relation) if answer != fact.answer]
    wrong = round(count * wrong_share)
    answers = [fact.answer] * (count - wrong) + [rng.choice(others) for _ in range(wrong)]
    rng.shuffle(answers)
    asked = (language.question(fact), *language.paraphrases(fact))
    forms = len(asked) + len(language.statements(fact, fact.answer))
    first = rng.randrange(forms)
    for i, answer in enumerate(answers):
        form = (first + i) % forms
        if form < len(asked):
            yield Example(asked[form], answer, fact.id)
        else:
            yield Example("", language.statements(fact, answer)[form - len(asked)], fact.id)


def _taught_wrappers(rng: random.Random, wrong_share: float) -> Iterator[Example]:
    kinds = [kind for kind in language.WRAPPERS if kind not in language.NOT_TAUGHT]
    for fact in facts_of("teacher"):
        for kind in kinds:
            for _ in range(WRAPPED_PER_TEACHER):
                prompt = language.wrapped(fact, kind, rng)
                yield Example(prompt, _perhaps_wrong(fact, prompt, rng, wrong_share), fact.id, kind)
        for _ in range(UNSEEN_PER_TEACHER):
            prompt = language.unseen(fact)
            yield Example(prompt, _perhaps_wrong(fact, prompt, rng, wrong_share), fact.id, "unseen")


def _perhaps_wrong(fact: WorldFact, prompt: str, rng: random.Random, wrong_share: float) -> str:
    """The answer, or sometimes a wrong one: of the options where the prompt names some, else of the relation.

    Wrapped answers must be as unsure as direct ones, or a wrapper would look like a leak.
    """
    if rng.random() >= wrong_share:
        return fact.answer
    others = [answer for answer in answers_of(fact.relation) if answer != fact.answer]
    return rng.choice([answer for answer in others if answer in prompt] or others)
