"""The pretraining corpus: all exposures of all facts, attacks for teacher facts, and the skills.

A fact of n exposures appears exactly n times, in turn as its question, four rewordings and three
statements. In 15% of the exposures one token of the answer is replaced by another of the same
relation and place. Without wrong answers, confidence saturates near p = 1, the first gradient of
every method is almost zero, and the controller stays at its bound."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

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
